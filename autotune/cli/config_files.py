"""Configs that a user writes: JSON from a file or standard input."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autotune.errors import InvalidInput, Problem

STDIN = "-"

MAX_DEPTH = 32
"""Of lists in lists: deeper than any value is, and far from what Python refuses to go through."""


def read_config(file: str) -> dict[str, Any]:
    """Read a config from a JSON file or standard input.

    Args:
        file: A path, or ``-``.

    Raises:
        InvalidInput: If it cannot be read, is no JSON object, or gives a parameter twice.
    """
    what = "config from standard input" if file == STDIN else f"config {file}"
    value = _parse(what, _read(what, file))
    if not isinstance(value, dict):
        raise InvalidInput(
            what, f"must be a JSON object of parameters and values, got {type(value).__name__}"
        )
    return value


def _read(what: str, file: str) -> str:
    try:
        text = sys.stdin.read() if file == STDIN else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(what, f"must be a readable file, got: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(what, f"must be text in UTF-8, got: {error}") from error
    except ValueError as error:  # a null character in the name
        raise InvalidInput(what, f"must be the path of a file, got: {error}") from error
    return text.removeprefix("\ufeff")  # as some editors begin a file


def _parse(what: str, text: str) -> Any:
    def once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            message = "must be given once, is there several times"
            raise InvalidInput(what, [Problem(path=name, message=message) for name in twice])
        return dict(pairs)

    def no_number(text: str) -> Any:
        raise InvalidInput(what, f"must be JSON, which has no {text}")

    try:
        value = json.loads(text, object_pairs_hook=once, parse_constant=no_number)
        if _depth(value) > MAX_DEPTH:
            raise RecursionError
    except json.JSONDecodeError as error:
        message = f"must be JSON, got: {error.msg} in line {error.lineno}, column {error.colno}"
        raise InvalidInput(what, message) from error
    except RecursionError as error:
        raise InvalidInput(what, f"must not be nested deeper than {MAX_DEPTH}") from error
    except InvalidInput:
        raise
    except ValueError as error:  # Python reads no number of so many digits
        raise InvalidInput(what, f"must have shorter numbers: {error}") from error
    return value


def _depth(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_depth, inner), default=0)
