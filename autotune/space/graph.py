"""The relations of a space while they are being collected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.space.arrays import Indices
from autotune.space.domains import DiscreteDomain
from autotune.space.ordering import arrangement
from autotune.space.relations import Relation
from autotune.space.units import Unit


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
