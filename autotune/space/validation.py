"""Whether a declaration makes sense, before anything is compiled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import UnionType
from typing import Any, Protocol, get_args

from optuna.distributions import BaseDistribution

from autotune.errors import InvalidInput, Problem
from autotune.space.constraints import (
    Compound,
    Condition,
    Constraint,
    Divides,
    Predicate,
    Product,
)
from autotune.space.domains import ContinuousDomain, DiscreteDomain, Domain, domain_of
from autotune.space.relations import MAX_ROWS
from autotune.space.units import compound_problems
from autotune.space.values import is_encodable


class Declaration(Protocol):
    """What is declared of a space; see `SearchSpace` for the meaning."""

    @property
    def parameters(self) -> Mapping[str, BaseDistribution]: ...  # noqa: D102
    @property
    def constraints(self) -> Sequence[Constraint]: ...  # noqa: D102
    @property
    def conditions(self) -> Sequence[Condition]: ...  # noqa: D102
    @property
    def compounds(self) -> Sequence[Compound]: ...  # noqa: D102
    @property
    def defaults(self) -> Mapping[str, Any]: ...  # noqa: D102
    @property
    def aliases(self) -> Mapping[str, Mapping[Any, Any]]: ...  # noqa: D102


def valid_domains(declared: Declaration) -> dict[str, Domain]:
    """The domains of a declaration.

    Raises:
        InvalidInput: With everything wrong with the declaration.
    """
    domains: dict[str, Domain] = {}
    problems: list[Problem] = []
    if not declared.parameters:
        problems.append(Problem(path="parameters", message="must name at least one parameter"))
    for name, distribution in declared.parameters.items():
        if not isinstance(name, str) or not name or not is_encodable(name):
            message = f"a name must be non-empty text that UTF-8 can hold, got {name!r}"
            problems.append(Problem(path="parameters", message=message))
            continue
        try:
            domains[name] = domain_of(name, distribution)
        except InvalidInput as error:
            problems += [Problem(path=error.what, message=p.message) for p in error.problems]
    problems += _wrong_kinds("constraints", declared.constraints, Product | Divides | Predicate)
    problems += _wrong_kinds("conditions", declared.conditions, Condition)
    problems += _wrong_kinds("compounds", declared.compounds, Compound)
    # With a parameter missing every rule that reads it would be reported as well.
    problems = problems or _rule_problems(domains, declared)
    if problems:
        raise InvalidInput("search space", problems)
    return domains


def _rule_problems(domains: Mapping[str, Domain], declared: Declaration) -> list[Problem]:
    constraints, compounds = declared.constraints, declared.compounds
    conditions = declared.conditions
    problems: list[Problem] = []
    problems += _twice([item.name for item in (*constraints, *compounds)], "constraint or compound")
    problems += _unencodable(declared)
    problems += _twice([c.parameter for c in conditions], "condition")
    problems += _twice([name for c in compounds for name in c.parameters], "compound's member")
    for constraint in constraints:
        problems += _reads(domains, constraint.name, constraint.reads)
    for condition in conditions:
        problems += _condition_problems(domains, condition)
    for compound in compounds:
        problems += _compound_problems(domains, compound)
    problems += _default_problems(domains, declared.defaults)
    problems += _alias_problems(domains, declared.aliases)
    return problems


def _wrong_kinds(path: str, items: Sequence[Any], kinds: type | UnionType) -> Iterator[Problem]:
    names = " or ".join(kind.__name__ for kind in get_args(kinds) or (kinds,))
    for i, item in enumerate(items):
        if not isinstance(item, kinds):
            message = f"must be a {names}, got {item!r}"
            yield Problem(path=f"{path}[{i}]", message=message)


def _unencodable(declared: Declaration) -> Iterator[Problem]:
    """What is stored with the space besides names and choices of parameters."""
    texts: list[tuple[str, str]] = [
        *(("constraints", item.name) for item in declared.constraints),
        *(("compounds", item.name) for item in declared.compounds),
        *(
            ("constraints", item.description)
            for item in declared.constraints
            if isinstance(item, Predicate)
        ),
        *(("aliases", str(old)) for names in declared.aliases.values() for old in names),
        *(("defaults", f"{name}={value}") for name, value in declared.defaults.items()),
    ]
    for path, text in texts:
        if not is_encodable(text):
            message = f"must be text that UTF-8 can hold, got {text!r}"
            yield Problem(path=path, message=message)


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


def _alias_problems(
    domains: Mapping[str, Domain], aliases: Mapping[str, Mapping[Any, Any]]
) -> Iterator[Problem]:
    for name, renamed in aliases.items():
        path = f"aliases.{name}"
        if name not in domains:
            message = f"is no parameter; there are: {', '.join(domains)}"
            yield Problem(path=path, message=message)
            continue
        for old, new in renamed.items():
            if not _contains(domains[name], new):
                message = f"{old!r} must become {domains[name].describe()}, got {new!r}"
                yield Problem(path=path, message=message)
            elif _contains(domains[name], old):
                message = f"{old!r} is still a choice and cannot be the old name of {new!r}"
                yield Problem(path=path, message=message)


def _contains(domain: Domain, value: Any) -> bool:
    if isinstance(domain, ContinuousDomain):
        return domain.contains(value)
    return domain.index(value) is not None


def discrete(domains: Mapping[str, Domain]) -> dict[str, DiscreteDomain]:
    """The parameters with numbered values."""
    return {
        name: domain for name, domain in domains.items() if not isinstance(domain, ContinuousDomain)
    }
