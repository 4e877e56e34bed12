"""Tables of allowed combinations over numbered variables, and joining them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from autotune.space.arrays import Indices

MAX_ROWS = 2_000_000
"""Largest table that is ever built; about 16 MB per variable in it."""
_MAX_CODE = 2**62


class TooWide(Exception):
    """A table would have more than `MAX_ROWS` rows; carries how many and what it ties together."""

    def __init__(self, rows: int, names: frozenset[str]) -> None:
        super().__init__(rows, names)
        self.rows = rows
        self.names = names


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """The allowed combinations of a few variables.

    Attributes:
        variables: Numbers of the variables, one per column.
        rows: Shape (m, len(variables)), distinct combinations of states.
        names: The constraints it stems from.
        source: The bucket that it is the message of; None for a constraint itself.
    """

    variables: tuple[int, ...]
    rows: Indices
    names: frozenset[str]
    source: int | None = None

    def columns(self, variables: Sequence[int]) -> Indices:
        """The columns of some of the variables, shape (m, len(variables))."""
        return self.rows[:, [self.variables.index(v) for v in variables]]


def codes(rows: Indices, sizes: Sequence[int]) -> Indices:
    """One integer per row, equal exactly for equal rows and ordered like the rows."""
    code = np.zeros(len(rows), dtype=np.intp)
    bound = 1
    for column, size in zip(rows.T, sizes, strict=True):
        if bound * size >= _MAX_CODE:
            distinct, code = np.unique(code, return_inverse=True)
            bound = len(distinct)
        code = code * size + column
        bound *= size
    return code


def match(rows: Indices, within: Indices, sizes: Sequence[int]) -> Indices:
    """For each row its position in sorted, distinct rows that contain it."""
    both = codes(np.concatenate([within, rows]), sizes)
    return np.searchsorted(both[: len(within)], both[len(within) :])


def join_all(relations: Sequence[Relation], sizes: Sequence[int]) -> Relation:
    """The combinations that all relations allow.

    Args:
        relations: At least one; they should have variables in common.
        sizes: Number of states by variable.

    Raises:
        TooWide: If a table on the way would have more than `MAX_ROWS` rows.
    """
    waiting = sorted(relations, key=lambda relation: len(relation.rows))
    joined = waiting.pop(0)
    while waiting:
        nearest = waiting[0]
        if len(waiting) > 1:
            nearest = min(waiting, key=lambda r: _Matching.of(joined, r, sizes).total)
        waiting = [relation for relation in waiting if relation is not nearest]
        joined = _join(joined, nearest, sizes)
    return joined


@dataclass(frozen=True, slots=True, kw_only=True)
class _Matching:
    """Which rows of two relations agree in their shared variables.

    Attributes:
        order: The rows of the right relation, sorted by what is shared.
        first: For each left row its first match in that order.
        matches: For each left row the number of matches.
    """

    order: Indices
    first: Indices
    matches: Indices

    @property
    def total(self) -> int:
        """Rows of the joined relation."""
        return int(self.matches.sum())

    @classmethod
    def of(cls, left: Relation, right: Relation, sizes: Sequence[int]) -> _Matching:
        shared = [v for v in left.variables if v in right.variables]
        keys = codes(
            np.concatenate([left.columns(shared), right.columns(shared)]),
            [sizes[v] for v in shared],
        )
        left_keys, right_keys = keys[: len(left.rows)], keys[len(left.rows) :]
        order = np.argsort(right_keys, kind="stable")
        right_keys = right_keys[order]
        first = np.searchsorted(right_keys, left_keys, side="left")
        matches = np.searchsorted(right_keys, left_keys, side="right") - first
        return cls(order=order, first=first, matches=matches)


def _join(left: Relation, right: Relation, sizes: Sequence[int]) -> Relation:
    names = left.names | right.names
    matching = _Matching.of(left, right, sizes)
    total, matches = matching.total, matching.matches
    if total > MAX_ROWS:
        raise TooWide(total, names)
    left_rows = np.repeat(np.arange(len(left.rows)), matches)
    offsets = np.arange(total) - np.repeat(np.cumsum(matches) - matches, matches)
    right_rows = matching.order[np.repeat(matching.first, matches) + offsets]
    added = [v for v in right.variables if v not in left.variables]
    rows = np.concatenate([left.rows[left_rows], right.columns(added)[right_rows]], axis=1)
    return Relation(variables=(*left.variables, *added), rows=rows, names=names)


def consistent(relations: Sequence[Relation], sizes: Sequence[int]) -> list[Relation]:
    """Drop the rows with a state that another relation does not allow, until none is left.

    Partial products that cannot be completed go this way, before they are joined with anything.
    """
    read = {variable for relation in relations for variable in relation.variables}
    possible = {variable: np.ones(sizes[variable], dtype=np.bool_) for variable in read}
    reduced = list(relations)
    changed = True
    while changed:
        changed = False
        for i, relation in enumerate(reduced):
            columns = relation.rows.T
            kept = np.ones(len(relation.rows), dtype=np.bool_)
            for variable, column in zip(relation.variables, columns, strict=True):
                kept &= possible[variable][column]
            if not kept.all():
                reduced[i] = replace(relation, rows=relation.rows[kept])
            for variable, column in zip(relation.variables, reduced[i].rows.T, strict=True):
                seen = np.zeros_like(possible[variable])
                seen[column] = True
                if (possible[variable] & ~seen).any():
                    possible[variable] &= seen
                    changed = True
    return reduced
