"""The nearest valid config: min-cost elimination over the same tables that count.

The cost of a config is the sum over parameters of its distance from what was wanted: on the
encoded scale for ordered values, 0 or 1 for others, nothing for parameters that are inactive or
were not given.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from autotune.space.arrays import Floats
from autotune.space.compiled import Compiled
from autotune.space.domains import ContinuousDomain, DiscreteDomain, GridDomain
from autotune.space.kbest import Alternatives, Rows
from autotune.space.units import Unit

_UNASKED = 1e-3
"""Weight of the distance from a default, so that it decides only between equals."""
_LISTED = 4096
"""Untied ranges with more values than this are searched outwards from the wanted value."""
_FIRST_NUDGE = 1e-6
"""How far, on [0, 1], a float is moved at first when the config itself is excluded."""
_NUDGES = 100_000
"""How many neighbouring floats are tried before another discrete config is taken."""


def nearest(
    compiled: Compiled,
    wanted: Mapping[str, Any],
    defaults: Mapping[str, Any],
    is_free: Callable[[Mapping[str, Any]], bool] | None = None,
) -> dict[str, Any] | None:
    """The valid config of least cost that is free.

    Args:
        compiled: The space.
        wanted: Any mapping; what it lacks costs nothing, what is no parameter is ignored.
        defaults: Values for what is not wanted, which decide between equals.
        is_free: Whether a config may be returned; each may when not given.

    Returns:
        The config in plain values; None when no discrete config is free.
    """
    asked = {name: value for name, value in wanted.items() if name in compiled.domains}
    best = _alternatives(compiled, asked, defaults)
    floats = {
        name: _place(domain, asked.get(name, defaults.get(name)))
        for name, domain in compiled.continuous.items()
    }
    for rank in itertools.count():
        if best.cost(rank) is None:
            return None
        states: dict[int, int] = {}
        best.assign(rank, states)
        for config in _with_floats(compiled, _numbers(compiled, states), floats, asked):
            if is_free is None or is_free(config):
                return config
    return None


def _numbers(compiled: Compiled, states: Mapping[int, int]) -> dict[str, int]:
    return {
        name: int(unit.lookup[name][states[number]]) if unit.lookup else states[number]
        for number, unit in enumerate(compiled.units)
        for name in unit.members
    }


def _place(domain: ContinuousDomain, wanted: Any) -> float:
    place = domain.place(wanted)
    return 0.5 if place is None else place


def _with_floats(
    compiled: Compiled,
    numbers: Mapping[str, int],
    floats: Mapping[str, float],
    asked: Mapping[str, Any],
) -> Iterator[dict[str, Any]]:
    """The config with its floats where wanted, then with one of them further and further away."""
    config: dict[str, Any] = {}
    movable = []
    for name, domain in compiled.domains.items():
        if not isinstance(domain, ContinuousDomain):
            config[name] = compiled.discrete[name].value(numbers[name])
            continue
        activity = compiled.activities.get(name)
        if activity is not None and not activity.active(numbers):
            config[name] = activity.otherwise
        elif domain.contains(asked.get(name)):
            config[name] = float(asked[name])
        else:
            config[name] = float(domain.at(np.asarray(floats[name])))
        if activity is None or activity.active(numbers):
            movable.append(name)
    yield config
    for tries in range(_NUDGES if movable else 0):
        name = movable[tries % len(movable)]
        # Steps of the golden ratio never meet again, so that each try is another value.
        far = _FIRST_NUDGE * 2.0 ** min(tries // len(movable), 18)
        offset = far * ((tries * 0.6180339887498949) % 1.0 + 0.5)
        place = floats[name] + offset if floats[name] < 0.5 else floats[name] - offset
        moved = float(compiled.continuous[name].at(np.asarray(place)))
        yield {**config, name: moved}


def _alternatives(
    compiled: Compiled, asked: Mapping[str, Any], defaults: Mapping[str, Any]
) -> Alternatives:
    """Everything that can be chosen: the independent components side by side."""
    costs = {
        bucket.variable: unit_costs(
            compiled.units[bucket.variable], compiled.discrete, asked, defaults
        )
        for bucket in compiled.buckets
        if bucket.variable < len(compiled.units)
    }
    totals = _cheapest(compiled, costs)
    parts = [_group(compiled, totals, root, 0) for root in compiled.roots]
    parts += [_untied(compiled, unit, asked, defaults) for unit in compiled.free]
    first = sum(part.cost(0) or 0.0 for part in parts)
    return Alternatives(
        variable=None, rows=iter([(first, 0)]), state=lambda row: row, parts=lambda row: parts
    )


def _cheapest(compiled: Compiled, costs: Mapping[int, Floats]) -> list[Floats]:
    """For each bucket the least cost of every row with all that depends on it, shape (rows,)."""
    totals: list[Floats] = []
    least: list[Floats] = []
    for bucket in compiled.buckets:
        own = costs.get(bucket.variable)
        total = np.zeros(len(bucket.states)) if own is None else own[bucket.states]
        for child, groups in bucket.children:
            total = total + least[child][groups]
        totals.append(total)
        least.append(np.minimum.reduceat(total, bucket.starts))
    return totals


def _group(compiled: Compiled, totals: Sequence[Floats], number: int, group: int) -> Alternatives:
    bucket = compiled.buckets[number]
    start = int(bucket.starts[group])
    last = group + 1 == len(bucket.starts)
    end = len(bucket.states) if last else int(bucket.starts[group + 1])
    return Alternatives(
        variable=bucket.variable,
        rows=_sorted(totals[number], start, end),
        state=lambda row: int(bucket.states[row]),
        parts=lambda row: [
            _group(compiled, totals, child, int(groups[row])) for child, groups in bucket.children
        ],
    )


def _sorted(costs: Floats, start: int, end: int) -> Rows:
    for i in np.argsort(costs[start:end], kind="stable").tolist():
        yield float(costs[start + i]), start + i


def _untied(
    compiled: Compiled, number: int, asked: Mapping[str, Any], defaults: Mapping[str, Any]
) -> Alternatives:
    unit = compiled.units[number]
    domain = compiled.discrete.get(unit.name)
    rows: Rows
    if isinstance(domain, GridDomain) and domain.size > _LISTED:
        place = domain.place(asked.get(unit.name, defaults.get(unit.name)))
        rows = _outwards(domain, 0.0 if place is None else place)
    else:
        costs = unit_costs(unit, compiled.discrete, asked, defaults)
        rows = _sorted(costs, 0, unit.size)
    return Alternatives(variable=number, rows=rows, state=lambda row: row, parts=lambda row: [])


def _outwards(domain: GridDomain, place: float) -> Rows:
    """All values of a wide range by their distance from a place."""
    below = domain.nearest(place)
    above = below + 1
    while below >= 0 or above < domain.size:
        near = [i for i in (below, above) if 0 <= i < domain.size]
        costs = np.abs(domain.placed(np.array(near)) - place)
        chosen = int(np.argmin(costs))
        yield float(costs[chosen]), near[chosen]
        if near[chosen] == below:
            below -= 1
        else:
            above += 1


def unit_costs(
    unit: Unit,
    domains: Mapping[str, DiscreteDomain],
    wanted: Mapping[str, Any],
    defaults: Mapping[str, Any],
) -> Floats:
    """The cost of each state of a unit, shape (unit.size,)."""
    states = np.arange(unit.size)
    costs = np.zeros(unit.size)
    for name in unit.members:
        if name in wanted:
            costs += distances(domains[name], wanted[name])[unit.indices(name, states)]
        elif name in defaults:
            unasked = distances(domains[name], defaults[name])[unit.indices(name, states)]
            costs += _UNASKED * unasked
    if unit.inactive is not None:
        costs[unit.inactive] = 0.0
    return costs


def distances(domain: DiscreteDomain, wanted: Any) -> Floats:
    """How far each value is from a wanted one, shape (size,); all 0 where nothing is nearer."""
    number = domain.index(wanted)
    places = domain.places
    if places is not None:
        place = places[number] if number is not None else domain.place(wanted)
        return np.zeros(domain.size) if place is None else np.abs(places - place)
    costs = np.ones(domain.size)
    if number is None:
        return np.zeros(domain.size)
    costs[number] = 0.0
    return costs
