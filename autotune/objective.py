"""The black box: what every backend implements, and plain functions made into one."""

from __future__ import annotations

import copy
import inspect
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from autotune.design_point import DesignPoint
from autotune.errors import InvalidInput, Problem, Unsupported
from autotune.evaluation import Evaluation, Evaluations, FailureKind, Status
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
        """Call the function with a copy of the config and sort what it returns.

        What the function raises, and a result that is not what was declared, are failures.
        """
        offered = {"seed": seed, "report": report, "design_point": self.design_point}
        extra = {name: offered[name] for name in self.arguments if name in offered}
        start = time.perf_counter()
        try:
            # A choice may be a list: the function must not change it for everybody else.
            result = self.function(copy.deepcopy(dict(config)), **extra)
        except (Exception, SystemExit) as error:
            return failure_of(error, cost_s=time.perf_counter() - start)
        try:
            return self._sorted(result, cost_s=time.perf_counter() - start)
        except Exception as error:  # a number of any type, which may fail in any way
            reason = f"the function returned an unusable result: {said(error)}"
            return Evaluation.failure(
                FailureKind.INVALID, reason, cost_s=time.perf_counter() - start
            )

    def _sorted(self, result: object, *, cost_s: float) -> Evaluation:
        names = [metric.name for metric in self.metrics]
        if isinstance(result, Evaluation):
            if result.ok:
                _require(names, result.metrics)
                _require(self.constraints, result.constraints)
            return result
        if not isinstance(result, Mapping):
            raise TypeError(f"it must be a mapping or an Evaluation, got {result!r}")
        _require((*names, *self.constraints), result)
        return Evaluation(
            metrics={name: _number(name, result[name]) for name in names},
            constraints={name: _number(name, result[name]) for name in self.constraints},
            cost_s=cost_s,
        )


def failure_of(error: BaseException, *, cost_s: float = 0.0) -> Evaluation:
    """Turn what an objective raised into a failed evaluation, its traceback kept.

    Args:
        error: `MemoryError` counts as ``oom``, `TimeoutError` as ``timeout``, `Unsupported` as
            ``invalid``, anything else as ``crash``, `SystemExit` too.
        cost_s: Seconds that the attempt took.
    """
    kinds = {
        MemoryError: FailureKind.OOM,
        TimeoutError: FailureKind.TIMEOUT,
        Unsupported: FailureKind.INVALID,
    }
    kind = next((kinds[k] for k in kinds if isinstance(error, k)), FailureKind.CRASH)
    return Evaluation(
        status=Status.FAILED,
        failure_kind=kind,
        reason=f"{type(error).__name__}: {said(error)}",
        cost_s=cost_s,
        attributes={"traceback": "".join(traceback.format_exception(error))},
    )


def said(error: BaseException) -> str:
    """The text of an error, also of one that fails to give it."""
    try:
        return str(error)
    except Exception:
        return f"(its text cannot be had from {type(error).__name__}.__str__)"


def _require(names: Sequence[str], result: Mapping[str, Any]) -> None:
    if missing := [name for name in names if name not in result]:
        raise ValueError(f"it must have {missing}, got {list(result)}")


def _number(name: str, value: Any) -> float:
    if isinstance(value, str | bytes):  # float("1") would take a text for a number
        raise TypeError(f"{name} must be a number, got {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} must be finite, got a number above 1.8e308") from None
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be a number, got {value!r}") from error


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

    Raises:
        InvalidInput: If there is no metric, or a name is given twice: one value has one meaning.
    """
    listed = (metrics,) if isinstance(metrics, str) else metrics
    resolved = tuple(Metric(name=m) if isinstance(m, str) else m for m in listed)
    limits = (constraints,) if isinstance(constraints, str) else tuple(constraints)
    _check_names([metric.name for metric in resolved], limits)

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
                constraints=limits,
                deterministic=deterministic,
                cost_s=cost_s,
                arguments=arguments,
                design_point=design_point,
            )

        return factory

    return decorate


def _check_names(metrics: Sequence[str], constraints: Sequence[str]) -> None:
    problems = []
    if not metrics:
        problems.append(Problem(path="metrics", message="must be at least one name"))
    for path, names in (("metrics", metrics), ("constraints", constraints)):
        twice = sorted(name for name, times in Counter(names).items() if times > 1)
        problems += [
            Problem(path=path, message=f"must differ, got {name!r} more than once")
            for name in twice
        ]
    problems += [
        Problem(
            path="constraints",
            message=f"must not have the name of a metric, got {name!r}; name the returned value "
            "of the constraint otherwise, such as what exceeds the limit",
        )
        for name in sorted(set(metrics) & set(constraints))
    ]
    if problems:
        raise InvalidInput("objective", problems)


def columns_of(configs: Sequence[Config]) -> dict[str, NDArray[Any]]:
    """Turn a list of configs with equal keys into one array per parameter."""
    names = list(configs[0]) if configs else []
    return {name: np.asarray([config[name] for config in configs]) for name in names}
