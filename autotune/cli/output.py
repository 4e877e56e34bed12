"""Results on standard output, everything else on standard error."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import IO, TYPE_CHECKING, Any

from autotune.jsonable import to_jsonable

if TYPE_CHECKING:
    from rich.console import Console

_DETAILED = "%(asctime)s %(levelname)s %(name)s: %(message)s"

PLAIN_WIDTH = 140
"""Columns where the output is no terminal: wide enough that tables are not cut."""

_documents: ContextVar[IO[str] | None] = ContextVar("documents", default=None)
"""Where JSON goes inside `only_documents`."""


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
    stream = _documents.get() or sys.stdout
    stream.write(f"{text}\n")
    stream.flush()


@contextlib.contextmanager
def only_documents() -> Iterator[None]:
    """Keep standard output for `write_json`; what anything else writes there goes to the errors.

    Objectives and study files may print, from worker processes and compiled code too, so that
    file descriptor 1 itself is sent elsewhere. It stays there to the end of the process: a reader
    must find nothing after the document either.
    """
    stream = sys.stdout
    if _descriptor(stream) == 1:
        stream.flush()
        # As an escape of JSON, what UTF-8 cannot hold is still the same text.
        stream = open(os.dup(1), "w", encoding="utf-8", errors="backslashreplace", newline="\n")  # noqa: SIM115
        os.dup2(2, 1)
    token = _documents.set(stream)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        _documents.reset(token)


def discard_output() -> None:
    """Once the reader has gone, as `head` does, Python must not complain at its exit either."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (_documents.get(), sys.stdout):
        if stream is not None:
            os.dup2(nowhere, stream.fileno())


def _descriptor(stream: IO[str]) -> int:
    """The file descriptor behind a stream; -1 where there is none, as in tests."""
    try:
        return stream.fileno()
    except io.UnsupportedOperation:
        return -1


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
