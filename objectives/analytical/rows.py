"""Some rows of anything that is made of arrays over configs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

from objectives.physics.arrays import IntArray

T = TypeVar("T")


def take(value: T, rows: IntArray, size: int) -> T:
    """The same structure with some rows of every array, in the given order, repeats allowed.

    Args:
        value: Arrays whose last axis runs over the configs, in dataclasses, tuples and mappings;
            anything else is kept.
        rows: Which, shape (k,).
        size: Length of that axis; arrays with another last axis are kept.
    """
    return _take(value, rows, size)  # type: ignore[no-any-return]


def _take(value: Any, rows: IntArray, size: int) -> Any:
    if isinstance(value, np.ndarray):
        return value[..., rows] if value.ndim and value.shape[-1] == size else value
    if isinstance(value, tuple):
        return tuple(_take(item, rows, size) for item in value)
    if isinstance(value, Mapping):
        return {name: _take(item, rows, size) for name, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
        return type(value)(**{name: _take(item, rows, size) for name, item in parts.items()})
    return value
