"""In which order variables are eliminated and products multiplied; only speed depends on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

Neighbours: TypeAlias = dict[int, set[int]]

_DRAWS = 4
"""How many disturbed orders are offered after the two plain ones."""


def neighbourhood(scopes: Iterable[Iterable[int]]) -> Neighbours:
    """For each variable the others that some scope has together with it."""
    neighbours: Neighbours = {}
    for scope in scopes:
        members = set(scope)
        for variable in members:
            neighbours.setdefault(variable, set()).update(members - {variable})
    return neighbours


def elimination_orders(
    scopes: Sequence[Sequence[int]], sizes: Sequence[int]
) -> Iterator[list[int]]:
    """Orders worth trying, the most promising first.

    Min-weight and min-fill, by the total size of their tables were they full, then min-weight
    with a few sizes changed, for spaces where full tables mislead.
    """
    found = [_greedy(scopes, sizes, cost) for cost in (_weight, _fill)]
    yield from (order for _, order in sorted(found))
    for draw in range(_DRAWS):
        changed = [
            size ** (0.4 + 1.2 * ((v * 7 + draw * 5) % 11) / 10) for v, size in enumerate(sizes)
        ]
        yield _greedy(scopes, changed, _weight)[1]


Cost: TypeAlias = Callable[[int, Neighbours, Sequence[float]], tuple[float, float]]


def _greedy(
    scopes: Sequence[Sequence[int]], sizes: Sequence[float], cost: Cost
) -> tuple[float, list[int]]:
    neighbours = neighbourhood(scopes)
    order: list[int] = []
    total = 0.0
    while neighbours:
        chosen = min(sorted(neighbours), key=lambda v: cost(v, neighbours, sizes))
        around = neighbours.pop(chosen)
        total += math.exp(min(_log_size(chosen, around, sizes), 500.0))
        for variable in around:
            neighbours[variable] |= around
            neighbours[variable] -= {chosen, variable}
        order.append(chosen)
    return total, order


def _log_size(variable: int, around: set[int], sizes: Sequence[float]) -> float:
    return sum(math.log(max(sizes[v], 1)) for v in (variable, *around))


def _weight(variable: int, neighbours: Neighbours, sizes: Sequence[float]) -> tuple[float, float]:
    return (_log_size(variable, neighbours[variable], sizes), 0.0)


def _fill(variable: int, neighbours: Neighbours, sizes: Sequence[float]) -> tuple[float, float]:
    around = neighbours[variable]
    missing = sum(len(around - neighbours[v]) - 1 for v in around)
    return (missing, _log_size(variable, around, sizes))


def arrangement(variables: Sequence[int], scopes: Iterable[Iterable[int]]) -> list[int]:
    """Line variables up so that those which share other constraints stand together.

    A chain of partial products ties each factor to its neighbours in the chain, so that a
    constraint between distant ones would have to be remembered all the way. Greedy: always the
    variable that leaves the fewest with neighbours still to come.
    """
    around = neighbourhood(scopes)
    inside = set(variables)
    near = {v: _linked(v, around, inside) for v in variables}
    line: list[int] = []
    rest = list(variables)
    while rest:
        placed = set(line)

        def open_after(v: int, placed: set[int] = placed) -> tuple[int, int]:
            still = {u for u in (placed | {v}) if near[u] - placed - {v}}
            return (len(still), -len(near[v] & placed))

        chosen = min(rest, key=open_after)
        rest.remove(chosen)
        line.append(chosen)
    return line


def _linked(variable: int, around: Neighbours, inside: set[int]) -> set[int]:
    """Those of `inside` that share a constraint with a variable, or a neighbour outside."""
    direct = around.get(variable, set())
    linked = direct & inside
    for other in direct - inside:
        linked |= around[other] & inside
    return linked - {variable}
