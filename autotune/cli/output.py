"""Results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from autotune.jsonable import to_jsonable

if TYPE_CHECKING:
    from rich.console import Console

_DETAILED = "%(asctime)s %(levelname)s %(name)s: %(message)s"

PLAIN_WIDTH = 140
"""Columns where the output is no terminal: wide enough that tables are not cut."""


def results() -> Console:
    """Where a command's result is written."""
    return _console(sys.stdout)


def messages() -> Console:
    """Where progress and remarks are written."""
    return _console(sys.stderr)


def _console(stream: Any) -> Console:
    from rich.console import Console

    width = None if stream.isatty() else PLAIN_WIDTH
    return Console(file=stream, width=width, highlight=False)


def write_json(document: Mapping[str, Any]) -> None:
    """One JSON document on one line of standard output."""
    text = json.dumps(to_jsonable(document, "output"), ensure_ascii=False, allow_nan=False)
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def write_error(text: str) -> None:
    """One message on standard error."""
    sys.stderr.write(f"autotune: {text}\n")
    sys.stderr.flush()


class _CurrentStderr(logging.StreamHandler[Any]):
    """Writes to what ``sys.stderr`` is at the time: a progress bar puts itself there."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stderr


def set_up_logging(*, verbose: bool) -> None:
    """Send this package's log to standard error: remarks, or every detail."""
    handler = _CurrentStderr()
    handler.setFormatter(logging.Formatter("%(message)s" if not verbose else _DETAILED))
    logger = logging.getLogger("autotune")
    logger.handlers[:] = [handler]
    logger.setLevel(logging.DEBUG if verbose else logging.INFO)
