"""What a user declares about a space: known constraints, conditions and compounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from autotune.errors import InvalidInput
from autotune.space.arrays import Truth

MAX_PRODUCT = 2**62
"""Largest product that constraints can be about; larger ones would not fit 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """The product of the named parameters equals a number, such as the number of GPUs.

    Attributes:
        name: How the constraint is called in explanations.
        factors: Parameters whose values are positive integers.
        equals: What their product must be.
    """

    name: str
    factors: Sequence[str]
    equals: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "factors", _names(self.name, "factors", self.factors))
        _require_positive(self.name, "equals", self.equals)

    @property
    def reads(self) -> tuple[str, ...]:
        """The parameters it reads."""
        return tuple(self.factors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Divides:
    """One product divides another without remainder.

    Attributes:
        name: How the constraint is called in explanations.
        divisor: Parameters whose product divides; values are positive integers.
        dividend: Parameters whose product is divided, or a number.
    """

    name: str
    divisor: Sequence[str]
    dividend: Sequence[str] | int

    def __post_init__(self) -> None:
        object.__setattr__(self, "divisor", _names(self.name, "divisor", self.divisor))
        if isinstance(self.dividend, int):
            _require_positive(self.name, "dividend", self.dividend)
        else:
            object.__setattr__(self, "dividend", _names(self.name, "dividend", self.dividend))

    @property
    def reads(self) -> tuple[str, ...]:
        """The parameters it reads."""
        if isinstance(self.dividend, int):
            return tuple(self.divisor)
        return tuple(dict.fromkeys((*self.divisor, *self.dividend)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """Any other rule, tabulated once over the values of the parameters it reads.

    Attributes:
        name: How the constraint is called in explanations.
        reads: The parameters it depends on, and nothing else.
        holds: Takes one array of shape (n,) per read parameter, by keyword, and returns a
            boolean array of shape (n,). It must depend on its arguments only.
        description: What must hold, in words.
    """

    name: str
    reads: Sequence[str]
    holds: Callable[..., Truth]
    description: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "reads", _names(self.name, "reads", self.reads))
        if not callable(self.holds):
            raise InvalidInput(
                f"constraint {self.name!r}", f"holds must be a function, got {self.holds!r}"
            )


Constraint: TypeAlias = Product | Divides | Predicate


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A parameter that matters only for some values of others, and is fixed elsewhere.

    Attributes:
        parameter: What is fixed while inactive.
        active_when: Values of other parameters for which it is active; all must match.
        otherwise: Its value while inactive; one of its domain.
    """

    parameter: str
    active_when: Mapping[str, Sequence[Any]]
    otherwise: Any

    def __post_init__(self) -> None:
        what = f"condition on {self.parameter!r}"
        if not self.active_when:
            raise InvalidInput(what, "active_when must name at least one parameter")
        if self.parameter in self.active_when:
            raise InvalidInput(what, "a parameter cannot be conditional on itself")
        if text := [name for name, values in self.active_when.items() if isinstance(values, str)]:
            raise InvalidInput(
                what, f"active_when must map to a sequence of values, got text for {text}"
            )
        frozen = {name: tuple(values) for name, values in self.active_when.items()}
        object.__setattr__(self, "active_when", frozen)

    @property
    def name(self) -> str:
        """How it is called in explanations."""
        return f"condition on {self.parameter}"

    @property
    def reads(self) -> tuple[str, ...]:
        """The parameters it ties together."""
        return (*self.active_when, self.parameter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compound:
    """Parameters that are chosen together, from listed joint choices.

    Attributes:
        name: How the joint choice is called; Optuna sees one categorical of this name.
        parameters: The members; each is an ordinary parameter of every config.
        choices: Joint choices, one value per member in the order of `parameters`.
    """

    name: str
    parameters: Sequence[str]
    choices: Sequence[Sequence[Any]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", _names(self.name, "parameters", self.parameters))
        object.__setattr__(self, "choices", tuple(tuple(choice) for choice in self.choices))
        what = f"compound {self.name!r}"
        if not self.choices:
            raise InvalidInput(what, "choices must have at least one joint choice")
        wrong = [choice for choice in self.choices if len(choice) != len(self.parameters)]
        if wrong:
            raise InvalidInput(
                what,
                f"each choice must have one value per member ({len(self.parameters)}), "
                f"got {wrong[0]!r}",
            )

    @property
    def reads(self) -> tuple[str, ...]:
        """The parameters it ties together."""
        return tuple(self.parameters)


def _names(owner: str, field: str, names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str) or not names or not all(isinstance(n, str) for n in names):
        raise InvalidInput(
            f"constraint {owner!r}", f"{field} must be a sequence of parameter names, got {names!r}"
        )
    if len(set(names)) != len(names):
        raise InvalidInput(f"constraint {owner!r}", f"{field} names a parameter twice: {names!r}")
    return tuple(names)


def _require_positive(owner: str, field: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_PRODUCT:
        raise InvalidInput(
            f"constraint {owner!r}", f"{field} must be an integer from 1 to 2^62, got {value!r}"
        )
