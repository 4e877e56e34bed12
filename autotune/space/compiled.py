"""A declaration turned into tables, once per space: what every question is answered from."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.errors import InvalidInput, Problem
from autotune.space.arrays import Indices
from autotune.space.constraints import Compound, Condition, Constraint
from autotune.space.domains import ContinuousDomain, DiscreteDomain, Domain
from autotune.space.elimination import (
    Bucket,
    Contradiction,
    Counts,
    count,
    eliminate,
    roots,
    unrank,
)
from autotune.space.factors import Table, add_condition, add_constraint
from autotune.space.graph import FactorGraph
from autotune.space.relations import MAX_ROWS, Relation, TooWide
from autotune.space.units import Unit, make_units
from autotune.space.validation import discrete

_MAX_INT64 = 2**63 - 1
_EXPLAIN_S = 3.0
"""How long to look for fewer constraints to blame for a contradiction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """When a conditional parameter is active, in value numbers.

    Attributes:
        parameter: The conditional parameter.
        when: For each parameter read, the value numbers for which it is active.
        otherwise: The plain value while inactive.
    """

    parameter: str
    when: Mapping[str, frozenset[int]]
    otherwise: Any

    def active(self, values: Mapping[str, int]) -> bool:
        """Whether the parameter is active for value numbers by parameter."""
        return all(values[name] in wanted for name, wanted in self.when.items())

    def active_rows(self, values: Mapping[str, Indices]) -> NDArray[np.bool_]:
        """The same for many configs, shape (n,)."""
        masks = [np.isin(values[name], list(wanted)) for name, wanted in self.when.items()]
        return np.asarray(np.logical_and.reduce(masks))


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """Everything derived from a declaration.

    Attributes:
        domains: All parameters, in declaration order.
        discrete: The parameters with numbered values.
        continuous: The others, sorted by name.
        units: The variables chosen as one, sorted by name.
        tables: The predicates' answers, by name.
        activities: The conditions, by parameter.
        buckets: The elimination of all units that a constraint or condition ties together.
        counts: Exact counts over the buckets.
        free: Numbers of the units that nothing ties to others.
        sizes: Configs per independent component: first the roots, then the free units.
    """

    domains: Mapping[str, Domain]
    discrete: Mapping[str, DiscreteDomain]
    continuous: Mapping[str, ContinuousDomain]
    units: tuple[Unit, ...]
    tables: Mapping[str, Table]
    activities: Mapping[str, Activity]
    buckets: tuple[Bucket, ...]
    counts: Counts
    roots: tuple[int, ...]
    free: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def total(self) -> int:
        """Number of valid configs of the discrete part."""
        return math.prod(self.sizes)

    def unrank(self, ranks: Sequence[NDArray[Any]]) -> dict[str, Indices]:
        """Value numbers of valid configs.

        Args:
            ranks: For each component, numbers below its size, shape (n,).

        Returns:
            For each discrete parameter its value numbers, shape (n,).
        """
        of_root = dict(zip(self.roots, ranks, strict=False))
        states = unrank(self.buckets, self.counts, of_root)
        for unit, rank in zip(self.free, ranks[len(self.roots) :], strict=True):
            states[unit] = rank.astype(np.intp)
        return {
            name: unit.indices(name, states[number])
            for number, unit in enumerate(self.units)
            for name in unit.members
        }

    def split(self, numbers: NDArray[Any]) -> list[NDArray[Any]]:
        """Turn numbers below `total` into one number per component."""
        ranks: list[NDArray[Any]] = []
        for size in reversed(self.sizes):
            if size > _MAX_INT64 and numbers.dtype != np.object_:
                ranks.append(numbers)
                numbers = np.zeros_like(numbers)
                continue
            ranks.append(numbers % size)
            numbers = numbers // size
        return ranks[::-1]


