"""Why the best config is better: which of its changes matter, and what each is worth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from autotune.between import (
    NO_EFFECT,
    Between,
    KnobChange,
    Step,
    differences,
    minimal_groups,
)
from autotune.errors import Unsupported
from autotune.metric import Metric
from autotune.objective import Config, Objective
from autotune.space import SearchSpace
from autotune.trial import Trial

if TYPE_CHECKING:
    from autotune.study import Study

MAX_COST_S = 60.0
"""How long measuring what changes are worth may take unless the caller allows more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A part of the way from the baseline to a better config.

    Attributes:
        knobs: The parameters; several when they are of use only together, or when the rules of
            the space tie them to one another.
        without: Each metric before the change, with the earlier ones made, in its own unit;
            empty when that could not be measured.
        effects: What the change adds to each metric: with it minus without it.
        broken: Constraints that hold with it and not without it.
        reason: Why measuring without it failed; empty when it did not.
    """

    knobs: tuple[KnobChange, ...]
    without: Mapping[str, float]
    effects: Mapping[str, float]
    broken: tuple[str, ...] = ()
    reason: str = ""

    @property
    def needed(self) -> bool:
        """Whether what was changed before it cannot be used without it."""
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
            measured. Nothing is written to it.
        trial: The config that is explained; the study's best when not given.
        baseline: What it is compared with; the study's first baseline when not given.
        n: How many.
        max_cost_s: How long measuring may take, by the objective's own statement.

    Returns:
        Largest gain first; empty when there is no measured baseline, no best or no difference.

    Raises:
        Unsupported: If measuring would take longer.
    """
    trial = trial or study.best()
    baseline = baseline or study.baseline()
    if trial is None or baseline is None or baseline.evaluation is None:
        return []
    changes = ablate(
        trial,
        baseline,
        space=study.spec.space,
        objective=study.objective,
        metrics=study.metrics,
        known=study.trials,
        max_cost_s=max_cost_s,
    )
    return changes[:n]


def ablate(
    trial: Trial,
    baseline: Trial,
    *,
    space: SearchSpace,
    objective: Objective,
    metrics: Sequence[Metric],
    known: Sequence[Trial] = (),
    max_cost_s: float = MAX_COST_S,
) -> list[Change]:
    """Find which changes of a config are of use, and what each of them is worth.

    First the changes without which the config is no worse are taken back. Then the way from the
    baseline to what is left is gone step by step: of the changes that are possible next, alone or
    with what the rules of the space tie to them, the one that does most for the first metric is
    made. Steps through configs that are worse or cannot be used count as one change with those
    that make up for it: only together are they of any use. So the effects of the useful changes
    add up, which those of changes undone one at a time do not: where a layout was changed and its
    schedule with it, undoing either alone looks disastrous.

    Args:
        trial: A measured config of the space.
        baseline: Another one.
        space: Says which changes can only be made together.
        objective: Measures the configs between the two; with the trial's seed.
        metrics: What counts; the first decides the order.
        known: Measured trials that need no second measurement, where it is deterministic.
        max_cost_s: See `changes_that_matter`.

    Returns:
        All changes, each parameter in one of them: by what the first metric gains, those of no
        use or with a price last.

    Raises:
        Unsupported: If measuring would take longer than `max_cost_s`.

    References:
        Fawcett and Hoos, "Analysing differences between algorithm configurations through
        ablation", Journal of Heuristics 22(4), 2016, section 3 (greedy path).
    """
    assert trial.evaluation is not None, "only a measured trial can be explained"
    assert baseline.evaluation is not None, "only a measured baseline can be compared with"
    _check_cost(objective, len(differences(trial.config, baseline.config)), max_cost_s)
    between = Between(
        first=baseline,
        last=trial,
        space=space,
        objective=objective,
        known=known if objective.deterministic else (),
    )
    useful, idle = _taken_back(between, metrics)
    path = _path(between, useful, metrics[0])
    changes = [_change(start, steps, metrics) for start, steps in _joined(path, metrics[0])]
    changes.sort(key=lambda change: (-_rank(change, metrics[0]), not change.needed))
    return changes + idle


