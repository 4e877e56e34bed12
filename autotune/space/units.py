"""What is chosen as one: a plain parameter, or all members of a compound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from autotune.errors import Problem
from autotune.space.arrays import Indices
from autotune.space.constraints import Compound, Condition
from autotune.space.domains import DiscreteDomain


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A variable of the elimination and what its states mean.

    Attributes:
        name: The parameter or the compound.
        members: The parameters it sets.
        size: Number of states.
        lookup: For each member its value number by state, shape (size,); empty for a plain
            parameter whose states are its value numbers.
        inactive: The state of a conditional parameter that is fixed. It has the value of another
            state, but says that this value was not asked for.
    """

    name: str
    members: tuple[str, ...]
    size: int
    lookup: Mapping[str, Indices] = field(default_factory=dict)
    inactive: int | None = None

    def indices(self, member: str, states: Indices) -> Indices:
        """The member's value numbers in many states."""
        return self.lookup[member][states] if self.lookup else states


def make_units(
    domains: Mapping[str, DiscreteDomain],
    conditions: Sequence[Condition],
    compounds: Sequence[Compound],
) -> tuple[Unit, ...]:
    """Group the discrete parameters into units, sorted by name.

    Args:
        domains: The discrete parameters.
        conditions: Valid conditions; those on other parameters are ignored.
        compounds: Valid compounds, no two with a member in common.
    """
    joint = [_compound_unit(domains, compound) for compound in compounds]
    members = {name for unit in joint for name in unit.members}
    otherwise = {condition.parameter: condition.otherwise for condition in conditions}
    units = joint + [
        _conditional_unit(domain, domain.index(otherwise[name]))
        if name in otherwise
        else Unit(name=name, members=(name,), size=domain.size)
        for name, domain in domains.items()
        if name not in members
    ]
    return tuple(sorted(units, key=lambda unit: unit.name))


def _conditional_unit(domain: DiscreteDomain, otherwise: int | None) -> Unit:
    assert otherwise is not None
    lookup = np.append(np.arange(domain.size), otherwise)
    return Unit(
        name=domain.name,
        members=(domain.name,),
        size=domain.size + 1,
        lookup={domain.name: lookup},
        inactive=domain.size,
    )


def _compound_unit(domains: Mapping[str, DiscreteDomain], compound: Compound) -> Unit:
    lookup = {
        name: domains[name].indices([choice[i] for choice in compound.choices])
        for i, name in enumerate(compound.parameters)
    }
    return Unit(
        name=compound.name,
        members=tuple(compound.parameters),
        size=len(compound.choices),
        lookup=lookup,
    )


def compound_problems(domains: Mapping[str, DiscreteDomain], compound: Compound) -> list[Problem]:
    """What is wrong with a compound's choices, given that its members exist."""
    problems = []
    seen: set[tuple[int | None, ...]] = set()
    for choice in compound.choices:
        key = tuple(
            domains[name].index(value)
            for name, value in zip(compound.parameters, choice, strict=True)
        )
        if None in key:
            name = compound.parameters[key.index(None)]
            message = f"choice {choice!r}: {name} must be {domains[name].describe()}"
            problems.append(Problem(path=compound.name, message=message))
        elif key in seen:
            problems.append(
                Problem(path=compound.name, message=f"choice {choice!r} is there twice")
            )
        seen.add(key)
    return problems
