"""Variable elimination over the relations: exact counts and the i-th valid combination.

Bucket elimination on relations that list only the allowed combinations, so that each table is as
long as what is possible and not as the product of the domains. A bucket's rows are grouped by the
values of its separator, the variables that are still to be eliminated; each group is what its
parent may ask for.

References:
    R. Dechter, "Bucket elimination: a unifying framework for reasoning", AI 113 (1999).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.space.arrays import Indices
from autotune.space.ordering import elimination_orders
from autotune.space.relations import (
    Relation,
    TooWide,
    codes,
    consistent,
    join_all,
    match,
)

_MAX_EXACT = 2.0**62


class Contradiction(Exception):
    """No combination satisfies some relations; carries the names of their constraints."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__(names)
        self.names = names


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """What remains to be chosen for one variable once its separator is known.

    Attributes:
        variable: The variable.
        states: Shape (rows,), its state in each row.
        starts: Shape (groups,), the first row of each group of equal separator.
        children: Earlier buckets whose choice depends on this one, each with the group that
            every row asks of it, shape (rows,).
    """

    variable: int
    states: Indices
    starts: Indices
    children: tuple[tuple[int, Indices], ...]

    def ends(self) -> Indices:
        """Shape (groups,), one past the last row of each group."""
        return np.append(self.starts[1:], len(self.states))


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many valid combinations lie below.

    Attributes:
        below: By bucket, the combinations of each group, shape (groups,).
        before: By bucket, the combinations of all rows before each row, shape (rows + 1,).
    """

    below: tuple[NDArray[Any], ...]
    before: tuple[NDArray[Any], ...]


def eliminate(relations: Sequence[Relation], sizes: Sequence[int]) -> tuple[Bucket, ...]:
    """Eliminate every variable that a relation mentions.

    Args:
        relations: The constraints.
        sizes: Number of states by variable.

    Returns:
        One bucket per variable, children before parents; rows that lead nowhere are gone.

    Raises:
        Contradiction: If nothing satisfies the relations.
        TooWide: If a table would have more than `MAX_ROWS` rows in every order tried.
    """
    reduced = consistent(relations, sizes)
    if any(len(relation.rows) == 0 for relation in reduced):
        raise Contradiction(frozenset().union(*(relation.names for relation in relations)))
    wide: TooWide | None = None
    for order in elimination_orders([relation.variables for relation in reduced], sizes):
        try:
            return _eliminate_in(order, reduced, sizes)
        except TooWide as error:
            wide = error if wide is None or error.rows < wide.rows else wide
    assert wide is not None
    raise wide


def _eliminate_in(
    order: Sequence[int], relations: Sequence[Relation], sizes: Sequence[int]
) -> tuple[Bucket, ...]:
    pool = list(relations)
    buckets: list[Bucket] = []
    for variable in order:
        here = [relation for relation in pool if variable in relation.variables]
        pool = [relation for relation in pool if variable not in relation.variables]
        bucket, message = _bucket(variable, here, sizes, number=len(buckets))
        buckets.append(bucket)
        if message.variables:
            pool.append(message)
    return _reduced(buckets)


def _bucket(
    variable: int, here: Sequence[Relation], sizes: Sequence[int], number: int
) -> tuple[Bucket, Relation]:
    joined = join_all(here, sizes)
    if len(joined.rows) == 0:
        raise Contradiction(joined.names)
    separator = tuple(sorted(v for v in joined.variables if v != variable))
    key = codes(joined.columns(separator), [sizes[v] for v in separator])
    order = np.lexsort((joined.columns([variable])[:, 0], key))
    rows, key = joined.rows[order], key[order]
    joined = Relation(variables=joined.variables, rows=rows, names=joined.names)
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    children = tuple(
        (
            relation.source,
            match(
                joined.columns(relation.variables),
                relation.rows,
                [sizes[v] for v in relation.variables],
            ),
        )
        for relation in here
        if relation.source is not None
    )
    bucket = Bucket(
        variable=variable,
        states=np.ascontiguousarray(joined.columns([variable])[:, 0]),
        starts=starts,
        children=children,
    )
    message = Relation(
        variables=separator,
        rows=joined.columns(separator)[starts],
        names=joined.names,
        source=number,
    )
    return bucket, message


def _reduced(buckets: Sequence[Bucket]) -> tuple[Bucket, ...]:
    """Drop, parents first, the groups that no row of the parent asks for."""
    reduced = list(buckets)
    for bucket in reversed(range(len(reduced))):
        children = []
        for child, groups in reduced[bucket].children:
            asked, renumbered = np.unique(groups, return_inverse=True)
            reduced[child] = _groups_only(reduced[child], asked)
            children.append((child, renumbered.reshape(-1)))
        reduced[bucket] = Bucket(
            variable=reduced[bucket].variable,
            states=reduced[bucket].states,
            starts=reduced[bucket].starts,
            children=tuple(children),
        )
    return tuple(reduced)


def _groups_only(bucket: Bucket, groups: Indices) -> Bucket:
    if len(groups) == len(bucket.starts):
        return bucket
    lengths = (bucket.ends() - bucket.starts)[groups]
    starts = np.cumsum(lengths) - lengths
    rows = np.arange(lengths.sum()) + np.repeat(bucket.starts[groups] - starts, lengths)
    return Bucket(
        variable=bucket.variable,
        states=bucket.states[rows],
        starts=starts,
        children=tuple((child, asked[rows]) for child, asked in bucket.children),
    )


def roots(buckets: Sequence[Bucket]) -> list[int]:
    """The buckets that no other asks: one per independent component."""
    asked = {child for bucket in buckets for child, _ in bucket.children}
    return [number for number in range(len(buckets)) if number not in asked]


def count(buckets: Sequence[Bucket]) -> Counts:
    """Count exactly: in 64-bit integers where they suffice, else in Python's."""
    rough = _count(buckets, [np.float64] * len(buckets))
    return _count(
        buckets,
        [np.int64 if float(before[-1]) < _MAX_EXACT else np.object_ for before in rough.before],
    )


