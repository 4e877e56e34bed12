"""Why the best config is better: which of its changes matter, and what each is worth."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from autotune.errors import Unsupported
from autotune.evaluation import Evaluation
from autotune.metric import Metric
from autotune.objective import Config, Objective, failure_of
from autotune.space import SearchSpace
from autotune.trial import Trial

if TYPE_CHECKING:
    from autotune.study import Study

MAX_COST_S = 60.0
"""How long undoing all changes one by one may take unless the caller allows more."""

NO_EFFECT = 5e-4
"""Relative difference of a metric below which a change is said to have no effect on it."""

_LARGEST_SEARCHED_GROUP = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class KnobChange:
    """One parameter that differs between two configs."""

    name: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Parameters that can only be changed together, and what happens without the change.

    Attributes:
        knobs: The parameters; several when the rules of the space tie them to one another.
        without: Each metric with this change undone and all others kept, in its own unit;
            empty when that could not be measured.
        effects: What the change does to each metric: with it minus without it.
        broken: Constraints that do not hold without the change.
        reason: Why measuring without the change failed; empty when it did not.
    """

    knobs: tuple[KnobChange, ...]
    without: Mapping[str, float]
    effects: Mapping[str, float]
    broken: tuple[str, ...] = ()
    reason: str = ""

    @property
    def needed(self) -> bool:
        """Whether the rest of the config cannot be used without the change."""
        return bool(self.broken or self.reason)

    def gain(self, metric: Metric) -> float:
        """How much better the change makes a metric, in its unit; negative when worse."""
        effect = self.effects.get(metric.name, 0.0)
        return -effect if metric.direction == "minimize" else effect

    def affects(self, metric: Metric) -> bool:
        """Whether a metric differs by more than `NO_EFFECT` without the change."""
        effect, value = self.effects.get(metric.name, 0.0), self.without.get(metric.name, 0.0)
        return abs(effect) > NO_EFFECT * max(abs(value), abs(value + effect))


def changes_that_matter(
    study: Study,
    trial: Trial | None = None,
    baseline: Trial | None = None,
    n: int = 3,
    *,
    max_cost_s: float = MAX_COST_S,
) -> list[Change]:
    """The n changes of a config against the baseline that its first metric owes most to.

    Args:
        study: Gives space, objective and metrics; its trials are looked up before anything is
            measured again. Nothing is written to it.
        trial: The config that is explained; the study's best when not given.
        baseline: What it is compared with; the study's first baseline when not given.
        n: How many.
        max_cost_s: How long measuring may take, by the objective's own statement.

    Returns:
        Largest gain first; empty when there is no baseline, no best or no difference.

    Raises:
        Unsupported: If measuring would take longer.
    """
    trial = trial or study.best()
    baseline = baseline or study.baseline()
    if trial is None or baseline is None:
        return []
    changes = undo_each(
        trial,
        baseline.config,
        space=study.spec.space,
        objective=study.objective,
        metrics=study.metrics,
        known=study.trials,
        max_cost_s=max_cost_s,
    )
    return changes[:n]


def undo_each(
    trial: Trial,
    baseline: Config,
    *,
    space: SearchSpace,
    objective: Objective,
    metrics: Sequence[Metric],
    known: Sequence[Trial] = (),
    max_cost_s: float = MAX_COST_S,
) -> list[Change]:
    """Undo every change of a config on its own and measure what is left.

    The effects of changes need not sum to the whole difference: they act on one another.

    Args:
        trial: A measured config of the space.
        baseline: A config of the space.
        space: Says which changes can only be undone together.
        objective: Measures; with the trial's seed.
        metrics: What counts; the first decides the order.
        known: Measured trials that need no second measurement, where it is deterministic.
        max_cost_s: See `changes_that_matter`.

    Returns:
        All changes: by what the first metric gains, then needed ones before those without
        effect.

    Raises:
        Unsupported: If measuring would take longer than `max_cost_s`.
    """
    assert trial.evaluation is not None, "only a measured trial can be explained"
    groups = minimal_groups(trial.config, baseline, space.contains)
    configs = [{**trial.config, **{name: baseline[name] for name in group}} for group in groups]
    measured = [_known(known, config) if objective.deterministic else None for config in configs]
    _check_cost(objective, measured.count(None), max_cost_s)
    changes = []
    for group, config, found in zip(groups, configs, measured, strict=True):
        evaluation = found or _measure(objective, config, trial.seed)
        knobs = tuple(
            KnobChange(name=name, before=baseline[name], after=trial.config[name]) for name in group
        )
        changes.append(_change(knobs, trial.evaluation, evaluation, metrics))
    changes.sort(key=lambda change: (-_rank(change, metrics[0]), not change.needed))
    return changes


