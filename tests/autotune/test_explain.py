from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution

from autotune import (
    Columns,
    Config,
    Evaluation,
    Evaluations,
    FailureKind,
    Metric,
    Origin,
    Predicate,
    Product,
    SearchSpace,
    Trial,
    TrialState,
    Unsupported,
)
from autotune.between import NO_EFFECT, differences, minimal_groups
from autotune.explain import Change, ablate
from autotune.importance import MIN_TRIALS, importances

TIME = Metric(name="time_s", unit="s")
SPACE = SearchSpace(
    {
        "tp": CategoricalDistribution([1, 2, 4, 8]),
        "pp": CategoricalDistribution([1, 2, 4, 8]),
        "dp": CategoricalDistribution([1, 2, 4, 8]),
        "fast": CategoricalDistribution([False, True]),
        "idle": CategoricalDistribution(["a", "b"]),
    },
    constraints=[Product(name="world", factors=("tp", "pp", "dp"), equals=8)],
)
BASELINE = {"tp": 8, "pp": 1, "dp": 1, "fast": False, "idle": "a"}
BEST = {"tp": 2, "pp": 1, "dp": 4, "fast": True, "idle": "b"}


@dataclass
class Counting:
    """An objective that remembers what it was asked."""

    deterministic: bool = True
    cost_s: float = 0.0
    memory_limit: float = 1e9
    name: str = "counting"
    version: str = "1"
    metrics: tuple[Metric, ...] = (TIME,)
    constraints: tuple[str, ...] = ("memory",)
    asked: list[Config] = field(default_factory=list)

    def evaluate(self, config: Config, *, seed: int, report: Any = None) -> Evaluation:
        self.asked.append(config)
        return measure(config, self.memory_limit)


def measure(config: Config, memory_limit: float = 1e9) -> Evaluation:
    time_s = 10.0 + config["tp"] - (4.0 if config["fast"] else 0.0)
    return Evaluation(
        metrics={"time_s": time_s}, constraints={"memory": 8 / config["dp"] - memory_limit}
    )


def make(config: Config, number: int = 1, evaluation: Evaluation | None = None) -> Trial:
    return Trial(
        number=number,
        slot=number,
        state=TrialState.COMPLETE,
        origin=Origin.SAMPLER,
        config=config,
        evaluation=evaluation or measure(config),
    )


def explain(
    best: Config = BEST, objective: Counting | None = None, *, limit: float = 1e9, **options: Any
) -> list[Change]:
    return ablate(
        make(best, evaluation=measure(best, limit)),
        make(BASELINE, number=0, evaluation=measure(BASELINE, limit)),
        space=SPACE,
        objective=objective or Counting(memory_limit=limit),
        **{"metrics": [TIME], **options},
    )


def names(changes: list[Change]) -> list[tuple[str, ...]]:
    return [tuple(knob.name for knob in change.knobs) for change in changes]


def test_tied_parameters_change_together_and_free_ones_alone() -> None:
    groups = minimal_groups(BASELINE, BEST, SPACE.contains)
    assert groups == [("fast",), ("idle",), ("tp", "dp")]
    assert minimal_groups(BEST, BEST, SPACE.contains) == []


def test_what_is_tied_beyond_the_searched_size_changes_at_once() -> None:
    tied = [f"p{i}" for i in range(7)]
    space = SearchSpace(
        {name: CategoricalDistribution([0, 1]) for name in [*tied, "free"]},
        constraints=[
            Predicate(name=f"equal {a} {b}", reads=(a, b), holds=lambda **c: c[min(c)] == c[max(c)])
            for a, b in itertools.pairwise(tied)
        ],
    )
    config, target = dict.fromkeys(space.names, 0), dict.fromkeys(space.names, 1)
    assert minimal_groups(config, target, space.contains) == [("free",)]
    assert minimal_groups({**config, "free": 1}, target, space.contains) == [tuple(tied)]


def test_changes_come_by_what_they_gain() -> None:
    changes = explain()
    assert names(changes) == [("tp", "dp"), ("fast",), ("idle",)]
    first, second, idle = changes
    assert first.effects == {"time_s": -6.0}
    assert first.gain(TIME) == 6.0
    assert second.gain(TIME) == 4.0
    assert not idle.affects(TIME)
    assert (first.knobs[0].before, first.knobs[0].after) == (8, 2)


