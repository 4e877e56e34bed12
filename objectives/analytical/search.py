"""Bisection of many falling functions at once, several levels per call where they are few."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from objectives.physics.arrays import FloatArray

OCTAVES, BITS = 36, 8
"""The grid: 2^8 steps of a tenth over 36 doublings. Between two points a line is drawn."""

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
    return 8 if size <= 8 else 4 if size <= 128 else 1


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
    """The smallest value at which each function is near its value at infinity, shape (n,).

    The functions fall about linearly with the reciprocal and are convex in it, so that a line
    between two grid points is never below them: what it calls enough is enough.

    Args:
        function: Falling; takes and gives arrays of shape (n, `values_at_once`).
        start: The grid's first value, shape (n,); never enough.
        levels: Of the bisection per call.
        tolerance: How near, as a share.
    """
    rows = np.arange(len(start))
    infinite = np.full((len(start), 1), INFINITE)
    several = levels > 1
    end = infinite if several else function(infinite)
    low, below = np.zeros(len(start)), np.full(len(start), np.inf)
    above = end[:, 0]
    for level in range(0, BITS, levels):
        width = 2 ** (BITS - level - levels)
        tried = grid_value(start[:, None], low[:, None] + width * np.arange(1, 2**levels))
        values = function(np.hstack([tried, infinite]) if several else tried)
        if several:
            end = values[:, -1:]
            above = end[:, 0] if level == 0 else above
        known = np.column_stack([below, values[:, : tried.shape[1]], above])
        behind = np.zeros(len(start), dtype=np.int64)
        for bit in reversed(range(levels)):
            middle = behind + 2**bit
            fails = known[rows, middle] > (1 + tolerance) * end[:, 0]
            behind = np.where(fails, middle, behind)
        below, above = known[rows, behind], known[rows, behind + 1]
        low = low + width * behind
    share = _crossing(below, above, (1 + tolerance) * end[:, 0])
    first, last = 1 / grid_value(start, low), 1 / grid_value(start, low + 1)
    return np.asarray(1 / (last + share * (first - last)))


def grid_value(start: FloatArray, point: FloatArray) -> FloatArray:
    """The value at a grid point.

    Args:
        start: The grid's first value.
        point: 0 to 2^BITS.
    """
    return np.asarray(start * np.exp2(point * (OCTAVES / 2**BITS)))


def _crossing(below: FloatArray, above: FloatArray, goal: FloatArray) -> FloatArray:
    """How far from the upper to the lower grid point a line reaches the goal, 0 to 1."""
    drop = below - above
    usable = np.isfinite(drop) & (drop > 0)
    return np.where(usable, (goal - above) / np.where(usable, drop, 1.0), 0.0)
