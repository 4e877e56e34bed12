"""Bisection of many falling functions at once, several levels per call where they are few."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from objectives.physics.arrays import BoolArray, FloatArray

OCTAVES, BITS = 36, 12
"""The grid: 2^12 points, 0.6 % apart, over 36 doublings."""

INFINITE = 1e20
"""For a cut in byte/s: so many ports that no two flows ever meet."""


def levels_at_once(size: int) -> int:
    """Levels of the bisection that one call answers, with 2^levels - 1 values of each function.

    Few functions cost hardly more than one, so all values that a bisection could ask for are
    tried at once. It takes the same way whatever their number, so the result does not depend on
    what is searched together.

    Args:
        size: Functions.
    """
    return 6 if size <= 8 else 3 if size <= 128 else 1


def values_at_once(levels: int) -> int:
    """Values of each function per call; where there are several, one is the infinite one.

    Args:
        levels: Of the bisection per call.
    """
    return 2**levels if levels > 1 else 1


def smallest_enough(
    function: Callable[[FloatArray], FloatArray],
    start: FloatArray,
    levels: int,
    *,
    tolerance: float,
) -> FloatArray:
    """The first grid value at which each function is near its value at infinity, shape (n,).

    Args:
        function: Falling; takes and gives arrays of shape (n, `values_at_once`).
        start: The grid's first value, shape (n,).
        levels: Of the bisection per call.
        tolerance: How near, as a share.
    """
    infinite = np.full((len(start), 1), INFINITE)
    several = levels > 1
    goal = None if several else (1 + tolerance) * function(infinite)
    low = np.zeros(len(start))
    for level in range(0, BITS, levels):
        width = 2 ** (BITS - level - levels)
        tried = grid_value(start[:, None], low[:, None] + width * np.arange(1, 2**levels))
        values = function(np.hstack([tried, infinite]) if several else tried)
        if goal is None:
            goal = (1 + tolerance) * values[:, -1:]
        low = low + width * _bisected(values[:, : tried.shape[1]] > goal, levels)
    return grid_value(start, low + 1)


def grid_value(start: FloatArray, point: FloatArray) -> FloatArray:
    """The value at a grid point.

    Args:
        start: The grid's first value.
        point: 0 to 2^BITS.
    """
    return np.asarray(start * np.exp2(point * (OCTAVES / 2**BITS)))


def _bisected(fails: BoolArray, levels: int) -> FloatArray:
    """How many of the values a bisection leaves behind, shape (n,)."""
    rows = np.arange(len(fails))
    behind = np.zeros(len(fails), dtype=np.int64)
    for level in reversed(range(levels)):
        middle = behind + 2**level
        behind = np.where(fails[rows, middle - 1], middle, behind)
    return behind.astype(np.float64)
