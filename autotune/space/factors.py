"""Constraints and conditions as relations over the states of units."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.errors import InvalidInput
from autotune.space.constraints import (
    Condition,
    Constraint,
    Divides,
    Predicate,
    Product,
    Truth,
)
from autotune.space.domains import DiscreteDomain, Indices
from autotune.space.ordering import arrangement
from autotune.space.relations import MAX_ROWS, Relation, TooWide
from autotune.space.units import Unit

_MAX_PRODUCT = 2**62


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


@dataclass(slots=True)
class FactorGraph:
    """Relations over numbered variables; the first ones are the units, then auxiliary ones.

    Attributes:
        domains: The discrete parameters.
        units: The units, by number.
        sizes: Number of states by variable.
        relations: What has been compiled so far.
        scopes: The units that each constraint reads, by name.
    """

    domains: Mapping[str, DiscreteDomain]
    units: tuple[Unit, ...]
    sizes: list[int] = field(default_factory=list)
    relations: list[Relation] = field(default_factory=list)
    scopes: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sizes = [unit.size for unit in self.units]

    def announce(self, name: str, reads: Sequence[str]) -> None:
        """Say what a constraint will read, for a good order of the products."""
        self.scopes[name] = tuple(self.units_of(reads))

    def chained(self, name: str, parameters: Sequence[str]) -> dict[int, tuple[str, ...]]:
        """The units that set some parameters, in the order in which to multiply them."""
        units = self.units_of(parameters)
        others = [scope for other, scope in self.scopes.items() if other != name]
        return {unit: units[unit] for unit in arrangement(list(units), others)}

    def unit_of(self, parameter: str) -> int:
        """Number of the unit that sets a parameter."""
        return next(i for i, unit in enumerate(self.units) if parameter in unit.members)

    def units_of(self, parameters: Sequence[str]) -> dict[int, tuple[str, ...]]:
        """The units that set some parameters, each with those of them that it sets."""
        grouped: dict[int, tuple[str, ...]] = {}
        for name in parameters:
            unit = self.unit_of(name)
            grouped[unit] = (*grouped.get(unit, ()), name)
        return grouped

    def values(self, unit: int, parameter: str) -> NDArray[Any]:
        """The parameter's value by state of the unit."""
        states = np.arange(self.sizes[unit])
        return self.domains[parameter].take(self.units[unit].indices(parameter, states))

    def add(self, variables: Sequence[int], rows: Indices, name: str) -> None:
        """Add one relation."""
        names = frozenset((name,))
        self.relations.append(Relation(variables=tuple(variables), rows=rows, names=names))


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
                _add_product(graph, constraint)
            case Divides():
                _add_divides(graph, constraint)
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


def _add_product(graph: FactorGraph, product: Product) -> None:
    *first, last = list(graph.chained(product.name, product.factors).items())
    last_values = _unit_values(graph, product.name, *last)
    if not first:
        rows = np.flatnonzero(last_values == product.equals)[:, None]
        graph.add([last[0]], rows, product.name)
        return
    variable, values = _chain(graph, product.name, dict(first), of=np.array([product.equals]))
    # a == N / b and no remainder, without forming a·b, which may overflow
    rows = _pairs(
        values,
        last_values,
        lambda a, b: (a == product.equals // b) & (product.equals % b == 0),
        product.name,
    )
    graph.add([variable, last[0]], rows, product.name)


def _add_divides(graph: FactorGraph, divides: Divides) -> None:
    if isinstance(divides.dividend, int):
        right, dividends = None, np.array([divides.dividend])
    else:
        right, dividends = _chain(
            graph, divides.name, graph.chained(divides.name, divides.dividend), of=None
        )
    left, divisors = _chain(
        graph, divides.name, graph.chained(divides.name, divides.divisor), of=dividends
    )
    if right is None or right == left:
        rows = np.flatnonzero(dividends % divisors == 0)[:, None]
        graph.add([left], rows, divides.name)
        return
    rows = _pairs(divisors, dividends, lambda a, b: b % a == 0, divides.name)
    graph.add([left, right], rows, divides.name)


def _chain(
    graph: FactorGraph, name: str, units: Mapping[int, tuple[str, ...]], of: Indices | None
) -> tuple[int, Indices]:
    """Multiply units one by one, with an auxiliary variable for each partial product.

    Only products that occur (and, with `of`, divide one of these numbers) become states, so that
    the table grows with the number of distinct products and not of combinations.

    Returns:
        The variable of the whole product and its value by state.
    """
    (variable, members), *rest = units.items()
    values = _unit_values(graph, name, variable, members)
    limit = _MAX_PRODUCT if of is None else int(of.max(initial=1))
    for unit, members in rest:
        factors = _unit_values(graph, name, unit, members)
        if of is None and int(values.max(initial=1)) * int(factors.max(initial=1)) > limit:
            raise InvalidInput(f"constraint {name!r}", f"products must stay below 2^62 ({limit})")
        rows = _pairs(values, factors, lambda a, b: a <= limit // b, name)
        products = values[rows[:, 0]] * factors[rows[:, 1]]
        distinct, state = np.unique(products, return_inverse=True)
        useful = _divides_any(distinct, of)
        renumbered = np.cumsum(useful) - 1
        kept = useful[state]
        auxiliary = len(graph.sizes)
        graph.sizes.append(max(int(useful.sum()), 1))
        rows = np.column_stack([rows[kept], renumbered[state[kept]]])
        graph.add([variable, unit, auxiliary], rows, name)
        variable, values = auxiliary, distinct[useful]
    return variable, values


def _divides_any(products: Indices, of: Indices | None) -> Truth:
    if of is None or len(products) * len(of) > MAX_ROWS:
        return np.ones(len(products), dtype=np.bool_)
    divides: Truth = (of[None, :] % products[:, None] == 0).any(axis=1)
    return divides


def _pairs(
    left: Indices, right: Indices, rule: Callable[[Indices, Indices], Truth], name: str
) -> Indices:
    if len(left) * len(right) > MAX_ROWS:
        raise TooWide(len(left) * len(right), frozenset((name,)))
    return np.argwhere(rule(left[:, None], right[None, :]))


def _unit_values(graph: FactorGraph, name: str, unit: int, members: Sequence[str]) -> Indices:
    product = np.ones(graph.sizes[unit], dtype=np.int64)
    size = 1.0
    for member in members:
        values = graph.values(unit, member)
        if values.dtype.kind != "i" or values.min() < 1:
            raise InvalidInput(
                f"constraint {name!r}",
                f"the values of {member} must be positive integers, it is "
                f"{graph.domains[member].describe()}",
            )
        size *= float(values.max())
        product = product * values
    if size > _MAX_PRODUCT:
        raise InvalidInput(f"constraint {name!r}", "products must stay below 2^62")
    return product


def _too_wide(name: str, rows: int) -> InvalidInput:
    return InvalidInput(
        f"constraint {name!r}",
        f"it ties {rows:,} combinations together, at most {MAX_ROWS:,} can be tabulated; let it "
        "read fewer parameters or fewer values of them, or split it into several constraints",
    )