def test_the_effects_add_up() -> None:
    changes = explain()
    before, after = measure(BASELINE).metrics["time_s"], measure(BEST).metrics["time_s"]
    assert sum(change.effects["time_s"] for change in changes) == pytest.approx(after - before)


class Coupled(Counting):
    """A layout and a switch that are good only together, and a switch with a price."""

    def evaluate(self, config: Config, *, seed: int, report: Any = None) -> Evaluation:
        together = (config["tp"] == 2) + config["fast"]
        time_s = {0: 10.0, 1: 30.0, 2: 5.0}[together] + (1.0 if config["idle"] == "b" else 0.0)
        return Evaluation(metrics={"time_s": time_s}, constraints={"memory": 0.0})


def test_changes_that_are_good_only_together_are_one() -> None:
    backend = Coupled()
    best = make(BEST, evaluation=backend.evaluate(BEST, seed=0))
    baseline = make(BASELINE, 0, backend.evaluate(BASELINE, seed=0))
    changes = ablate(best, baseline, space=SPACE, objective=backend, metrics=[TIME])
    assert names(changes) == [("tp", "dp", "fast"), ("idle",)]
    assert changes[0].effects == {"time_s": -5.0}
    assert changes[0].without == {"time_s": 10.0}
    assert changes[1].effects == {"time_s": 1.0}
    assert changes[1].gain(TIME) == -1.0


def test_a_config_that_buys_one_metric_with_another_is_explained_in_both() -> None:
    memory = Metric(name="memory")

    class Two(Counting):
        def evaluate(self, config: Config, *, seed: int, report: Any = None) -> Evaluation:
            plain = measure(config)
            return Evaluation(
                metrics={**plain.metrics, "memory": 1.0 + (config["idle"] == "a")},
                constraints=plain.constraints,
            )

    backend = Two()
    best = make(BEST, evaluation=backend.evaluate(BEST, seed=0))
    baseline = make(BASELINE, 0, backend.evaluate(BASELINE, seed=0))
    changes = ablate(best, baseline, space=SPACE, objective=backend, metrics=[TIME, memory])
    assert names(changes)[-1] == ("idle",)
    assert changes[-1].effects == {"time_s": 0.0, "memory": -1.0}
    assert changes[-1].affects(memory)


def test_what_makes_an_unusable_baseline_usable_is_needed() -> None:
    changes = explain(limit=4.0)
    assert names(changes)[0] == ("tp", "dp")
    assert changes[0].broken == ("memory",)
    assert changes[0].needed
    assert not changes[1].needed


def test_a_baseline_that_failed_is_a_reason() -> None:
    failed = make(BASELINE, 0, Evaluation.failure(FailureKind.OOM, "no memory left"))
    changes = ablate(make(BEST), failed, space=SPACE, objective=Counting(), metrics=[TIME])
    assert changes[-2].reason == "no memory left" or changes[0].reason == "no memory left"
    assert sum(bool(change.reason) for change in changes) == 1


def test_a_backend_with_a_fault_does_not_end_the_explanation() -> None:
    class Failing(Counting):
        def evaluate(self, config: Config, *, seed: int, report: Any = None) -> Evaluation:
            if not config["fast"]:
                raise RuntimeError("a backend with a fault")
            return measure(config)

    changes = explain(objective=Failing())
    assert names(changes) == [("tp", "dp"), ("fast",), ("idle",)]


class Batched(Counting):
    """Counts vectorised calls."""

    calls: int = 0

    def evaluate_batch(self, columns: Columns, *, breakdown: bool = False) -> Evaluations:
        self.calls += 1
        rows = [
            measure({name: column[i] for name, column in columns.items()})
            for i in range(len(columns["tp"]))
        ]
        return Evaluations(
            metrics={"time_s": np.array([row.metrics["time_s"] for row in rows])},
            constraints={"memory": np.array([row.constraints["memory"] for row in rows])},
            ok=np.ones(len(rows), dtype=np.bool_),
        )


