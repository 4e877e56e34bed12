"""Values of parameters as plain Python, and when two of them are the same."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.errors import InvalidInput
from autotune.jsonable import canonical_json, to_jsonable


def plain(value: Any) -> Any:
    """Turn a value into None, bool, int, float, text, or a tuple or mapping of these.

    Raises:
        InvalidInput: If it has no JSON form.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    return _frozen(to_jsonable(value))


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, dict):
        return {key: _frozen(item) for key, item in value.items()}
    return value


def identity(value: Any) -> Hashable:
    """A hashable stand-in that is equal exactly for equal values: 1 is 1.0 but not True.

    Returns:
        The stand-in; a fresh object, equal to nothing, for values without a JSON form.
    """
    kind = type(value)
    if kind is str or kind is int or kind is float or value is None:
        return value  # type: ignore[no-any-return]
    if kind is bool:
        return ("bool", value)
    if isinstance(value, Enum):
        return identity(value.value)
    if isinstance(value, np.generic):
        return identity(value.item())
    try:
        return ("json", canonical_json(value))
    except InvalidInput:
        return object()


def is_number(value: Any) -> bool:
    """Whether a value is a finite int or float, NumPy's included; a bool is none."""
    if isinstance(value, bool | np.bool_):
        return False
    if isinstance(value, int | np.integer):
        return True  # however large: math.isfinite takes no int above 1.8e308
    return isinstance(value, float | np.floating) and math.isfinite(value)


def is_encodable(value: Any) -> bool:
    """Whether all text in a plain value has a UTF-8 form; a lone surrogate has none."""
    try:
        canonical_json(value).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def as_column(values: Sequence[Any]) -> NDArray[Any]:
    """One array of shape (n,) of plain values, with a native type where all have the same."""
    kinds = {type(value) for value in values}
    if kinds in ({bool}, {int}, {float}, {str}, {int, float}):
        with_type = np.asarray(values)
        if with_type.dtype.kind in "bifU":
            return with_type
    column = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):  # a slice would spread tuples over the array
        column[i] = value
    return column
