"""How far a study is: a bar on a terminal, plain log lines elsewhere."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from autotune.metric import Metric
from autotune.quantity import format_change, format_quantity
from autotune.trial import Origin, Trial, TrialState

if TYPE_CHECKING:
    from rich.console import Console

LOG_EVERY_S = 30.0
"""A plain log line is written at least this often while trials finish."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How far a study is.

    Attributes:
        metrics: Those that are optimised.
        total: The budget.
        done: Slots of it that are used.
        new: Trials finished since this process started.
        failed: Those without values.
        baseline: The first measured baseline.
        best: The feasible trial that is best in each metric, by its name.
    """

    metrics: tuple[Metric, ...]
    total: int
    done: int = 0
    new: int = 0
    failed: int = 0
    baseline: Trial | None = None
    best: dict[str, Trial]

    def after(self, trial: Trial, *, is_new: bool = True) -> Standing:
        """The standing once a trial has finished; one outside the budget changes nothing."""
        if trial.slot is None or trial.state not in (TrialState.COMPLETE, TrialState.FAILED):
            return self
        best = dict(self.best)
        if trial.feasible:
            for metric in self.metrics:
                if metric.name not in best or _beats(trial, best[metric.name], metric):
                    best[metric.name] = trial
        is_baseline = trial.origin is Origin.BASELINE and trial.evaluation is not None
        return replace(
            self,
            done=self.done + 1,
            new=self.new + is_new,
            failed=self.failed + (trial.state is TrialState.FAILED),
            baseline=trial if self.baseline is None and is_baseline else self.baseline,
            best=best,
        )

    def describe_best(self) -> str:
        """Best values so far: ``step time 5.61 s, 13 % less than today; …``."""
        parts = [self._describe(metric) for metric in self.metrics if metric.name in self.best]
        return "; ".join(parts) or "nothing feasible so far"

    def _describe(self, metric: Metric) -> str:
        value = _value(self.best[metric.name], metric)
        text = f"{metric.title} {format_quantity(value, metric.unit)}"
        baseline = self.baseline
        if baseline is None or not baseline.feasible or baseline is self.best[metric.name]:
            return text
        change = format_change(value, _value(baseline, metric), metric)
        name = baseline.label or "the baseline"
        if change == "unchanged":
            return f"{text}, as {name}"
        return f"{text}, {change} {'of' if change.endswith('x') else 'than'} {name}"


def standing(
    metrics: Sequence[Metric], trials: Sequence[Trial], total: int, *, baseline: str = ""
) -> Standing:
    """The standing of a study before this process adds to it.

    Args:
        metrics: Those that are optimised.
        trials: What the study holds.
        total: The budget.
        baseline: Label of the baseline that counts, where it is measured already.
    """
    result = Standing(metrics=tuple(metrics), total=total, best={})
    for trial in trials:
        result = result.after(trial, is_new=False)
    named = [t for t in trials if t.origin is Origin.BASELINE and t.label == baseline]
    return replace(result, baseline=named[0]) if baseline and named else result


@contextmanager
def shown(start: Standing, title: str, console: Console) -> Iterator[Callable[[Trial], None]]:
    """Show progress while a study runs.

    Args:
        start: Where it begins.
        title: What runs.
        console: A bar is drawn on it if it is a terminal; otherwise lines go to the log.

    Yields:
        What is called with every finished trial, in the order they finish.
    """
    if console.is_terminal:
        with _bar(start, title, console) as update:
            yield update
    else:
        yield _log_lines(start, title, time.monotonic)


def _log_lines(start: Standing, title: str, clock: Callable[[], float]) -> Callable[[Trial], None]:
    """Log each tenth of the budget, and otherwise every `LOG_EVERY_S`."""
    began = last = clock()
    now = start

    def update(trial: Trial) -> None:
        nonlocal now, last
        before, now = now, now.after(trial)
        tenth = max(now.total // 10, 1)
        if before.done // tenth == now.done // tenth and clock() - last < LOG_EVERY_S:
            return
        last = clock()
        _logger.info("%s: %s; best %s", title, pace(now, last - began), now.describe_best())

    return update


def pace(now: Standing, elapsed_s: float) -> str:
    """Count, rate and time left: ``trial 120/200, 1 failed, 14.2 trials/s, 5.6 s left``."""
    parts = [f"trial {now.done}/{now.total}"]
    if now.failed:
        parts.append(f"{now.failed} failed")
    if now.new and elapsed_s > 0:
        rate = now.new / elapsed_s
        parts.append(f"{rate:.3g} trials/s" if rate >= 1 else f"{1 / rate:.3g} s/trial")
        parts.append(f"{format_duration(max(now.total - now.done, 0) / rate)} left")
    return ", ".join(parts)


def format_duration(seconds: float) -> str:
    """Seconds as people say them: ``0.4 s``, ``12 s``, ``3 min 20 s``, ``2 h 5 min``."""
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


@contextmanager
def _bar(start: Standing, title: str, console: Console) -> Iterator[Callable[[Trial], None]]:
    from rich.console import Group
    from rich.live import Live
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.text import Text

    began = time.monotonic()
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[pace]}", markup=False),
    )
    bar = Progress(*columns, console=console)
    task = bar.add_task(title, total=start.total, completed=start.done, pace=pace(start, 0.0))
    best = Text(style="dim", overflow="ellipsis", no_wrap=True)
    now = start

    def update(trial: Trial) -> None:
        nonlocal now
        now = now.after(trial)
        text = pace(now, time.monotonic() - began)
        bar.update(task, completed=now.done, pace=text)
        best.plain = f"best: {now.describe_best()}"

    with Live(Group(bar, best), console=console, refresh_per_second=8):
        yield update


def _beats(trial: Trial, other: Trial, metric: Metric) -> bool:
    new, old = _value(trial, metric), _value(other, metric)
    return new < old if metric.direction == "minimize" else new > old


def _value(trial: Trial, metric: Metric) -> float:
    assert trial.evaluation is not None, "only measured trials are compared"
    return trial.evaluation.metrics[metric.name]