def differences(config: Config, baseline: Config) -> list[KnobChange]:
    """The parameters that differ, in the config's order."""
    return [
        KnobChange(name=name, before=baseline.get(name), after=value)
        for name, value in config.items()
        if name not in baseline or baseline[name] != value
    ]


def minimal_groups(
    config: Config, baseline: Config, is_valid: Callable[[Config], bool]
) -> list[tuple[str, ...]]:
    """The smallest sets of changed parameters that can be set back to the baseline together.

    Args:
        config: A valid config.
        baseline: A valid config with the same parameters.
        is_valid: Whether a config satisfies every rule of the space.

    Returns:
        For every changed parameter the first smallest set that has it, each set once, the
        parameters in the config's order. Beyond four parameters a set from which nothing can be
        left out stands for the smallest.
    """
    changed = [change.name for change in differences(config, baseline)]

    def valid_without(group: Collection[str]) -> bool:
        return is_valid({**config, **{name: baseline[name] for name in group}})

    groups: dict[tuple[str, ...], None] = {}
    for name in changed:
        others = [other for other in changed if other != name]
        group = _smallest(name, others, valid_without)
        groups.setdefault(tuple(sorted(group, key=changed.index)))
    return list(groups)


def _smallest(
    name: str, others: Sequence[str], valid_without: Callable[[Collection[str]], bool]
) -> set[str]:
    for size in range(_LARGEST_SEARCHED_GROUP):
        for rest in itertools.combinations(others, size):
            if valid_without((name, *rest)):
                return {name, *rest}
    # Going back to the whole baseline is always valid; leave out what need not go back.
    group = {name, *others}
    for other in others:
        if valid_without(group - {other}):
            group.discard(other)
    return group


def _known(known: Sequence[Trial], config: Config) -> Evaluation | None:
    for trial in known:
        if trial.config == config and trial.evaluation is not None and trial.evaluation.ok:
            return trial.evaluation
    return None


def _check_cost(objective: Objective, evaluations: int, max_cost_s: float) -> None:
    cost_s = evaluations * objective.cost_s
    if cost_s > max_cost_s:
        raise Unsupported(
            f"measuring what {evaluations} changes are worth must take at most {max_cost_s:g} s, "
            f"and objective {objective.name!r} needs about {cost_s:.0f} s; allow more with "
            f"max_cost_s"
        )


def _measure(objective: Objective, config: Config, seed: int) -> Evaluation:
    try:
        return objective.evaluate(config, seed=seed)
    except Exception as error:  # a backend that breaks its contract must not end the report
        return failure_of(error)


def _change(
    knobs: tuple[KnobChange, ...],
    best: Evaluation,
    without: Evaluation,
    metrics: Sequence[Metric],
) -> Change:
    if not without.ok:
        reason = without.reason or without.status.value
        return Change(knobs=knobs, without={}, effects={}, reason=reason)
    names = [m.name for m in metrics if m.name in best.metrics and m.name in without.metrics]
    return Change(
        knobs=knobs,
        without={name: without.metrics[name] for name in names},
        effects={name: best.metrics[name] - without.metrics[name] for name in names},
        broken=tuple(
            name
            for name, value in without.constraints.items()
            if value > 0 and best.constraints.get(name, np.inf) <= 0
        ),
    )


def _rank(change: Change, metric: Metric) -> float:
    """The gain, with differences too small to be shown counted as none."""
    return change.gain(metric) if change.affects(metric) else 0.0
