"""Constraints and conditions as relations over the states of units."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autotune.errors import InvalidInput
from autotune.space.arrays import Indices, Truth
from autotune.space.constraints import (
    Condition,
    Constraint,
    Divides,
    Predicate,
    Product,
)
from autotune.space.graph import FactorGraph
from autotune.space.products import add_divides, add_product
from autotune.space.relations import MAX_ROWS, TooWide


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What a predicate reads of one unit.

    Attributes:
        unit: Number of the unit.
        members: The parameters that are read.
        cells: Value numbers of these parameters, shape (c, len(members)), distinct rows.
        of_state: The cell of each state, shape (unit.size,).
    """

    unit: int
    members: tuple[str, ...]
    cells: Indices
    of_state: Indices


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A predicate's answers.

    Attributes:
        predicate: What was tabulated.
        parts: What it reads, by unit.
        truth: Shape (c_0, c_1, …), one axis per part.
    """

    predicate: Predicate
    parts: tuple[Part, ...]
    truth: Truth

    def holds(self, values: Mapping[str, int]) -> bool | None:
        """The answer for value numbers by parameter; None when a compound forbids them."""
        where = []
        for part in self.parts:
            wanted = [values[name] for name in part.members]
            if len(part.members) == 1 and len(part.cells) > wanted[0] == part.cells[wanted[0], 0]:
                where.append(wanted[0])
                continue
            found = np.flatnonzero((part.cells == wanted).all(axis=1))
            if len(found) == 0:
                return None
            where.append(int(found[0]))
        return bool(self.truth[tuple(where)])


def add_constraint(graph: FactorGraph, constraint: Constraint) -> Table | None:
    """Compile a constraint into a graph.

    Returns:
        The answers of a predicate; None for the other kinds.

    Raises:
        InvalidInput: If it cannot be compiled; says why and what to do.
    """
    try:
        match constraint:
            case Product():
                add_product(graph, constraint)
            case Divides():
                add_divides(graph, constraint)
            case Predicate():
                return _add_predicate(graph, constraint)
    except TooWide as wide:
        raise _too_wide(constraint.name, wide.rows) from None
    return None


def add_condition(graph: FactorGraph, condition: Condition) -> None:
    """Compile a condition: active, or at its fixed value.

    Raises:
        InvalidInput: If it ties too many combinations together.
    """
    owner = graph.unit_of(condition.parameter)
    numbers = sorted({owner, *(graph.unit_of(name) for name in condition.active_when)})
    shape = [graph.sizes[number] for number in numbers]
    if math.prod(shape) > MAX_ROWS:
        raise _too_wide(condition.name, math.prod(shape))
    states = dict(zip(numbers, np.indices(shape).reshape(len(shape), -1), strict=True))
    active = np.ones(math.prod(shape), dtype=np.bool_)
    for name, wanted in condition.active_when.items():
        active &= np.isin(_value_numbers(graph, name, states), _indices(graph, name, wanted))
    inactive = graph.units[owner].inactive
    if inactive is not None:
        allowed = active != (states[owner] == inactive)
    else:
        fixed = graph.domains[condition.parameter].index(condition.otherwise)
        allowed = active | (_value_numbers(graph, condition.parameter, states) == fixed)
    rows = np.stack([states[number][allowed] for number in numbers], axis=1)
    graph.add(numbers, rows, condition.name)


def _value_numbers(graph: FactorGraph, name: str, states: Mapping[int, Indices]) -> Indices:
    unit = graph.unit_of(name)
    return graph.units[unit].indices(name, states[unit])


def _indices(graph: FactorGraph, name: str, values: Sequence[Any]) -> Indices:
    return graph.domains[name].indices(values)


def _add_predicate(graph: FactorGraph, predicate: Predicate) -> Table:
    parts = tuple(
        _part(graph, unit, members) for unit, members in graph.units_of(predicate.reads).items()
    )
    shape = tuple(len(part.cells) for part in parts)
    if math.prod(shape) > MAX_ROWS:
        raise TooWide(math.prod(shape), frozenset((predicate.name,)))
    truth = _ask(graph, predicate, parts, shape)
    by_state = truth[np.ix_(*(part.of_state for part in parts))]
    if by_state.size > MAX_ROWS:
        raise TooWide(by_state.size, frozenset((predicate.name,)))
    graph.add([part.unit for part in parts], np.argwhere(by_state), predicate.name)
    return Table(predicate=predicate, parts=parts, truth=truth)


def _part(graph: FactorGraph, unit: int, members: tuple[str, ...]) -> Part:
    states = np.arange(graph.sizes[unit])
    columns = [graph.units[unit].indices(name, states) for name in members]
    cells, of_state = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    return Part(unit=unit, members=members, cells=cells, of_state=of_state.reshape(-1))


def _ask(
    graph: FactorGraph, predicate: Predicate, parts: Sequence[Part], shape: tuple[int, ...]
) -> Truth:
    where = np.indices(shape).reshape(len(shape), -1)
    columns = {
        name: graph.domains[name].take(part.cells[cells, i])
        for part, cells in zip(parts, where, strict=True)
        for i, name in enumerate(part.members)
    }
    what = f"constraint {predicate.name!r}"
    try:
        answer = np.asarray(predicate.holds(**columns))
    except Exception as error:
        raise InvalidInput(
            what,
            f"its function must accept arrays of {', '.join(predicate.reads)} by keyword, "
            f"it raised {type(error).__name__}: {error}",
        ) from error
    if answer.dtype != np.bool_ or answer.shape not in ((), (where.shape[1],)):
        raise InvalidInput(
            what,
            f"its function must return a boolean array of shape ({where.shape[1]},), got "
            f"{answer.dtype} of shape {answer.shape}; use &, | and ~, not and, or and not",
        )
    return np.broadcast_to(answer, where.shape[1]).reshape(shape).copy()


def _too_wide(name: str, rows: int) -> InvalidInput:
    return InvalidInput(
        f"constraint {name!r}",
        f"it ties {rows:,} combinations together, at most {MAX_ROWS:,} can be tabulated; let it "
        "read fewer parameters or fewer values of them, or split it into several constraints",
    )
