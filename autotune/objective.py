"""The black box: what every backend implements, and plain functions made into one."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from autotune.design_point import DesignPoint
from autotune.evaluation import Evaluation, Evaluations
from autotune.metric import Metric

Config = Mapping[str, Any]
"""One assignment of a search space."""

Columns = Mapping[str, NDArray[Any]]
"""Many configs: one array of shape (n,) per parameter."""


class Report(Protocol):
    """Takes intermediate values and answers whether to stop."""

    def __call__(self, step: int, metrics: Mapping[str, float]) -> bool:
        """Tell how far a measurement is.

        Args:
            step: Counts up from 0 within one evaluation.
            metrics: Best knowledge so far of any of the metrics.

        Returns:
            True when the measurement should stop and return ``Status.STOPPED``.
        """
        ...


@runtime_checkable
class Objective(Protocol):
    """A black box to be tuned; it never raises for a config and never mutates one.

    Attributes:
        name: Identifier of the backend; part of the study's fingerprint.
        version: Changes whenever results would; part of cache key and fingerprint.
        metrics: What it measures.
        constraints: Names of its constraints, feasible when <= 0.
        deterministic: Whether the same config always gives the same values.
        cost_s: Typical seconds for one evaluation.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def version(self) -> str: ...  # noqa: D102
    @property
    def metrics(self) -> Sequence[Metric]: ...  # noqa: D102
    @property
    def constraints(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def deterministic(self) -> bool: ...  # noqa: D102
    @property
    def cost_s(self) -> float: ...  # noqa: D102

    def evaluate(self, config: Config, *, seed: int, report: Report | None = None) -> Evaluation:
        """Measure one config.

        Args:
            config: A valid config of the study's space; never changed.
            seed: For backends that draw random numbers.
            report: Takes intermediate values, where the backend has any.
        """
        ...


@runtime_checkable
class BatchObjective(Objective, Protocol):
    """An objective that measures many configs in one vectorised call."""

    def evaluate_batch(self, columns: Columns, *, breakdown: bool = False) -> Evaluations:
        """Measure n configs given as arrays of shape (n,), one per parameter."""
        ...


ObjectiveFactory = Callable[[DesignPoint], Objective]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionObjective:
    """A plain Python function as an objective; made by `objective`."""

    function: Callable[..., Mapping[str, float] | Evaluation]
    name: str
    version: str
    metrics: tuple[Metric, ...]
    constraints: tuple[str, ...]
    deterministic: bool
    cost_s: float
    arguments: tuple[str, ...]
    design_point: DesignPoint

    def evaluate(self, config: Config, *, seed: int, report: Report | None = None) -> Evaluation:
        """Call the function with a copy of the config and sort what it returns."""
        offered = {"seed": seed, "report": report, "design_point": self.design_point}
        extra = {name: offered[name] for name in self.arguments if name in offered}
        start = time.perf_counter()
        result = self.function(dict(config), **extra)
        if isinstance(result, Evaluation):
            return result
        names = [metric.name for metric in self.metrics]
        missing = [name for name in (*names, *self.constraints) if name not in result]
        if missing:
            raise KeyError(f"the result must have {missing}, got {sorted(result)}")
        return Evaluation(
            metrics={name: float(result[name]) for name in names},
            constraints={name: float(result[name]) for name in self.constraints},
            cost_s=time.perf_counter() - start,
        )


def objective(
    *,
    metrics: Sequence[Metric | str],
    constraints: Sequence[str] = (),
    name: str | None = None,
    version: str = "1",
    deterministic: bool = True,
    cost_s: float = 1.0,
) -> Callable[[Callable[..., Mapping[str, float] | Evaluation]], ObjectiveFactory]:
    """Make a function from config to numbers an objective.

    The function takes the config and, if it names them, ``seed``, ``report`` and
    ``design_point``; it returns a mapping with every metric and constraint, or an `Evaluation`.

    Args:
        metrics: What it returns; a plain name is minimised and has no unit.
        constraints: Names of the returned values that are feasible when <= 0.
        name: Identifier; the function's name when not given.
        version: Change it whenever the function would return other values.
        deterministic: Whether the same config always gives the same values.
        cost_s: Typical seconds for one evaluation.

    Returns:
        A decorator that gives an objective factory.
    """
    resolved = tuple(Metric(name=m) if isinstance(m, str) else m for m in metrics)

    def decorate(
        function: Callable[..., Mapping[str, float] | Evaluation],
    ) -> ObjectiveFactory:
        arguments = tuple(inspect.signature(function).parameters)[1:]

        def factory(design_point: DesignPoint) -> Objective:
            return FunctionObjective(
                function=function,
                name=name or function.__name__,
                version=version,
                metrics=resolved,
                constraints=tuple(constraints),
                deterministic=deterministic,
                cost_s=cost_s,
                arguments=arguments,
                design_point=design_point,
            )

        return factory

    return decorate


def columns_of(configs: Sequence[Config]) -> dict[str, NDArray[Any]]:
    """Turn a list of configs with equal keys into one array per parameter."""
    names = list(configs[0]) if configs else []
    return {name: np.asarray([config[name] for config in configs]) for name in names}
