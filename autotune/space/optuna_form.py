"""A space as Optuna's distributions, in values that every storage keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution

from autotune.errors import InvalidInput, Problem
from autotune.jsonable import canonical_json
from autotune.space.constraints import Compound
from autotune.space.domains import ChoiceDomain, ContinuousDomain, Domain
from autotune.space.json_form import distribution_from_json, distribution_to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Codec:
    """Choices that no storage keeps as they are, and the text that stands for them.

    Attributes:
        values: The plain values, by number.
        texts: What Optuna sees instead: JSON text, or the value itself where that is safe.
    """

    values: tuple[Any, ...]
    texts: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OptunaForm:
    """The translation in both directions.

    Attributes:
        distributions: What Optuna sees, sorted by name.
        compounds: The compounds with plain choices, by name.
        codecs: How the values of listed parameters and compounds are written, by name.
    """

    distributions: Mapping[str, BaseDistribution]
    compounds: Mapping[str, tuple[str, ...]]
    codecs: Mapping[str, Codec] = field(repr=False)

    def to_optuna(self, config: Mapping[str, Any], domains: Mapping[str, Domain]) -> dict[str, Any]:
        """The parameters of an Optuna trial for a valid config."""
        params: dict[str, Any] = {}
        for name in self.distributions:
            if name in self.compounds:
                params[name] = canonical_json({m: config[m] for m in self.compounds[name]})
                continue
            value, domain = config[name], domains[name]
            if isinstance(domain, ChoiceDomain):
                number = domain.index(value)
                assert number is not None
                value = self.codecs[name].texts[number]
            params[name] = value
        return params

    def from_optuna(self, params: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """The config, valid or not, of an Optuna trial's parameters.

        Raises:
            InvalidInput: If a parameter is missing, unknown or has a text that is no choice.
        """
        problems = [
            Problem(path=name, message="is no parameter of this space")
            for name in params
            if name not in self.distributions
        ]
        values: dict[str, Any] = {}
        for name in self.distributions:
            if name not in params:
                problems.append(Problem(path=name, message="is missing from the trial"))
            elif name not in self.codecs:
                values[name] = params[name]
            elif params[name] in self.codecs[name].texts:
                codec = self.codecs[name]
                value = codec.values[_position(codec.texts, params[name])]
                members = self.compounds.get(name)
                values.update(zip(members, value, strict=True) if members else {name: value})
            else:
                message = f"must be one of {self.codecs[name].texts}, got {params[name]!r}"
                problems.append(Problem(path=name, message=message))
        if problems:
            raise InvalidInput("parameters of a trial", problems)
        return {name: values[name] for name in names}


def _position(texts: Sequence[Any], text: Any) -> int:
    same = [i for i, item in enumerate(texts) if item == text and type(item) is type(text)]
    return same[0] if same else list(texts).index(text)


def optuna_form(
    parameters: Mapping[str, BaseDistribution],
    domains: Mapping[str, Domain],
    compounds: Sequence[Compound],
) -> OptunaForm:
    """Translate a declaration."""
    joint = {compound.name: tuple(compound.parameters) for compound in compounds}
    members = {name for names in joint.values() for name in names}
    distributions: dict[str, BaseDistribution] = {}
    codecs: dict[str, Codec] = {}
    for name, domain in domains.items():
        if name in members:
            continue
        if isinstance(domain, ChoiceDomain):
            codecs[name] = Codec(values=domain.values, texts=_texts(domain.values))
            distributions[name] = CategoricalDistribution(codecs[name].texts)
        else:
            # Through JSON, so that bounds of NumPy's types, which no storage keeps, become plain.
            as_json = distribution_to_json(parameters[name])
            distributions[name] = distribution_from_json(as_json)
    for compound in compounds:
        own = [domains[name] for name in compound.parameters]
        values = tuple(
            tuple(_value(domain, value) for domain, value in zip(own, choice, strict=True))
            for choice in compound.choices
        )
        texts = tuple(
            canonical_json(dict(zip(compound.parameters, value, strict=True))) for value in values
        )
        codecs[compound.name] = Codec(values=values, texts=texts)
        distributions[compound.name] = CategoricalDistribution(texts)
    return OptunaForm(
        distributions=dict(sorted(distributions.items())), compounds=joint, codecs=codecs
    )


def _value(domain: Domain, value: Any) -> Any:
    assert not isinstance(domain, ContinuousDomain)
    number = domain.index(value)
    assert number is not None
    return domain.value(number)


def _texts(values: Sequence[Any]) -> tuple[Any, ...]:
    """JSON text for what storages do not keep; for every choice where two would be confused.

    Optuna finds a choice by ``==``, which takes True for 1.
    """
    written = tuple(
        value
        if value is None or isinstance(value, bool | int | float | str)
        else canonical_json(value)
        for value in values
    )
    if len(set(written)) < len(written):
        return tuple(canonical_json(value) for value in values)
    return written
