"""Where ordered values lie on [0, 1], so that equal distances matter equally."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.space.arrays import Floats
from autotune.space.values import is_number

_GEOMETRIC_RATIO = 2.0
"""Numbers that grow at least by this factor from one choice to the next are placed by logarithm."""


def scaled(values: NDArray[Any], low: float, high: float, log: bool) -> Floats:
    """Map [low, high] to [0, 1], by logarithm if asked; 0 for a single value."""
    numbers = np.asarray(values, dtype=np.float64)
    if low == high:
        return np.zeros_like(numbers)
    if log:
        return (np.log(numbers) - math.log(low)) / (math.log(high) - math.log(low))
    return (numbers - low) / (high - low)


def scaled_number(value: Any, low: float, high: float, log: bool) -> float | None:
    """The same for one value of any kind, clipped; None for what is no finite number."""
    if not is_number(value):
        return None
    return float(scaled(np.asarray(min(max(value, low), high)), low, high, log))


def unscaled(place: float, low: float, high: float, log: bool) -> float:
    """The inverse of `scaled`."""
    if log:
        return math.exp(math.log(low) + place * (math.log(high) - math.log(low)))
    return low + place * (high - low)


def places_of(values: Sequence[Any]) -> Floats | None:
    """Where listed values lie, shape (n,); None where they have no order.

    Booleans lie at 0 and 1, numbers by logarithm if they grow geometrically, else by rank.
    """
    if all(isinstance(value, bool) for value in values):
        return np.asarray(values, dtype=np.float64)
    if not all(is_number(value) for value in values):
        return None
    numbers = np.asarray(values, dtype=np.float64)
    rising = np.sort(numbers)
    if len(numbers) > 2 and rising[0] > 0 and np.min(rising[1:] / rising[:-1]) >= _GEOMETRIC_RATIO:
        return scaled(numbers, float(rising[0]), float(rising[-1]), True)
    return np.argsort(np.argsort(numbers)) / max(len(numbers) - 1, 1)
