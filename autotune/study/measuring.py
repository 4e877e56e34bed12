"""Calls an objective so that whatever it does is an `Evaluation`."""

from __future__ import annotations

import copy
import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from autotune.evaluation import Evaluation, FailureKind, Status
from autotune.objective import Config, Objective, failure_of, said
from autotune.study.packing import pack_evaluation, storable_text, unpack_evaluation

_logger = logging.getLogger(__name__)

_MOST_REPORTS = 1000
_LARGEST_STEP = 2**53


@dataclass(slots=True)
class Reporter:
    """The `Report` given to an objective: keeps what it says and asks it to stop in time.

    Attributes:
        stop_at: Wall-clock time (``time.time()``) from when on the answer is "stop"; None for
            never.
        values: What was reported, the newest last; step and metrics.
        stopped: Whether it has answered "stop".
    """

    stop_at: float | None = None
    values: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    stopped: bool = False

    def __call__(self, step: int, metrics: Mapping[str, float]) -> bool:
        """Take an intermediate value, see `Report`; whatever is given, it never raises."""
        _explain_reports()
        try:
            values = {storable_text(str(k)): float(v) for k, v in metrics.items()}
            self.values.append((_count(step), values))
        except Exception as error:  # numbers may be of any type, and fail in any way
            _logger.warning("an objective reported what is no number, ignored: %s", said(error))
        del self.values[:-_MOST_REPORTS]
        if self.stop_at is not None and time.time() >= self.stop_at:
            self.stopped = True
        return self.stopped


def _count(step: Any) -> int:
    count = int(step)
    if abs(count) > _LARGEST_STEP:
        raise ValueError(f"a step must be between -2**53 and 2**53, got one of {step:.3g}")
    return count


@cache
def _explain_reports() -> None:
    """Say once what becomes of intermediate values."""
    _logger.info(
        "intermediate values are recorded with the trial; no measurement is stopped because of "
        "them, only because the time is over: several metrics have no common order to judge by"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A result with what the study itself saw.

    Attributes:
        evaluation: Complete, or a failure.
        wall_s: From call to return, in seconds.
        reports: What the objective reported, as JSON values.
        stopped_by_study: It returned early because the study asked it to.
    """

    evaluation: Evaluation
    wall_s: float
    reports: Sequence[Any] = ()
    stopped_by_study: bool = False


def measure(
    objective: Objective,
    config: Config,
    *,
    seed: int,
    stop_at: float | None = None,
    interrupted: Callable[[], bool] = lambda: True,
) -> Measurement:
    """Measure one config; only Ctrl-C comes through.

    What comes back is plain: it can be sent to another process and stored.

    Args:
        objective: The backend.
        config: Valid; the backend gets a copy.
        seed: For the backend.
        stop_at: When its reports are answered with "stop", see `Reporter`.
        interrupted: Asked when a `KeyboardInterrupt` is raised: whether a user or a signal is
            behind it. One that the objective raised by itself is a crash, as `sys.exit` is.

    Raises:
        KeyboardInterrupt: If a user or a signal interrupted.
    """
    report = Reporter(stop_at=stop_at)
    start = time.perf_counter()
    result: object
    try:
        result = objective.evaluate(copy.deepcopy(dict(config)), seed=seed, report=report)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and interrupted():
            raise
        result = failure_of(error, cost_s=time.perf_counter() - start)
    wall_s = time.perf_counter() - start
    evaluation = _plain(result, objective, wall_s)
    return Measurement(
        evaluation=evaluation,
        wall_s=wall_s,
        reports=[[step, _finite(values)] for step, values in report.values],
        stopped_by_study=report.stopped and evaluation.status is Status.STOPPED,
    )


def measure_apart(
    objective: Objective, config: Config, *, seed: int, stop_at: float | None = None
) -> Measurement:
    """As `measure`, in a process that belongs to a study: Ctrl-C is the business of the study."""
    with _deaf_to_interrupts():
        return measure(objective, config, seed=seed, stop_at=stop_at, interrupted=lambda: False)


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Ctrl-C on a terminal reaches all processes; the study ends its own in good order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # A handler, not SIG_IGN, which the programs that an objective starts would inherit.
    previous = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous if previous is not None else signal.SIG_DFL)


def _plain(result: object, objective: Objective, wall_s: float) -> Evaluation:
    """The checked result in types that can be stored, or the failure that it has none."""
    try:
        return unpack_evaluation(pack_evaluation(checked(result, objective)))
    except Exception as error:  # what an objective makes may fail in any way when it is read
        what = f"returned an unusable result: {said(error)}"
        return _invalid(objective, what, cost_s=wall_s)


def checked(result: object, objective: Objective) -> Evaluation:
    """A result that has what the objective declares, or the failure that it does not."""
    if not isinstance(result, Evaluation):
        return _invalid(objective, f"returned {result!r}, which is no Evaluation")
    if not result.ok:
        return result
    declared = {
        "metrics": ([metric.name for metric in objective.metrics], result.metrics),
        "constraints": (list(objective.constraints), result.constraints),
    }
    for kind, (names, values) in declared.items():
        if missing := [name for name in names if name not in values]:
            return _invalid(
                objective,
                f"gave no value for its {kind} {', '.join(missing)}; without them a "
                "config cannot be called good",
                cost_s=result.cost_s,
            )
    return result


def _invalid(objective: Objective, what: str, *, cost_s: float = 0.0) -> Evaluation:
    reason = f"the objective {objective.name!r} {what}"
    return Evaluation.failure(FailureKind.INVALID, reason, cost_s=cost_s)


def _finite(values: Mapping[str, float]) -> dict[str, float | None]:
    """JSON has no NaN."""
    return {name: value if abs(value) < float("inf") else None for name, value in values.items()}
