"""The search space: parameters, known constraints, and every question asked of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self, overload

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution

from autotune.errors import InvalidInput, Problem
from autotune.jsonable import fingerprint, to_jsonable
from autotune.space import changes, checking, encoding, json_form, projection, sampling
from autotune.space.compiled import Compiled, compile_space
from autotune.space.constraints import Compound, Condition, Constraint
from autotune.space.domains import ChoiceDomain, ContinuousDomain
from autotune.space.keys import Keys, make_keys
from autotune.space.optuna_form import OptunaForm, optuna_form
from autotune.space.validation import valid_domains
from autotune.space.values import identity, plain


@dataclass(frozen=True, slots=True, eq=False)
class SearchSpace:
    """Named Optuna distributions with rules that every config satisfies by construction.

    A config has every parameter, in declaration order and in plain Python values: an inactive one
    at its fixed value, the members of a compound as ordinary parameters.

    Attributes:
        parameters: Optuna's distribution of each parameter; one with a single value is fine.
        constraints: Rules that are known beforehand.
        conditions: Parameters that matter only for some values of others, one per parameter.
        compounds: Parameters that are chosen jointly; each belongs to one compound at most.
        defaults: The value that configs of an older space are said to have had for a parameter
            they lack; for a parameter this space has no longer, the value it is now fixed at.
        aliases: Old names of choices and their present ones, by parameter.

    Raises:
        InvalidInput: If the declaration contradicts itself; carries every problem found.
    """

    parameters: Mapping[str, BaseDistribution]
    _: KW_ONLY
    constraints: Sequence[Constraint] = ()
    conditions: Sequence[Condition] = ()
    compounds: Sequence[Compound] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    aliases: Mapping[str, Mapping[Any, Any]] = field(default_factory=dict)
    _compiled: Compiled = field(init=False, repr=False)
    _optuna: OptunaForm = field(init=False, repr=False)
    _keys: Keys = field(init=False, repr=False)
    _fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("constraints", "conditions", "compounds"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name in ("parameters", "defaults", "aliases"):
            object.__setattr__(self, name, dict(getattr(self, name)))
        domains = valid_domains(self)
        compiled = compile_space(domains, self.constraints, self.conditions, self.compounds)
        object.__setattr__(self, "_compiled", compiled)
        object.__setattr__(self, "_keys", make_keys(domains))
        form = optuna_form(self.parameters, domains, self.compounds)
        object.__setattr__(self, "_optuna", form)
        object.__setattr__(self, "_fingerprint", fingerprint(self._identity()))

    # Which configs there are

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters, in declaration order."""
        return tuple(self.parameters)

    def count(self) -> int:
        """How many valid configs there are, floats not counted; exact, however many."""
        return self._compiled.total

    @property
    def is_discrete(self) -> bool:
        """Whether no parameter is continuous, so that the space can be exhausted."""
        return not self._compiled.continuous

    def contains(self, config: Mapping[str, Any]) -> bool:
        """Whether a config is complete, inside all domains and satisfies every rule."""
        normal = checking.normalised(self._compiled, config)
        return normal is not None and self._satisfied(normal)

    def explain(self, config: Mapping[str, Any]) -> list[Problem]:
        """Everything wrong with a config, with the rule's name and the values it read."""
        return checking.problems(self._compiled, self.constraints, self.compounds, config)

    def check(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Refuse an invalid config.

        Returns:
            The config in plain values and declaration order.

        Raises:
            InvalidInput: With everything `explain` finds.
        """
        problems = self.explain(config)
        if problems:
            raise InvalidInput("config", problems)
        normal = checking.normalised(self._compiled, config)
        assert normal is not None
        return normal

    def key(self, config: Mapping[str, Any]) -> str:
        """A config's identity: equal exactly for configs with equal values.

        Raises:
            InvalidInput: If a value is outside its domain.
        """
        normal = checking.normalised(self._compiled, config)
        if normal is None:
            raise InvalidInput("config", self.explain(config))
        return self._keys.of(normal)

    # Getting configs

    def sample_columns(self, n: int, *, seed: int) -> dict[str, NDArray[Any]]:
        """Draw n valid configs as one array of shape (n,) per parameter.

        The discrete part is uniform over the valid set, also where a distribution is logarithmic;
        each float is drawn on its own, logarithmically where its distribution says so.
        """
        return sampling.draw(self._compiled, n, np.random.default_rng(seed))

    def sample(self, n: int, *, seed: int) -> list[dict[str, Any]]:
        """Draw n valid configs, as `sample_columns` does."""
        return self.configs(self.sample_columns(n, seed=seed))

    def enumerate(self, chunk_size: int = 65_536) -> Iterator[dict[str, NDArray[Any]]]:
        """Every valid config once, in a fixed order, as arrays of at most `chunk_size`.

        Raises:
            InvalidInput: If a parameter is continuous.
        """
        if not self.is_discrete:
            names = ", ".join(self._compiled.continuous)
            raise InvalidInput(
                "search space",
                f"cannot be enumerated, {names} is continuous; give the distribution a step",
            )
        if chunk_size < 1:
            raise InvalidInput("chunk_size", f"must be at least 1, got {chunk_size}")
        return sampling.walk(self._compiled, chunk_size)

    @overload
    def project(self, config: Mapping[str, Any]) -> dict[str, Any]: ...

    @overload
    def project(
        self, config: Mapping[str, Any], *, exclude: Collection[str]
    ) -> dict[str, Any] | None: ...

    def project(
        self, config: Mapping[str, Any], *, exclude: Collection[str] = ()
    ) -> dict[str, Any] | None:
        """The nearest valid config; the config itself when it is valid.

        Nearest is the least sum over parameters of the distance on the encoded scale for ordered
        values and of 0 or 1 for others. What is missing or has no meaning costs nothing and takes
        the declared default where that is valid; what is no parameter is dropped.

        Args:
            config: Any mapping.
            exclude: Keys (see `key`) of configs that must not be returned.

        Returns:
            A valid config; None when every valid config is excluded, which cannot be where a
            float is active.
        """
        normal = checking.normalised(self._compiled, config)
        if normal is not None and self._satisfied(normal) and self._is_free(normal, exclude):
            return normal
        return projection.nearest(
            self._compiled,
            config,
            self.defaults,
            functools.partial(self._is_free, exclude=exclude) if exclude else None,
        )

    def configs(self, columns: Mapping[str, NDArray[Any]]) -> list[dict[str, Any]]:
        """Arrays of shape (n,) as n configs in plain values."""
        listed = [self._plain_column(name, columns[name]) for name in self.names]
        return [dict(zip(self.names, row, strict=True)) for row in zip(*listed, strict=True)]

    # Other forms

    @property
    def feature_names(self) -> tuple[str, ...]:
        """What the columns of `encode` are."""
        return encoding.feature_names(self._compiled.domains)

    def encode(
        self, configs: Sequence[Mapping[str, Any]] | Mapping[str, NDArray[Any]]
    ) -> NDArray[np.float64]:
        """Configs, or columns of them, as a matrix on [0, 1] of shape (n, d).

        Raises:
            InvalidInput: If a value is missing or outside its domain.
        """
        if not isinstance(configs, Mapping):
            configs = encoding.rows_to_columns(self.names, configs)
        return encoding.encode(self._compiled.domains, configs)

    def optuna_distributions(self) -> dict[str, BaseDistribution]:
        """What Optuna sees, sorted by name: each compound as one categorical of JSON texts."""
        return dict(self._optuna.distributions)

    def to_optuna(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """A valid config as the parameters of an Optuna trial.

        Raises:
            InvalidInput: If the config is not valid.
        """
        return self._optuna.to_optuna(self.check(config), self._compiled.domains)

    def from_optuna(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The config of an Optuna trial's parameters, valid or not.

        Raises:
            InvalidInput: If the parameters are not those of `optuna_distributions`.
        """
        return self._optuna.from_optuna(params, self.names)

    def to_json(self) -> dict[str, Any]:
        """The space as JSON values; predicates with their answers."""
        return {
            "parameters": [
                [name, json_form.distribution_to_json(d)] for name, d in self.parameters.items()
            ],
            "constraints": [
                json_form.constraint_to_json(c, self._compiled.tables) for c in self.constraints
            ],
            "conditions": [json_form.condition_to_json(c) for c in self.conditions],
            "compounds": [json_form.compound_to_json(c) for c in self.compounds],
            "defaults": to_jsonable(self.defaults, "defaults"),
            "aliases": json_form.aliases_to_json(self.aliases),
        }

    @classmethod
    def from_json(
        cls,
        data: Mapping[str, Any],
        predicates: Mapping[str, Callable[..., NDArray[np.bool_]]] | None = None,
    ) -> Self:
        """Read a space back.

        Args:
            data: What `to_json` gave.
            predicates: Functions by constraint name; the stored answers are used without one.

        Raises:
            InvalidInput: If the data are not a space's, or if a function answers otherwise than
                the stored one did.
        """
        space = cls(**json_form.declaration_from_json(data, predicates or {}))
        problems = [
            Problem(
                path=stored["name"], message="its function answers otherwise than the stored one"
            )
            for stored in data["constraints"]
            if stored["kind"] == "predicate"
            and json_form.truth_hash(space._compiled.tables[stored["name"]]) != stored["truth"]
        ]
        if problems:
            raise InvalidInput("search space", problems)
        return space

    # Identity and change

    @property
    def fingerprint(self) -> str:
        """Hash of which configs are valid and what they are called.

        The order of declarations, defaults and aliases do not enter; a predicate enters with its
        name, what it reads and its answers.
        """
        return self._fingerprint

    def difference(self, other: SearchSpace) -> list[str]:
        """What `other` has that this space has not, and the reverse, one line each."""
        return changes.differences(self._identity(), other._identity())

    def adopt(
        self, config: Mapping[str, Any], *, old: SearchSpace | None = None
    ) -> dict[str, Any] | None:
        """Bring a config of an older space into this one, unchanged in meaning.

        Renamed choices are renamed, added parameters take their declared default, and a removed
        parameter is dropped where it had the declared default or no other value.

        Args:
            config: A valid config of the older space.
            old: The older space, which knows the parameters that this one has not.

        Returns:
            The config here; None when it lies outside this space.
        """
        gone = {name: value for name, value in config.items() if name not in self.parameters}
        if not all(self._droppable(name, value, old) for name, value in gone.items()):
            return None
        translated = {
            name: changes.renamed(value, self.aliases.get(name, {}))
            for name, value in config.items()
            if name in self.parameters
        }
        complete = changes.completed(self._compiled, translated, self.defaults)
        if complete is None or not self.contains(complete):
            return None
        return checking.normalised(self._compiled, complete)

    def _droppable(self, name: str, value: Any, old: SearchSpace | None) -> bool:
        if name in self.defaults:
            return identity(plain(value)) == identity(plain(self.defaults[name]))
        return old is not None and name in old.parameters and old.parameters[name].single()

    def _satisfied(self, config: Mapping[str, Any]) -> bool:
        return checking.satisfied(self._compiled, self.constraints, self.compounds, config)

    def _is_free(self, config: Mapping[str, Any], exclude: Collection[str]) -> bool:
        return not exclude or self._keys.of(config) not in exclude

    def _plain_column(self, name: str, column: NDArray[Any]) -> list[Any]:
        domain = self._compiled.domains[name]
        if isinstance(domain, ContinuousDomain):
            return list(np.asarray(column, dtype=np.float64).tolist())
        if isinstance(domain, ChoiceDomain):
            return [domain.values[number] for number in domain.indices(column).tolist()]
        return list(np.asarray(column).tolist())

    def _identity(self) -> dict[str, Any]:
        data = self.to_json()
        return {
            "parameters": dict(data["parameters"]),
            "constraints": {
                c["name"]: {k: v for k, v in c.items() if k not in _WORDS_AND_ANSWERS}
                for c in data["constraints"]
            },
            "conditions": {c["parameter"]: c for c in data["conditions"]},
            "compounds": {c["name"]: c for c in data["compounds"]},
        }


_WORDS_AND_ANSWERS = frozenset({"description", "answers", "size"})
"""What a predicate's JSON has beyond its identity; its answers enter as a hash."""