def _taken_back(between: Between, metrics: Sequence[Metric]) -> tuple[Config, list[Change]]:
    """The last config without its useless changes, and those changes."""
    baseline = between.first.config
    here = between.step(between.last.config, baseline, ())
    idle: list[Change] = []
    while groups := minimal_groups(here.config, baseline, between.is_valid):
        options = between.steps(here.config, baseline, groups)
        useless = _disjoint(step for step in options if not _is_of_use(here, step, metrics))
        if not useless:
            break
        # All at once, if that changes nothing either: most are independent of one another.
        names = tuple(name for step in useless for name in step.knobs)
        whole = {**here.config, **{name: baseline[name] for name in names}}
        if not between.is_valid(whole) or _is_of_use(
            here, between.step(here.config, baseline, names), metrics
        ):
            useless = [min(useless, key=lambda step: step.order(metrics[0]))]
            names = useless[0].knobs
        idle += [_change(step, [replace(here, knobs=step.knobs)], metrics) for step in useless]
        here = between.step(here.config, baseline, names)
    return here.config, idle


def _is_of_use(with_it: Step, without: Step, metrics: Sequence[Metric]) -> bool:
    """Whether any metric is worse without a change."""
    return any(without.is_worse_than(with_it, metric) for metric in metrics)


def _disjoint(steps: Iterable[Step]) -> list[Step]:
    """The first steps that have no parameter in common."""
    chosen: list[Step] = []
    for step in steps:
        if not any(set(step.knobs) & set(other.knobs) for other in chosen):
            chosen.append(step)
    return chosen


def _path(between: Between, target: Config, metric: Metric) -> list[Step]:
    """From the first config to a target, always by what is best next."""
    path = [between.step(between.first.config, target, ())]
    while groups := minimal_groups(path[-1].config, target, between.is_valid):
        options = between.steps(path[-1].config, target, groups)
        path.append(min(options, key=lambda step: step.order(metric)))
    return path


def _joined(path: Sequence[Step], metric: Metric) -> Iterator[tuple[Step, Sequence[Step]]]:
    """Where each change starts, and its steps; what is not made up for until the end comes last."""
    start, steps = path[0], list[Step]()
    for step in path[1:]:
        steps.append(step)
        if not step.is_worse_than(start, metric):
            yield start, steps
            start, steps = step, []
    if steps:
        yield start, steps


def _check_cost(objective: Objective, changes: int, max_cost_s: float) -> None:
    # Each step tries all changes that are left.
    cost_s = changes**2 / 2 * objective.cost_s
    if cost_s > max_cost_s:
        raise Unsupported(
            f"measuring what {changes} changes are worth must take at most {max_cost_s:g} s, "
            f"and objective {objective.name!r} needs about {cost_s:.0f} s; allow more with "
            f"max_cost_s"
        )


def _change(start: Step, steps: Sequence[Step], metrics: Sequence[Metric]) -> Change:
    before, after = start.evaluation, steps[-1].evaluation
    config = steps[-1].config
    names = [name for step in steps for name in step.knobs]
    knobs = tuple(
        KnobChange(name=name, before=start.config[name], after=config[name])
        for name in sorted(names, key=list(config).index)
    )
    if not before.ok:
        return Change(
            knobs=knobs, without={}, effects={}, reason=before.reason or before.status.value
        )
    shared = [m.name for m in metrics if m.name in before.metrics and m.name in after.metrics]
    return Change(
        knobs=knobs,
        without={name: before.metrics[name] for name in shared},
        effects={name: after.metrics[name] - before.metrics[name] for name in shared},
        broken=tuple(
            name
            for name, value in before.constraints.items()
            if value > 0 and after.constraints.get(name, np.inf) <= 0
        ),
    )


def _rank(change: Change, metric: Metric) -> float:
    """The gain, with differences too small to be shown counted as none."""
    return change.gain(metric) if change.affects(metric) else 0.0
