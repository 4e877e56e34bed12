"""Drawing valid configs uniformly and walking through all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.space.arrays import Indices
from autotune.space.compiled import Compiled

_MAX_INT64 = 2**63 - 1


def draw(compiled: Compiled, n: int, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Draw n configs: the discrete part uniform over the valid set, floats independent.

    Returns:
        One array of shape (n,) per parameter.
    """
    numbers = compiled.unrank([random_below(size, n, rng) for size in compiled.sizes])
    places = {name: rng.random(n) for name in compiled.continuous}
    return columns(compiled, numbers, places)


def columns(
    compiled: Compiled, numbers: Mapping[str, Indices], places: Mapping[str, NDArray[np.float64]]
) -> dict[str, NDArray[Any]]:
    """Value numbers, and places on [0, 1] of floats, as arrays of values in declaration order."""
    values = {}
    for name in compiled.domains:
        if name in compiled.discrete:
            values[name] = compiled.discrete[name].take(numbers[name])
            continue
        values[name] = compiled.continuous[name].at(places[name])
        activity = compiled.activities.get(name)
        if activity is not None:
            active = activity.active_rows(numbers)
            values[name] = np.where(active, values[name], activity.otherwise)
    return values


def random_below(size: int, n: int, rng: np.random.Generator) -> NDArray[Any]:
    """Draw n integers uniformly from [0, size), of any size, without bias."""
    if size <= _MAX_INT64:
        return rng.integers(0, size, n)
    bits = (size - 1).bit_length()
    drawn = np.empty(n, dtype=np.object_)
    for i in range(n):
        value = size
        while value >= size:  # less than two rounds on average
            value = int.from_bytes(rng.bytes((bits + 7) // 8), "little") & ((1 << bits) - 1)
        drawn[i] = value
    return drawn


def walk(compiled: Compiled, chunk_size: int) -> Iterator[dict[str, NDArray[Any]]]:
    """Every valid config of a discrete space once, in a fixed order, chunk by chunk."""
    total = compiled.total
    for start in range(0, total, chunk_size):
        stop = min(start + chunk_size, total)
        kind: Any = np.int64 if stop <= _MAX_INT64 else np.object_
        numbers = np.arange(stop - start, dtype=kind) + start
        yield columns(compiled, compiled.unrank(compiled.split(numbers)), {})