def _count(buckets: Sequence[Bucket], kinds: Sequence[type[np.generic]]) -> Counts:
    below: list[NDArray[Any]] = []
    before: list[NDArray[Any]] = []
    for bucket, kind in zip(buckets, kinds, strict=True):
        ways = np.ones(len(bucket.states), dtype=kind)
        for child, groups in bucket.children:
            ways = ways * below[child][groups].astype(kind)
        below.append(np.add.reduceat(ways, bucket.starts))
        zero = np.zeros(1, dtype=kind)
        before.append(np.concatenate([zero, np.cumsum(ways)]))
    return Counts(below=tuple(below), before=tuple(before))


def unrank(
    buckets: Sequence[Bucket], counts: Counts, ranks: dict[int, NDArray[Any]]
) -> dict[int, Indices]:
    """The states of the valid combinations with given numbers.

    Args:
        buckets: The eliminated variables.
        counts: Their counts.
        ranks: For each root, numbers in [0, below[root][0]), shape (n,).

    Returns:
        For each variable its states, shape (n,).
    """
    wanted = {root: (np.zeros(len(r), dtype=np.intp), r) for root, r in ranks.items()}
    states: dict[int, Indices] = {}
    for number in reversed(range(len(buckets))):
        bucket, before = buckets[number], counts.before[number]
        group, rank = wanted.pop(number)
        target = before[bucket.starts[group]] + rank.astype(before.dtype)
        row = np.searchsorted(before, target, side="right") - 1
        states[bucket.variable] = bucket.states[row]
        rest = target - before[row]
        for child, groups in bucket.children:
            asked = groups[row]
            ways = counts.below[child][asked].astype(before.dtype)
            wanted[child] = (asked, rest % ways)
            rest = rest // ways
    return states
