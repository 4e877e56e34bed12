"""Bisection of many falling functions at once, several levels per call where they are few."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from objectives.physics.arrays import BoolArray, FloatArray

OCTAVES, BITS = 24, 12
"""The grid: 2^12 points, 0.4 % apart, over 24 doublings."""


def levels_at_once(size: int) -> int:
    """Levels of the bisection that one call answers, with 2^levels - 1 values of each function.

    Few functions cost hardly more than one, so all values that a bisection could ask for are
    tried at once. It takes the same way whatever their number, so the result does not depend on
    what is searched together.

    Args:
        size: Functions.
    """
    return 6 if size <= 8 else 3 if size <= 128 else 1


def smallest_enough(
    too_high: Callable[[FloatArray], BoolArray], start: FloatArray, levels: int
) -> FloatArray:
    """The first grid value at which each function is low enough, shape (n,).

    Args:
        too_high: Takes 2^levels - 1 rising values of each function, shape (n, 2^levels - 1), and
            says which are not enough.
        start: The grid's first value, shape (n,).
        levels: By `levels_at_once`.
    """
    low = np.zeros(len(start))
    for level in range(0, BITS, levels):
        width = 2 ** (BITS - level - levels)
        points = low[:, None] + width * np.arange(1, 2**levels)
        fails = too_high(grid_value(start[:, None], points))
        low = low + width * _bisected(fails, levels)
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
