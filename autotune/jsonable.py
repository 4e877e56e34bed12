"""Turning Python values into JSON that every storage keeps, and into fingerprints."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from datetime import date, datetime
from enum import Enum
from pathlib import PurePath
from typing import Any

import numpy as np

from autotune.errors import InvalidInput


def to_jsonable(value: Any, path: str = "value") -> Any:
    """Convert a value to plain JSON types, or refuse it by path.

    NumPy scalars and arrays, enums, paths, dates, sets, tuples and dataclasses are converted;
    everything else that JSON does not have is refused, also NaN and infinity.

    Args:
        value: Any nesting of the types above.
        path: Where the value sits, for the error message.

    Raises:
        InvalidInput: If a part has no JSON form.
    """
    match value:
        case Enum():
            return to_jsonable(value.value, path)
        case None | bool() | str():
            return str(value) if isinstance(value, str) else value
        case np.generic():
            return to_jsonable(value.item(), path)
        case int():
            return int(value)
        case float():
            if not math.isfinite(value):
                raise InvalidInput(path, f"must be finite to be stored, got {value}")
            return float(value)
        case np.ndarray():
            return to_jsonable(value.tolist(), path)
        case PurePath():
            return str(value)
        case datetime() | date():
            return value.isoformat()
        case Mapping():
            return {
                _key(key, path): to_jsonable(item, f"{path}.{key}") for key, item in value.items()
            }
        case list() | tuple():
            return [to_jsonable(item, f"{path}[{i}]") for i, item in enumerate(value)]
        case set() | frozenset():
            return sorted((to_jsonable(item, path) for item in value), key=canonical_json)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: to_jsonable(getattr(value, field.name), f"{path}.{field.name}")
            for field in dataclasses.fields(value)
        }
    raise InvalidInput(
        path, f"must be a JSON value (number, text, list, mapping, …), got {type(value).__name__}"
    )


def _key(key: Any, path: str) -> str:
    if isinstance(key, Enum):
        key = key.value
    if isinstance(key, np.generic):
        key = key.item()
    if isinstance(key, str | int | float | bool):
        return str(key)
    raise InvalidInput(path, f"a mapping's key must be text or a number, got {type(key).__name__}")


def canonical_json(value: Any) -> str:
    """Serialise with sorted keys and no spaces, so that equal values give equal text."""
    return json.dumps(
        to_jsonable(value),
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )


def fingerprint(value: Any) -> str:
    """Hash a value's canonical JSON: 16 hexadecimal digits of SHA-256."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:16]
