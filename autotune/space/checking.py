"""Whether a config is valid, and if not, which rule it breaks with which values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from autotune.errors import Problem
from autotune.space.compiled import Compiled
from autotune.space.constraints import Compound, Constraint, Divides, Predicate, Product
from autotune.space.domains import ContinuousDomain
from autotune.space.values import identity


def value_numbers(compiled: Compiled, config: Mapping[str, Any]) -> dict[str, int]:
    """The numbers of the discrete values that are inside their domains, by parameter."""
    numbers = {}
    for name, domain in compiled.discrete.items():
        if name in config:
            number = domain.index(config[name])
            if number is not None:
                numbers[name] = number
    return numbers


def normalised(compiled: Compiled, config: Mapping[str, Any]) -> dict[str, Any] | None:
    """The config in plain values and declaration order; None unless all are in their domains."""
    if config.keys() != compiled.domains.keys():
        return None
    plain: dict[str, Any] = {}
    for name, domain in compiled.domains.items():
        value = config[name]
        if isinstance(domain, ContinuousDomain):
            if not domain.contains(value):
                return None
            plain[name] = float(value)
        else:
            number = domain.index(value)
            if number is None:
                return None
            plain[name] = domain.value(number)
    return plain


def satisfied(
    compiled: Compiled,
    constraints: Sequence[Constraint],
    compounds: Sequence[Compound],
    config: Mapping[str, Any],
) -> bool:
    """Whether a normalised config breaks no rule."""
    return next(_broken(compiled, constraints, compounds, config), None) is None


def problems(
    compiled: Compiled,
    constraints: Sequence[Constraint],
    compounds: Sequence[Compound],
    config: Mapping[str, Any],
) -> list[Problem]:
    """Everything wrong with a config; rules are checked where all they read is in its domain."""
    found = [
        Problem(
            path=str(name), message=f"is no parameter; there are: {', '.join(compiled.domains)}"
        )
        for name in config
        if name not in compiled.domains
    ]
    for name, domain in compiled.domains.items():
        if name not in config:
            message = f"is missing; it must be {domain.describe()}"
            found.append(Problem(path=name, message=message))
        elif not _inside(domain, config[name]):
            message = f"must be {domain.describe()}, got {config[name]!r}"
            found.append(Problem(path=name, message=message))
    return [*found, *_broken(compiled, constraints, compounds, config)]


def _inside(domain: Any, value: Any) -> bool:
    if isinstance(domain, ContinuousDomain):
        return domain.contains(value)
    return domain.index(value) is not None


def _broken(
    compiled: Compiled,
    constraints: Sequence[Constraint],
    compounds: Sequence[Compound],
    config: Mapping[str, Any],
) -> Iterator[Problem]:
    numbers = value_numbers(compiled, config)
    values = {name: compiled.discrete[name].value(number) for name, number in numbers.items()}
    for constraint in constraints:
        if all(name in numbers for name in constraint.reads):
            message = _constraint_message(compiled, constraint, numbers, values)
            if message:
                yield Problem(path=constraint.name, message=message)
    for activity in compiled.activities.values():
        name = activity.parameter
        if name not in config or not all(parent in numbers for parent in activity.when):
            continue
        value = values.get(name, config[name])
        fixed = identity(value) == identity(activity.otherwise)
        if not fixed and not activity.active(numbers):
            why = _listing(activity.when, values)
            message = f"must be {activity.otherwise!r} where {why}, got {value!r}"
            yield Problem(path=f"condition on {name}", message=message)
    for number, compound in zip(_unit_numbers(compiled, compounds), compounds, strict=True):
        unit = compiled.units[number]
        if all(name in numbers for name in unit.members):
            states = [unit.lookup[name] == numbers[name] for name in unit.members]
            if not any(all(row) for row in zip(*states, strict=True)):
                got = _listing(unit.members, values)
                message = f"must be one of its {unit.size} joint choices, got {got}"
                yield Problem(path=compound.name, message=message)


def _unit_numbers(compiled: Compiled, compounds: Sequence[Compound]) -> list[int]:
    numbers = {unit.name: number for number, unit in enumerate(compiled.units)}
    return [numbers[compound.name] for compound in compounds]


def _constraint_message(
    compiled: Compiled,
    constraint: Constraint,
    numbers: Mapping[str, int],
    values: Mapping[str, Any],
) -> str:
    """What a constraint says against values that are in their domains; empty when it holds."""
    match constraint:
        case Product(factors=factors, equals=equals):
            product = math.prod(values[name] for name in factors)
            if product != equals:
                return f"{_times(factors)} = {product} must be {equals}{_given(factors, values)}"
        case Divides(divisor=divisor, dividend=dividend):
            left = math.prod(values[name] for name in divisor)
            if isinstance(dividend, int):
                right, of = dividend, str(dividend)
            else:
                right = math.prod(values[name] for name in dividend)
                of = f"{_times(dividend)} = {right}"
            if right % left:
                parts = constraint.reads if len(constraint.reads) > 2 else ()
                return f"{_times(divisor)} = {left} must divide {of}{_given(parts, values)}"
        case Predicate(name=name, reads=reads, description=description):
            if compiled.tables[name].holds(numbers) is False:
                return f"{description or 'must hold'}, got {_listing(reads, values)}"
    return ""


def _times(names: Sequence[str]) -> str:
    return "·".join(names)


def _given(names: Sequence[str], values: Mapping[str, Any]) -> str:
    return f" ({_listing(names, values)})" if len(names) > 1 else ""


def _listing(names: Sequence[str] | Mapping[str, Any], values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {values[name]!r}" for name in names)
