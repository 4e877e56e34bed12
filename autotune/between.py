"""The configs between two others, as when changes are made one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from autotune.evaluation import Evaluation
from autotune.metric import Metric
from autotune.objective import BatchObjective, Config, Objective, columns_of, failure_of
from autotune.space import SearchSpace
from autotune.study.measuring import measure
from autotune.trial import Trial

NO_EFFECT = 5e-4
"""Relative difference of a metric below which a change is said to have no effect on it."""

LARGEST_GROUP = 4
"""How many parameters are searched for what can be changed together; more are changed at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnobChange:
    """One parameter that differs between two configs."""

    name: str
    before: Any
    after: Any


def differences(config: Config, baseline: Config) -> list[KnobChange]:
    """The parameters that differ, in the config's order."""
    return [
        KnobChange(name=name, before=baseline.get(name), after=value)
        for name, value in config.items()
        if name not in baseline or baseline[name] != value
    ]


def minimal_groups(
    config: Config, target: Config, is_valid: Callable[[Config], bool]
) -> list[tuple[str, ...]]:
    """The smallest sets of parameters that can take their values from another config together.

    Args:
        config: A valid config.
        target: A valid config with the same parameters.
        is_valid: Whether a config satisfies every rule of the space.

    Returns:
        Sets of up to `LARGEST_GROUP` parameters that no smaller one is part of, the parameters in
        the config's order; where there is none, everything that differs. Empty for equal configs.
    """
    changed = [change.name for change in differences(target, config)]
    found: list[tuple[str, ...]] = []
    for size in range(1, LARGEST_GROUP + 1):
        for group in itertools.combinations(changed, size):
            if any(set(smaller) <= set(group) for smaller in found):
                continue
            if is_valid({**config, **{name: target[name] for name in group}}):
                found.append(group)
        if set().union(*found) == set(changed):
            break
    return found or ([tuple(changed)] if changed else [])


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A config between two others.

    Attributes:
        knobs: The parameters that were just changed.
        config: What that gave.
        evaluation: What it was measured to be.
    """

    knobs: tuple[str, ...]
    config: Config
    evaluation: Evaluation

    def order(self, metric: Metric) -> tuple[int, float]:
        """What can be used first, then by the metric; smaller is better."""
        if not self.evaluation.ok:
            return 2, 0.0
        value = self.evaluation.metrics[metric.name]
        loss = value if metric.direction == "minimize" else -value
        return int(not self.evaluation.feasible), loss

    def is_worse_than(self, other: Step, metric: Metric) -> bool:
        """Whether it cannot be used where the other can, or the metric is worse by anything."""
        (kind, loss), (other_kind, other_loss) = self.order(metric), other.order(metric)
        tolerance = NO_EFFECT * max(abs(loss), abs(other_loss))
        return kind > other_kind or (kind == other_kind and loss > other_loss + tolerance)


@dataclass(slots=True, kw_only=True)
class Between:
    """The configs that have each parameter either as in a first config or as in a last one.

    Attributes:
        first: A measured trial.
        last: Another one.
        space: Says which of the configs are valid.
        objective: Measures them.
        known: Trials that need not be measured again.
    """

    first: Trial
    last: Trial
    space: SearchSpace
    objective: Objective
    known: Sequence[Trial]
    _valid: dict[frozenset[str], bool] = field(default_factory=dict)
    _measured: dict[frozenset[str], Evaluation] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for trial in (self.first, self.last):
            assert trial.evaluation is not None, "both ends are measured"
            self._measured[self._key(trial.config)] = trial.evaluation

    def is_valid(self, config: Config) -> bool:
        """As `SearchSpace.contains`, asked once per config."""
        key = self._key(config)
        if key not in self._valid:
            self._valid[key] = self.space.contains(config)
        return self._valid[key]

    def step(self, config: Config, target: Config, knobs: tuple[str, ...]) -> Step:
        """Change some parameters to what they are in a target, and measure."""
        return self.steps(config, target, [knobs])[0]

    def steps(
        self, config: Config, target: Config, groups: Sequence[tuple[str, ...]]
    ) -> list[Step]:
        """Do so with each group by itself; those that nobody has measured at once."""
        configs = [{**config, **{name: target[name] for name in group}} for group in groups]
        keys = [self._key(each) for each in configs]
        wanted = {
            key: each for key, each in zip(keys, configs, strict=True) if not self._find(key, each)
        }
        found = _measure_all(list(wanted.values()), self.objective, seed=self.last.seed)
        self._measured |= zip(wanted, found, strict=True)
        return [
            Step(knobs=group, config=each, evaluation=self._measured[key])
            for group, each, key in zip(groups, configs, keys, strict=True)
        ]

    def _key(self, config: Config) -> frozenset[str]:
        last = self.last.config
        return frozenset(name for name, value in config.items() if value == last[name])

    def _find(self, key: frozenset[str], config: Config) -> bool:
        if key not in self._measured:
            for trial in self.known:
                if trial.config == config and trial.evaluation is not None:
                    self._measured[key] = trial.evaluation
        return key in self._measured


def _measure_all(configs: Sequence[Config], objective: Objective, *, seed: int) -> list[Evaluation]:
    if len(configs) > 1 and isinstance(objective, BatchObjective):
        try:
            evaluations = objective.evaluate_batch(columns_of(configs))
        except Exception as error:  # a backend that breaks its contract must not end the report
            return [failure_of(error)] * len(configs)
        return [evaluations.row(i) for i in range(len(configs))]
    return [measure(objective, config, seed=seed).evaluation for config in configs]
