from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution

from autotune import (
    Config,
    Evaluation,
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
from autotune.explain import NO_EFFECT, differences, minimal_groups, undo_each
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


def test_tied_parameters_are_undone_together_and_free_ones_alone() -> None:
    groups = minimal_groups(BEST, BASELINE, SPACE.contains)
    assert groups == [("tp", "dp"), ("fast",), ("idle",)]


def test_a_group_beyond_the_searched_size_has_nothing_to_leave_out() -> None:
    names = [f"p{i}" for i in range(7)]
    space = SearchSpace(
        {name: CategoricalDistribution([0, 1]) for name in [*names, "free"]},
        constraints=[
            Predicate(name=f"equal {a} {b}", reads=(a, b), holds=lambda **c: c[min(c)] == c[max(c)])
            for a, b in itertools.pairwise(names)
        ],
    )
    config, baseline = dict.fromkeys(space.names, 1), dict.fromkeys(space.names, 0)
    assert minimal_groups(config, baseline, space.contains) == [tuple(names), ("free",)]


def test_changes_come_by_what_they_gain() -> None:
    changes = undo_each(make(BEST), BASELINE, space=SPACE, objective=Counting(), metrics=[TIME])
    assert [tuple(knob.name for knob in change.knobs) for change in changes] == [
        ("tp", "dp"),
        ("fast",),
        ("idle",),
    ]
    first, second, idle = changes
    assert first.effects == {"time_s": -6.0}
    assert first.without == {"time_s": 14.0}
    assert first.gain(TIME) == 6.0
    assert second.gain(TIME) == 4.0
    assert not idle.affects(TIME)
    assert first.knobs[0].before == 8
    assert first.knobs[0].after == 2


def test_a_change_that_the_config_cannot_do_without_is_named_needed() -> None:
    objective = Counting(memory_limit=4.0)
    best = make(BEST, evaluation=measure(BEST, 4.0))
    changes = undo_each(best, BASELINE, space=SPACE, objective=objective, metrics=[TIME])
    assert changes[0].broken == ("memory",)
    assert changes[0].needed
    assert not changes[1].needed


def test_a_failure_without_the_change_is_a_reason_and_ranks_before_no_effect() -> None:
    class Failing(Counting):
        def evaluate(self, config: Config, *, seed: int, report: Any = None) -> Evaluation:
            if config["idle"] == "a":
                return Evaluation.failure(FailureKind.OOM, "no memory left")
            if not config["fast"]:
                raise RuntimeError("a backend with a fault")
            return measure(config)

    changes = undo_each(make(BEST), BASELINE, space=SPACE, objective=Failing(), metrics=[TIME])
    reasons = {change.knobs[0].name: change.reason for change in changes}
    assert reasons == {
        "tp": "",
        "idle": "no memory left",
        "fast": "RuntimeError: a backend with a fault",
    }
    assert changes[0].knobs[0].name == "tp"


def test_what_is_known_is_not_measured_again() -> None:
    objective = Counting()
    known = [make({**BEST, "fast": False}, number=7)]
    undo_each(make(BEST), BASELINE, space=SPACE, objective=objective, metrics=[TIME], known=known)
    assert {**BEST, "fast": False} not in objective.asked
    assert len(objective.asked) == 2


def test_a_noisy_objective_is_measured_again() -> None:
    objective = Counting(deterministic=False)
    known = [make({**BEST, "fast": False}, number=7)]
    undo_each(make(BEST), BASELINE, space=SPACE, objective=objective, metrics=[TIME], known=known)
    assert len(objective.asked) == 3


def test_a_costly_objective_is_not_started_without_leave() -> None:
    objective = Counting(cost_s=100.0)
    with pytest.raises(Unsupported, match=r"3 changes .* at most 60 s.*about 300 s.*max_cost_s"):
        undo_each(make(BEST), BASELINE, space=SPACE, objective=objective, metrics=[TIME])
    assert objective.asked == []
    undo_each(
        make(BEST), BASELINE, space=SPACE, objective=objective, metrics=[TIME], max_cost_s=300.0
    )


def test_gain_follows_the_direction() -> None:
    rate = Metric(name="time_s", direction="maximize")
    changes = undo_each(make(BEST), BASELINE, space=SPACE, objective=Counting(), metrics=[rate])
    assert changes[-1].gain(rate) == -6.0


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
