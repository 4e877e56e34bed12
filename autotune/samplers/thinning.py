"""A shorter history for samplers whose cost grows steeply with it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autotune.samplers.base import Fate, Observation


def thinned(past: Sequence[Observation], most: int) -> list[Observation]:
    """The newest half of what is allowed, and the best of the rest.

    Better is a smaller sum of violated constraints, then a smaller sum of the ranks in all
    losses, which needs no common scale; failed configs come last.

    Args:
        past: In the order of their numbers.
        most: How many to keep at most.

    Returns:
        In the order of their numbers; all of them where they are few enough.
    """
    if len(past) <= most:
        return list(past)
    newest = len(past) - most // 2
    old = past[:newest]
    order = np.lexsort((_rank_sums(old), _violations(old)))
    kept = sorted(order[: most - most // 2].tolist())
    return [*(old[i] for i in kept), *past[newest:]]


def _violations(past: Sequence[Observation]) -> np.ndarray:
    return np.array(
        [
            sum(max(value, 0.0) for value in each.constraints)
            if each.fate is Fate.MEASURED
            else np.inf
            for each in past
        ]
    )


def _rank_sums(past: Sequence[Observation]) -> np.ndarray:
    sums = np.zeros(len(past))
    rows = np.array([i for i, each in enumerate(past) if each.fate is Fate.MEASURED], dtype=int)
    if len(rows):
        losses = np.array([past[i].losses for i in rows])
        sums[rows] = losses.argsort(axis=0, kind="stable").argsort(axis=0).sum(axis=1)
    return sums