def test_a_vectorised_backend_is_asked_for_many_at_once() -> None:
    backend = Batched()
    assert names(explain(objective=backend)) == names(explain())
    assert backend.calls > 0
    assert len(backend.asked) <= 1


def test_no_config_is_measured_twice() -> None:
    objective = Counting()
    explain(objective=objective)
    keys = [SPACE.key(config) for config in objective.asked]
    assert len(keys) == len(set(keys))
    assert SPACE.key(BEST) not in keys
    assert SPACE.key(BASELINE) not in keys


def test_what_is_known_is_not_measured_again() -> None:
    known = [make({**BEST, "fast": False}, number=7)]
    objective = Counting()
    explain(objective=objective, known=known)
    assert {**BEST, "fast": False} not in objective.asked
    noisy = Counting(deterministic=False)
    explain(objective=noisy, known=known)
    assert {**BEST, "fast": False} in noisy.asked


def test_a_costly_objective_is_not_started_without_leave() -> None:
    objective = Counting(cost_s=100.0)
    with pytest.raises(Unsupported, match=r"4 changes .* at most 60 s.*about 800 s.*max_cost_s"):
        explain(objective=objective)
    assert objective.asked == []
    explain(objective=objective, max_cost_s=800.0)


def test_gain_follows_the_direction() -> None:
    rate = Metric(name="time_s", direction="maximize")
    changes = explain(metrics=[rate])
    assert {change.gain(rate) for change in changes} == {-6.0, -4.0, 0.0}


def test_differences_are_in_the_config_order() -> None:
    assert [change.name for change in differences(BEST, BASELINE)] == ["tp", "dp", "fast", "idle"]
    assert differences(BEST, BEST) == []


def test_a_difference_below_the_threshold_is_no_effect() -> None:
    assert NO_EFFECT < 1e-3


NOISE_SPACE = SearchSpace(
    {
        "strong": FloatDistribution(0.0, 1.0),
        "weak": CategoricalDistribution(["a", "b", "c"]),
        "none": CategoricalDistribution([1, 2, 4]),
        "fixed": CategoricalDistribution([1]),
    }
)


def history(n: int) -> list[Trial]:
    offsets = {"a": 0.0, "b": 0.2, "c": 0.4}
    return [
        make(c, i, Evaluation(metrics={"time_s": 3 * c["strong"] + offsets[c["weak"]]}))
        for i, c in enumerate(NOISE_SPACE.sample(n, seed=3))
    ]


def test_importances_find_what_matters_and_sum_to_one() -> None:
    result = importances(history(120), NOISE_SPACE, TIME)
    assert result is not None
    assert list(result.shares)[:2] == ["strong", "weak"]
    assert sum(result.shares.values()) == pytest.approx(1.0)
    assert result.shares["fixed"] == 0.0
    assert result.shares["none"] < 0.05
    assert result.quality > 0.7
    assert result.num_trials == 120


def test_importances_repeat() -> None:
    trials = history(40)
    assert importances(trials, NOISE_SPACE, TIME) == importances(trials, NOISE_SPACE, TIME)


def test_too_few_or_equal_trials_have_no_importances() -> None:
    assert importances(history(MIN_TRIALS - 1), NOISE_SPACE, TIME) is None
    flat = Evaluation(metrics={"time_s": 1.0})
    trials = [make(c, i, flat) for i, c in enumerate(NOISE_SPACE.sample(30, seed=1))]
    assert importances(trials, NOISE_SPACE, TIME) is None


def test_failed_and_foreign_trials_are_left_out_of_importances() -> None:
    failed = Trial(
        number=900,
        slot=900,
        state=TrialState.FAILED,
        origin=Origin.SAMPLER,
        config={"strong": 0.5, "weak": "a", "none": 1, "fixed": 1},
        evaluation=Evaluation.failure(FailureKind.CRASH, "lost"),
    )
    foreign = make({"other": 1}, 901, Evaluation(metrics={"time_s": 1.0}))
    result = importances([*history(30), failed, foreign], NOISE_SPACE, TIME)
    assert result is not None
    assert result.num_trials == 30
