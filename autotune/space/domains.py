"""The values of one parameter, numbered 0..size-1, or a continuous range."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from autotune.errors import InvalidInput
from autotune.space.arrays import Floats, Indices
from autotune.space.scales import places_of, scaled, scaled_number, unscaled
from autotune.space.values import as_column, identity, is_encodable, is_number, plain

_STEP_TOLERANCE = 1e-8
"""How far from a step, in steps, a float may be; Optuna's own tolerance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceDomain:
    """Listed values.

    Attributes:
        name: The parameter.
        values: Plain values, all distinct.
        places: Shape (size,), where each value lies on [0, 1]; None when they have no order.
        array: The values as an array of shape (size,).
    """

    name: str
    values: tuple[Any, ...]
    places: Floats | None = None
    array: NDArray[Any] = field(repr=False)
    _index: Mapping[Hashable, int] = field(repr=False)

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.values)

    def index(self, value: Any) -> int | None:
        """The number of a value; None outside the domain."""
        return self._index.get(identity(value))

    def value(self, index: int) -> Any:
        """The plain value of a number."""
        return self.values[index]

    def take(self, indices: Indices) -> NDArray[Any]:
        """The values of many numbers, as an array of the same shape."""
        return self.array[indices]

    def indices(self, column: Sequence[Any] | NDArray[Any]) -> Indices:
        """The numbers of many values; -1 where a value is outside the domain."""
        get = self._index.get
        items = column.tolist() if isinstance(column, np.ndarray) else column
        return np.fromiter((get(identity(item), -1) for item in items), np.intp, len(items))

    def placed(self, indices: Indices) -> Floats:
        """Where the values lie on [0, 1]; only for ordered domains."""
        assert self.places is not None
        return self.places[indices]

    def place(self, value: Any) -> float | None:
        """Where any value would lie on [0, 1]; None when it has no place."""
        if self.places is None or not (is_number(value) or isinstance(value, bool | np.bool_)):
            return None
        if isinstance(value, bool | np.bool_) != isinstance(self.values[0], bool):
            return None
        numbers = self.array.astype(np.float64)
        order = np.argsort(numbers)
        return float(np.interp(float(value), numbers[order], self.places[order]))

    def describe(self) -> str:
        """What a value must be, in words."""
        return f"one of {', '.join(map(repr, self.values))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GridDomain:
    """Equally spaced numbers; never listed, so that wide ranges cost nothing.

    Attributes:
        name: The parameter.
        low: First value.
        step: Distance of two values.
        size: Number of values.
        log: Whether equal ratios, not differences, matter equally.
        integral: Whether the values are integers.
    """

    name: str
    low: float
    step: float
    size: int
    log: bool
    integral: bool
    decimals: int = 0

    @property
    def high(self) -> float:
        """Last value."""
        return float(self.value(self.size - 1))

    @property
    def array(self) -> NDArray[Any]:
        """All values, shape (size,)."""
        return self.take(np.arange(self.size))

    @property
    def values(self) -> tuple[Any, ...]:
        """All values as plain numbers."""
        return tuple(self.array.tolist())

    @property
    def places(self) -> Floats:
        """Where each value lies on [0, 1], shape (size,)."""
        return self.placed(np.arange(self.size))

    def index(self, value: Any) -> int | None:
        """The number of a value; None outside the domain."""
        if not is_number(value):
            return None
        # Far outside of the range, a division may overflow.
        if not self.low - self.step <= value <= self.low + self.size * self.step:
            return None
        steps = (value - self.low) / self.step
        index = round(steps)
        if not 0 <= index < self.size:
            return None
        if self.integral:
            return index if self.low + index * self.step == value else None
        return index if abs(steps - index) < _STEP_TOLERANCE else None

    def value(self, index: int) -> Any:
        """The plain value of a number."""
        value = self.low + index * self.step
        return int(value) if self.integral else round(float(value), self.decimals)

    def take(self, indices: Indices) -> NDArray[Any]:
        """The values of many numbers, as an array of the same shape."""
        values = self.low + indices * self.step
        return values if self.integral else np.round(values, self.decimals)

    def indices(self, column: Sequence[Any] | NDArray[Any]) -> Indices:
        """The numbers of many values; -1 where a value is outside the domain."""
        array = np.asarray(column)
        if array.dtype.kind not in "iuf":
            found = (self.index(item) for item in column)
            return np.array([-1 if i is None else i for i in found], dtype=np.intp)
        steps = (array - self.low) / self.step
        nearest = np.rint(np.nan_to_num(steps, nan=-1.0, posinf=-1.0, neginf=-1.0))
        inside = (nearest >= 0) & (nearest < self.size)
        near = np.abs(steps - nearest) < (1e-12 if self.integral else _STEP_TOLERANCE)
        return np.where(inside & near, nearest, -1).astype(np.intp)

    def placed(self, indices: Indices) -> Floats:
        """Where the values lie on [0, 1]."""
        return np.asarray(scaled(self.take(indices), self.low, self.high, self.log))

    def place(self, value: Any) -> float | None:
        """Where any number would lie, clipped to [0, 1]; None for what is no number."""
        return scaled_number(value, self.low, self.high, self.log)

    def nearest(self, place: float) -> int:
        """The number of the value that lies nearest to a place on [0, 1]."""
        target = unscaled(place, self.low, self.high, self.log)
        below = int(min(max((target - self.low) // self.step, 0), self.size - 1))
        near = np.array([below, min(below + 1, self.size - 1)])
        return int(near[np.argmin(np.abs(self.placed(near) - place))])

    def describe(self) -> str:
        """What a value must be, in words."""
        kind = "an integer" if self.integral else "a number"
        step = "" if self.step == 1 else f" in steps of {self.step}"
        if self.size == 1:
            return f"{self.value(0)}"
        return f"{kind} from {self.value(0)} to {self.value(self.size - 1)}{step}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuousDomain:
    """Every float of a range.

    Attributes:
        name: The parameter.
        low: Lowest value.
        high: Highest value.
        log: Whether equal ratios, not differences, matter equally.
    """

    name: str
    low: float
    high: float
    log: bool

    def contains(self, value: Any) -> bool:
        """Whether a value is a number of the range."""
        return is_number(value) and self.low <= value <= self.high

    def place(self, value: Any) -> float | None:
        """Where any number would lie, clipped to [0, 1]; None for what is no number."""
        return scaled_number(value, self.low, self.high, self.log)

    def at(self, places: Floats) -> Floats:
        """The values at places on [0, 1], never outside the range by rounding."""
        if self.log:
            low, high = math.log(self.low), math.log(self.high)
            values = np.exp(low + places * (high - low))
        else:
            values = self.low + places * (self.high - self.low)
        return np.clip(values, self.low, self.high)

    def placed(self, values: NDArray[Any]) -> Floats:
        """Where many values lie on [0, 1]."""
        return np.asarray(scaled(values, self.low, self.high, self.log))

    def describe(self) -> str:
        """What a value must be, in words."""
        return f"a number from {self.low} to {self.high}"


DiscreteDomain: TypeAlias = ChoiceDomain | GridDomain
Domain: TypeAlias = ChoiceDomain | GridDomain | ContinuousDomain


def choice_domain(name: str, choices: Sequence[Any]) -> ChoiceDomain:
    """A domain of listed values.

    Raises:
        InvalidInput: If two choices are equal or one cannot be stored.
    """
    values = tuple(plain(choice) for choice in choices)
    index: dict[Hashable, int] = {}
    for i, value in enumerate(values):
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidInput(f"parameter {name!r}", f"choices must be finite, got {value}")
        if not is_encodable(value):
            raise InvalidInput(
                f"parameter {name!r}", f"choices must be text that UTF-8 can hold, got {value!r}"
            )
        if identity(value) in index:
            raise InvalidInput(f"parameter {name!r}", f"choices must differ, got {value!r} twice")
        index[identity(value)] = i
    return ChoiceDomain(
        name=name, values=values, places=places_of(values), array=as_column(values), _index=index
    )


def domain_of(name: str, distribution: BaseDistribution) -> Domain:
    """The domain of one of Optuna's distributions.

    Raises:
        InvalidInput: If the distribution is of no known kind.
    """
    match distribution:
        case CategoricalDistribution():
            return choice_domain(name, distribution.choices)
        case IntDistribution(low=low, high=high, step=step, log=log):
            size = (high - low) // step + 1
            return GridDomain(name=name, low=low, step=step, size=size, log=log, integral=True)
        case FloatDistribution(low=low, high=high, step=None, log=log) if low < high:
            return ContinuousDomain(name=name, low=low, high=high, log=log)
        case FloatDistribution(low=low, high=high, step=step):
            step = step or 1.0
            size = round((high - low) / step) + 1
            return GridDomain(
                name=name,
                low=low,
                step=step,
                size=size,
                log=False,
                integral=False,
                decimals=max(_decimals(low), _decimals(step)),
            )
    raise InvalidInput(
        f"parameter {name!r}",
        "must be an Optuna CategoricalDistribution, IntDistribution or FloatDistribution, "
        f"got {type(distribution).__name__}",
    )


def _decimals(value: float) -> int:
    exponent = Decimal(str(value)).as_tuple().exponent
    return max(-int(exponent), 0)
