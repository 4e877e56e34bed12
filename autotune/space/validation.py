"""Whether a declaration makes sense, before anything is compiled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from autotune.errors import Problem
from autotune.space.constraints import Compound, Condition, Constraint
from autotune.space.domains import ContinuousDomain, DiscreteDomain, Domain
from autotune.space.relations import MAX_ROWS
from autotune.space.units import compound_problems


def declaration_problems(
    domains: Mapping[str, Domain],
    constraints: Sequence[Constraint],
    conditions: Sequence[Condition],
    compounds: Sequence[Compound],
    defaults: Mapping[str, Any],
) -> list[Problem]:
    """Everything wrong with a declaration."""
    if not domains:
        return [Problem(path="parameters", message="must name at least one parameter")]
    problems = [
        Problem(path=name or "parameters", message=f"a name must be non-empty text, got {name!r}")
        for name in domains
        if not isinstance(name, str) or not name
    ]
    names = [item.name for item in (*constraints, *compounds)]
    problems += _twice(names, "constraint or compound")
    problems += _twice([c.parameter for c in conditions], "condition")
    problems += _twice([name for c in compounds for name in c.parameters], "compound's member")
    for constraint in constraints:
        problems += _reads(domains, constraint.name, constraint.reads)
    for condition in conditions:
        problems += _condition_problems(domains, condition)
    for compound in compounds:
        problems += _compound_problems(domains, compound)
    problems += _default_problems(domains, defaults)
    return problems


def _twice(names: Sequence[str], what: str) -> Iterator[Problem]:
    for name, times in Counter(names).items():
        if times > 1:
            yield Problem(path=name, message=f"must be the name of one {what}, it is of {times}")


def _reads(domains: Mapping[str, Domain], path: str, names: Sequence[str]) -> Iterator[Problem]:
    for name in names:
        domain = domains.get(name)
        if domain is None:
            known = ", ".join(domains)
            message = f"reads {name!r}, which is no parameter; there are: {known}"
            yield Problem(path=path, message=message)
        elif isinstance(domain, ContinuousDomain):
            message = (
                f"reads {name!r}, which is continuous; a constraint can read only parameters with "
                "listed or stepped values: give the distribution a step, or check the rule in the "
                "objective as a constraint value"
            )
            yield Problem(path=path, message=message)
        elif domain.size > MAX_ROWS:
            message = (
                f"reads {name!r}, which has {domain.size:,} values; at most {MAX_ROWS:,} can be "
                "tabulated: give the distribution a larger step"
            )
            yield Problem(path=path, message=message)


def _condition_problems(domains: Mapping[str, Domain], condition: Condition) -> Iterator[Problem]:
    path = condition.name
    problems = list(_reads(domains, path, tuple(condition.active_when)))
    domain = domains.get(condition.parameter)
    if not isinstance(domain, ContinuousDomain):
        problems += _reads(domains, path, (condition.parameter,))
    yield from problems
    if problems or domain is None:
        return
    if not _contains(domain, condition.otherwise):
        message = f"otherwise must be {domain.describe()}, got {condition.otherwise!r}"
        yield Problem(path=path, message=message)
    for name, values in condition.active_when.items():
        for value in values:
            if not _contains(domains[name], value):
                message = f"{name} must be {domains[name].describe()}, got {value!r}"
                yield Problem(path=path, message=message)


def _compound_problems(domains: Mapping[str, Domain], compound: Compound) -> Iterator[Problem]:
    if compound.name in domains:
        message = "a compound must not have the name of a parameter"
        yield Problem(path=compound.name, message=message)
    problems = list(_reads(domains, compound.name, compound.parameters))
    yield from problems or compound_problems(discrete(domains), compound)


def _default_problems(
    domains: Mapping[str, Domain], defaults: Mapping[str, Any]
) -> Iterator[Problem]:
    for name, value in defaults.items():
        if name in domains and not _contains(domains[name], value):
            message = f"must be {domains[name].describe()}, got {value!r}"
            yield Problem(path=f"defaults.{name}", message=message)


def _contains(domain: Domain, value: Any) -> bool:
    if isinstance(domain, ContinuousDomain):
        return domain.contains(value)
    return domain.index(value) is not None


def discrete(domains: Mapping[str, Domain]) -> dict[str, DiscreteDomain]:
    """The parameters with numbered values."""
    return {
        name: domain for name, domain in domains.items() if not isinstance(domain, ContinuousDomain)
    }