def compile_space(
    domains: Mapping[str, Domain],
    constraints: Sequence[Constraint],
    conditions: Sequence[Condition],
    compounds: Sequence[Compound],
) -> Compiled:
    """Build the tables of a declaration without problems.

    Raises:
        InvalidInput: If nothing satisfies the constraints or they tie too much together.
    """
    numbered = discrete(domains)
    units = make_units(numbered, [c for c in conditions if c.parameter in numbered], compounds)
    graph = FactorGraph(domains=numbered, units=units)
    rules = (*constraints, *(c for c in conditions if c.parameter in numbered))
    tables = _add_all(graph, sorted(rules, key=lambda rule: rule.name))
    buckets = _eliminate(graph, compounds)
    counts = count(buckets)
    bound = {bucket.variable for bucket in buckets}
    free = tuple(number for number in range(len(units)) if number not in bound)
    tops = tuple(roots(buckets))
    return Compiled(
        domains=domains,
        discrete=numbered,
        continuous={n: d for n, d in sorted(domains.items()) if isinstance(d, ContinuousDomain)},
        units=units,
        tables=tables,
        activities={c.parameter: _activity(c, domains, numbered) for c in conditions},
        buckets=buckets,
        counts=counts,
        roots=tops,
        free=free,
        sizes=(
            *(int(counts.below[root][0]) for root in tops),
            *(units[number].size for number in free),
        ),
    )


def _add_all(graph: FactorGraph, rules: Sequence[Constraint | Condition]) -> dict[str, Table]:
    """Compile every rule, or report all that cannot be.

    Raises:
        InvalidInput: With the problems of all rules.
    """
    tables: dict[str, Table] = {}
    problems: list[Problem] = []
    cause: InvalidInput | None = None
    for rule in rules:
        graph.announce(rule.name, rule.reads)
    for rule in rules:
        try:
            if isinstance(rule, Condition):
                add_condition(graph, rule)
            elif table := add_constraint(graph, rule):
                tables[rule.name] = table
        except InvalidInput as error:
            problems += [Problem(path=rule.name, message=p.message) for p in error.problems]
            cause = cause or error
    if problems:
        raise InvalidInput("search space", problems) from cause
    return tables


def _activity(
    condition: Condition, domains: Mapping[str, Domain], numbered: Mapping[str, DiscreteDomain]
) -> Activity:
    domain = domains[condition.parameter]
    if isinstance(domain, ContinuousDomain):
        otherwise: Any = float(condition.otherwise)
    else:
        index = domain.index(condition.otherwise)
        assert index is not None
        otherwise = domain.value(index)
    return Activity(
        parameter=condition.parameter,
        when={
            name: frozenset(numbered[name].indices(values).tolist())
            for name, values in condition.active_when.items()
        },
        otherwise=otherwise,
    )


def _eliminate(graph: FactorGraph, compounds: Sequence[Compound]) -> tuple[Bucket, ...]:
    try:
        return eliminate(graph.relations, graph.sizes)
    except Contradiction as contradiction:
        names = _smallest_conflict(graph, contradiction.names)
    except TooWide as wide:
        raise InvalidInput(
            "search space",
            f"{_listing(wide.names)} together tie {wide.rows:,} combinations of parameters, at "
            f"most {MAX_ROWS:,} can be tabulated; let them share fewer parameters, or make a "
            "compound of the parameters that are coupled most",
        ) from None
    read = {
        member
        for relation in graph.relations
        if relation.names & names
        for variable in relation.variables
        if variable < len(graph.units)
        for member in graph.units[variable].members
    }
    within = [f"compound {c.name!r}" for c in compounds if read & set(c.parameters)]
    raise InvalidInput(
        "search space",
        f"no config satisfies {' with '.join([_listing(names), *within])}; "
        f"relax one of them or widen {', '.join(sorted(read))}",
    )


def _smallest_conflict(graph: FactorGraph, names: frozenset[str]) -> frozenset[str]:
    """Leave out constraints one by one as long as the rest still contradicts itself."""
    conflict = names
    started = time.monotonic()
    for name in sorted(names):
        if time.monotonic() - started > _EXPLAIN_S:
            break
        if len(conflict) > 1 and _contradicts(graph, conflict - {name}):
            conflict = conflict - {name}
    return conflict


def _contradicts(graph: FactorGraph, names: frozenset[str]) -> bool:
    relations: list[Relation] = [r for r in graph.relations if r.names <= names]
    try:
        eliminate(relations, graph.sizes)
    except Contradiction:
        return True
    except TooWide:
        return False
    return False


def _listing(names: frozenset[str]) -> str:
    quoted = [repr(name) for name in sorted(names)]
    return ("constraint " if len(quoted) == 1 else "constraints ") + ", ".join(quoted)
