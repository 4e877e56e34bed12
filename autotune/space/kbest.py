"""Alternatives in the order of their cost, found one after the other.

References:
    L. Huang, D. Chiang, "Better k-best parsing", IWPT 2005, algorithm 3.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Rows: TypeAlias = Iterator[tuple[float, int]]
"""Costs and rows of one group, cheapest first; each cost is with the best of all that follows."""


@dataclass(slots=True, kw_only=True)
class Alternatives:
    """The ways to choose one variable and everything that depends on it.

    Attributes:
        variable: The variable; None where nothing itself is chosen.
        rows: See `Rows`.
        state: The state of the variable in a row.
        parts: What depends on the choice of a row.
    """

    variable: int | None
    rows: Rows
    state: Callable[[int], int]
    parts: Callable[[int], Sequence[Alternatives]]
    _found: list[tuple[float, int, tuple[int, ...]]] = field(default_factory=list)
    _heap: list[tuple[float, int, tuple[int, ...]]] = field(default_factory=list)
    _parts: dict[int, Sequence[Alternatives]] = field(default_factory=dict)

    def cost(self, rank: int) -> float | None:
        """Cost of the alternative with a rank, 0 the cheapest; None when there are fewer."""
        while len(self._found) <= rank:
            if not self._advance():
                return None
        return self._found[rank][0]

    def assign(self, rank: int, states: MutableMapping[int, int]) -> None:
        """Write the states of an alternative whose cost was asked before."""
        _, row, ranks = self._found[rank]
        if self.variable is not None:
            states[self.variable] = self.state(row)
        parts = self._parts_of(row)
        for part, below in zip(parts, ranks or (0,) * len(parts), strict=True):
            part.cost(below)
            part.assign(below, states)

    def _parts_of(self, row: int) -> Sequence[Alternatives]:
        if row not in self._parts:
            self._parts[row] = self.parts(row)
        return self._parts[row]

    def _advance(self) -> bool:
        """Find one more alternative; successors are looked for only when one more is needed."""
        if not self._found or not any(self._found[-1][2]):
            first = next(self.rows, None)
            if first is not None:
                heapq.heappush(self._heap, (*first, ()))
        if self._found:
            self._push_successors(*self._found[-1])
        if not self._heap:
            return False
        self._found.append(heapq.heappop(self._heap))
        return True

    def _push_successors(self, cost: float, row: int, ranks: tuple[int, ...]) -> None:
        """Worsen one part by one rank; only from the last worsened part on, so each comes once."""
        parts = self._parts_of(row)
        ranks = ranks or (0,) * len(parts)
        last = max((i for i, rank in enumerate(ranks) if rank), default=0)
        for i in range(last, len(parts)):
            now, worse = parts[i].cost(ranks[i]), parts[i].cost(ranks[i] + 1)
            if now is not None and worse is not None:
                changed = (*ranks[:i], ranks[i] + 1, *ranks[i + 1 :])
                heapq.heappush(self._heap, (cost - now + worse, row, changed))
