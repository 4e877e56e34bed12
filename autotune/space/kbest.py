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

    An alternative is a row and, for each part that depends on it, the rank of the part's own
    alternative. The successors of one are those with the next rank in one part; they are looked
    for only when one more alternative is asked for.

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
    _exhausted: bool = False

    def cost(self, rank: int) -> float | None:
        """Cost of the alternative with a rank, 0 the cheapest; None when there are fewer."""
        # A stack of its own, for a chain of constraints may be deeper than Python's.
        waiting = [] if self._known(rank) else [(self, rank)]
        while waiting:
            node, wanted = waiting[-1]
            if node._known(wanted):
                waiting.pop()
            elif missing := node._missing():
                waiting += missing
            else:
                node._advance()
        return self._found[rank][0] if rank < len(self._found) else None

    def assign(self, rank: int, states: MutableMapping[int, int]) -> None:
        """Write the states of an alternative whose cost was asked before."""
        waiting = [(self, rank)]
        while waiting:
            node, wanted = waiting.pop()
            if not node._found:
                node._advance()
            _, row, ranks = node._found[wanted]
            if node.variable is not None:
                states[node.variable] = node.state(row)
            parts = node._parts_of(row)
            waiting += zip(parts, ranks or (0,) * len(parts), strict=True)

    def _known(self, rank: int) -> bool:
        return self._exhausted or rank < len(self._found)

    def _parts_of(self, row: int) -> Sequence[Alternatives]:
        if row not in self._parts:
            self._parts[row] = self.parts(row)
        return self._parts[row]

    def _steps(self) -> Iterator[tuple[int, Alternatives, int]]:
        """Which part of the last alternative found may step to which rank.

        Only from the last part that is not at its cheapest on, so that each alternative is
        reached in one way.
        """
        if not self._found:
            return
        _, row, ranks = self._found[-1]
        parts = self._parts_of(row)
        last = max((i for i, rank in enumerate(ranks) if rank), default=0)
        for i in range(last, len(parts)):
            yield i, parts[i], (ranks[i] if ranks else 0) + 1

    def _missing(self) -> list[tuple[Alternatives, int]]:
        """What has to be known of the parts before one more alternative can be found."""
        return [(part, rank) for _, part, rank in self._steps() if not part._known(rank)]

    def _advance(self) -> None:
        """Find one more alternative, or that there is none."""
        for i, part, rank in self._steps():
            now, worse = part.cost(rank - 1), part.cost(rank)
            if now is not None and worse is not None:
                cost, row, ranks = self._found[-1]
                ranks = ranks or (0,) * len(self._parts_of(row))
                changed = (*ranks[:i], rank, *ranks[i + 1 :])
                heapq.heappush(self._heap, (cost - now + worse, row, changed))
        if not self._found or not any(self._found[-1][2]):
            first = next(self.rows, None)
            if first is not None:
                heapq.heappush(self._heap, (*first, ()))
        if self._heap:
            self._found.append(heapq.heappop(self._heap))
        else:
            self._exhausted = True
