from __future__ import annotations

import logging
import math
import os
import signal
import threading
import time
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optuna.distributions import FloatDistribution, IntDistribution

from autotune import (
    Evaluation,
    FailureKind,
    InvalidInput,
    Metric,
    Origin,
    SearchSpace,
    Status,
    TrialState,
    objective,
    open_study,
)
from autotune.study import Ending

TODAY = {"a": 3, "b": "p", "x": 0.5}
TOMORROW = {"a": 4, "b": "q", "x": 0.25}


def test_baselines_first_then_the_queue_then_draws_then_the_sampler(make_spec: Any) -> None:
    study = open_study(make_spec(baselines={"today": TODAY, "tomorrow": TOMORROW}), "memory")
    study.enqueue({"a": 9, "b": "p", "x": 0.0}, label="mine")
    study.optimize(10)
    origins = [trial.origin for trial in study.trials]
    assert (
        origins
        == [Origin.BASELINE] * 2 + [Origin.ENQUEUED] + [Origin.STARTUP] * 5 + [Origin.SAMPLER] * 2
    )
    labels = [trial.label for trial in study.trials[:3]]
    assert labels == ["today", "tomorrow", "mine"]
    assert study.baseline() == study.trials[0]
    assert study.baseline("tomorrow") == study.trials[1]


def test_baselines_of_one_config_are_measured_once(make_spec: Any) -> None:
    study = open_study(make_spec(baselines={"today": TODAY, "again": TODAY}), "memory")
    study.optimize(2)
    assert [trial.origin for trial in study.trials] == [Origin.BASELINE, Origin.STARTUP]
    assert study.baseline("again") == study.trials[0]


def test_the_budget_is_a_total(make_spec: Any) -> None:
    study = open_study(make_spec(), "memory")
    first, same, more = study.optimize(4), study.optimize(4), study.optimize(6)
    assert [o.new_trials for o in (first, same, more)] == [4, 0, 2]
    assert [o.reason for o in (first, same, more)] == [Ending.DONE] * 3
    assert study.optimize(2).new_trials == 0
    assert study.optimize().n_trials == 30
    assert [trial.slot for trial in study.trials] == list(range(30))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"n_trials": -1}, "n_trials"),
        ({"n_trials": 2.0}, "n_trials"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"n_jobs": 1.5}, "n_jobs"),
        ({"n_jobs": True}, "n_jobs"),
        ({"n_jobs": "2"}, "n_jobs"),
        ({"timeout_s": math.nan}, "timeout_s"),
        ({"timeout_s": math.inf}, "timeout_s"),
        ({"timeout_s": -1}, "timeout_s"),
        ({"timeout_s": "1"}, "timeout_s"),
        ({"trial_timeout_s": 0}, "trial_timeout_s"),
        ({"trial_timeout_s": math.nan}, "trial_timeout_s"),
    ],
)
def test_arguments_out_of_range_are_refused(
    make_spec: Any, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        open_study(make_spec(), "memory").optimize(**arguments)


def test_a_noisy_backend_may_be_asked_twice(make_spec: Any, line: Any) -> None:
    space = SearchSpace({"a": IntDistribution(0, 1)})
    noisy = line(lambda a: {"loss": a}, deterministic=False)
    study = open_study(make_spec(space=space, objective=noisy, metrics=["loss"]), "memory")
    assert study.optimize(12).new_trials == 12
    assert len(study.front()) == 1


def test_the_last_config_of_a_space_is_measured_and_not_more(make_spec: Any, line: Any) -> None:
    space = SearchSpace({"a": IntDistribution(0, 6)})
    spec = make_spec(
        space=space,
        objective=line(lambda a: {"loss": a}),
        metrics=["loss"],
        baselines={"b": {"a": 6}},
    )
    outcome = open_study(spec, "memory").optimize(20)
    assert (outcome.reason, outcome.new_trials, outcome.settled) == (Ending.EXHAUSTED, 7, 7)
    assert str(outcome) == "space exhausted: 7 new trials, 7 of 20 in all"


def raising(error: BaseException) -> Any:
    def function(a: int) -> Any:
        raise error

    return function


@pytest.mark.parametrize(
    ("function", "kind", "said"),
    [
        (raising(MemoryError("no room")), FailureKind.OOM, "no room"),
        (raising(TimeoutError("too slow")), FailureKind.TIMEOUT, "too slow"),
        (raising(ZeroDivisionError("by zero")), FailureKind.CRASH, "by zero"),
        (lambda a: {"loss": math.nan}, FailureKind.INVALID, "finite"),
        (lambda a: {"loss": math.inf}, FailureKind.INVALID, "finite"),
        (lambda a: {"loss": 10**400}, FailureKind.INVALID, "finite"),
        (lambda a: {"loss": "7"}, FailureKind.INVALID, "number"),
        (lambda a: (math.nan, 1), FailureKind.INVALID, "mapping"),
        (lambda a: None, FailureKind.INVALID, "None"),
        (lambda a: {}, FailureKind.INVALID, "loss"),
        (
            lambda a: Evaluation.failure(FailureKind.INFRASTRUCTURE, "host away"),
            FailureKind.INFRASTRUCTURE,
            "host away",
        ),
    ],
)
def test_every_failure_is_kept_with_kind_and_reason_and_counts(
    make_spec: Any, line: Any, function: Any, kind: FailureKind, said: str
) -> None:
    spec = make_spec(objective=line(function), metrics=["loss"])
    study = open_study(spec, "memory")
    outcome = study.optimize(3)
    assert (outcome.new_trials, outcome.new_failures) == (3, 3)
    for trial in study.trials:
        assert trial.state is TrialState.FAILED
        assert trial.evaluation is not None
        assert trial.evaluation.failure_kind is kind
        assert said in trial.evaluation.reason
    assert study.best() is None
    assert study.optuna_study.best_trials == []


class Bare:
    """A backend that breaks the contract in whatever way it is told to."""

    name = "bare"
    version = "1"
    metrics = (Metric(name="loss"),)
    constraints = ("over",)
    deterministic = True
    cost_s = 1.0

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def evaluate(self, config: Any, *, seed: int, report: Any = None) -> Any:
        config.clear()
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (None, FailureKind.INVALID, "None"),
        (Evaluation(metrics={"loss": 1.0}), FailureKind.INVALID, "over"),
        (Evaluation(constraints={"over": 1.0}), FailureKind.INVALID, "loss"),
        (ValueError("what"), FailureKind.CRASH, "what"),
    ],
)
def test_a_backend_that_breaks_the_contract_does_not_break_the_study(
    make_spec: Any, answer: Any, kind: FailureKind, said: str
) -> None:
    spec = make_spec(objective=lambda _: Bare(answer), metrics=["loss"])
    study = open_study(spec, "memory")
    study.optimize(1)
    trial = study.trials[0]
    assert trial.evaluation is not None
    assert (trial.state, trial.evaluation.failure_kind) == (TrialState.FAILED, kind)
    assert said in trial.evaluation.reason
    assert set(trial.config) == {"a", "b", "x"}


def test_the_traceback_is_kept_and_trimmed(make_spec: Any, line: Any) -> None:
    spec = make_spec(objective=line(raising(ValueError("long " * 10_000))), metrics=["loss"])
    study = open_study(spec, "memory")
    study.optimize(1)
    result = study.trials[0].evaluation
    assert result is not None
    assert len(result.reason) < 10_000
    assert len(result.attributes["traceback"]) < 10_000


@pytest.mark.parametrize("bare", [True, False])
@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_what_an_objective_raises_to_end_the_program_ends_its_trial_only(
    make_spec: Any, line: Any, error: BaseException, bare: bool
) -> None:
    factory = (lambda _: Bare(error)) if bare else line(raising(error))
    study = open_study(make_spec(objective=factory, metrics=["loss"]), "memory")
    outcome = study.optimize(2)
    assert (outcome.reason, outcome.new_failures) == (Ending.DONE, 2)
    result = study.trials[0].evaluation
    assert result is not None
    assert result.failure_kind is FailureKind.CRASH
    assert type(error).__name__ in result.reason


def test_an_interruption_that_an_objective_makes_an_error_of_is_one_all_the_same(
    make_spec: Any, line: Any
) -> None:
    def measured(a: int) -> Any:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        except KeyboardInterrupt:
            raise RuntimeError("a program that was started ended with status -2") from None

    study = open_study(make_spec(objective=line(measured), metrics=["loss"]), "memory")
    assert study.optimize(2).reason == Ending.INTERRUPTED
    assert study.trials == []


class Odd:
    """What fails whenever it is looked at."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


class Mute(Exception):
    """An error without a text."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class NotFinite(Evaluation):
    """A result that was made without its checks."""

    def __post_init__(self) -> None:
        pass


def unchecked(**fields: Any) -> Evaluation:
    return NotFinite(**fields)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Mute(), FailureKind.CRASH),
        (Odd(), FailureKind.INVALID),
        (unchecked(metrics={"loss": 10**400}, constraints={"over": 0}), FailureKind.INVALID),
        (unchecked(metrics={"loss": math.inf}, constraints={"over": 0}), FailureKind.INVALID),
        (unchecked(metrics={"loss": "low"}), FailureKind.INVALID),
        (unchecked(reason=None, status=Status.STOPPED), FailureKind.INVALID),
    ],
)
def test_a_result_that_cannot_be_read_fails_its_trial_only(
    make_spec: Any, answer: Any, kind: FailureKind
) -> None:
    study = open_study(make_spec(objective=lambda _: Bare(answer), metrics=["loss"]), "memory")
    assert study.optimize(2).new_failures == 2
    result = study.trials[0].evaluation
    assert result is not None
    assert result.failure_kind is kind


@pytest.mark.parametrize(
    "attribute", [Odd(), threading.Lock(), [10**5000], ["\ud800"], {"\ud800": "\x00"}, [math.nan]]
)
def test_no_attribute_loses_a_result(
    make_spec: Any, line: Any, tmp_path: Path, attribute: Any
) -> None:
    rich = Evaluation(metrics={"loss": 1.0, "\ud800": 1.0}, attributes={"\ud800": attribute})
    spec = make_spec(objective=line(lambda a: rich), metrics=["loss"])
    open_study(spec, tmp_path / "s.db").optimize(1)
    trial = open_study(spec, tmp_path / "s.db").trials[0]
    assert trial.state is TrialState.COMPLETE


def test_attributes_of_any_type_are_stored(make_spec: Any, line: Any, tmp_path: Path) -> None:
    class Kind(Enum):
        A = "a"

    rich = Evaluation(
        metrics={"loss": np.float64(1.0)},  # type: ignore[dict-item]
        attributes={
            "n": np.int64(3),
            "path": Path("/x"),
            "kind": Kind.A,
            "when": datetime(2026, 1, 2, tzinfo=UTC),
            "odd": object,
            "nan": math.nan,
            "surrogate": "\ud800",
        },
    )
    spec = make_spec(objective=line(lambda a: rich), metrics=["loss"])
    study = open_study(spec, tmp_path / "s.db")
    study.optimize(1)
    again = open_study(spec, tmp_path / "s.db").trials[0].evaluation
    assert again is not None
    assert again.attributes["n"] == 3
    assert again.attributes["path"] == "/x"
    assert again.attributes["kind"] == "a"
    assert again.attributes["when"].startswith("2026-01-02")
    assert "object" in again.attributes["odd"]
    assert again.attributes["nan"] == "nan"


def test_an_invalid_config_is_refused_or_repaired_with_the_reason(make_spec: Any) -> None:
    study = open_study(make_spec(), "memory")
    wrong = {"x": 99, "typo": 1}
    with pytest.raises(InvalidInput) as caught:
        study.enqueue(wrong)
    assert {problem.path for problem in caught.value.problems} == {"x", "typo", "a", "b"}
    with pytest.raises(InvalidInput, match=r"3\.7"):
        study.enqueue({"a": 3.7, "b": "p", "x": 0.0})

    used = study.enqueue(wrong, repair=True)
    assert used["x"] == 1.0
    study.optimize(1)
    trial = study.trials[0]
    assert trial.config == used
    assert trial.attributes["repaired"]["x"] == [99, 1.0]
    assert any("typo" in reason for reason in trial.attributes["refused_as"])


@pytest.mark.parametrize(
    "wrong", [math.nan, math.inf, 10**400, "\ud800", object(), [math.nan], {"k": {1, 2}}, None]
)
@pytest.mark.parametrize("name", ["a", "b", "x"])
def test_whatever_is_to_be_repaired_is_repaired_and_noted(
    make_spec: Any, name: str, wrong: Any
) -> None:
    study = open_study(make_spec(), "memory")
    used = study.enqueue({**TODAY, name: wrong}, repair=True, label="\ud800")
    assert study.spec.space.contains(used)
    study.optimize(1)
    notes = study.trials[0].attributes
    assert notes["repaired"][name][1] == used[name]
    assert notes["refused_as"][0].startswith(f"{name}: must be")


def test_a_deterministic_backend_is_not_asked_again_by_the_queue(make_spec: Any) -> None:
    study = open_study(make_spec(baselines={"today": TODAY}), "memory")
    study.enqueue(TODAY)
    study.enqueue(TOMORROW)
    study.enqueue(TOMORROW)
    study.optimize(8)
    assert [trial.origin for trial in study.trials].count(Origin.ENQUEUED) == 1


def test_repairs_are_recorded(make_spec: Any) -> None:
    study = open_study(
        make_spec(
            space=SearchSpace({"a": IntDistribution(0, 7)}),
            objective=lambda _: Bare(Evaluation(metrics={"loss": 1.0}, constraints={"over": 0.0})),
            metrics=["loss"],
        ),
        "memory",
    )
    study.optimize(8)
    repaired = [t.attributes["repaired"] for t in study.trials if "repaired" in t.attributes]
    assert repaired
    assert all(set(change) == {"a"} for change in repaired)


def test_provenance_is_recorded(make_spec: Any) -> None:
    study = open_study(make_spec(), "memory")
    study.optimize(1)
    kept = study.trials[0].attributes["provenance"]
    assert set(kept) == {"versions", "git_commit", "host", "objective", "objective_version"}
    assert {"python", "optuna", "numpy"} < set(kept["versions"])


def test_every_trial_is_shown_as_it_is_settled(make_spec: Any) -> None:
    seen: list[Any] = []
    study = open_study(make_spec(), "memory")
    study.optimize(3, on_trial=seen.append)
    assert seen == study.trials


def test_an_error_of_the_observer_loses_nothing(make_spec: Any) -> None:
    study = open_study(make_spec(), "memory")
    with pytest.raises(ZeroDivisionError):
        study.optimize(3, on_trial=lambda _: 1 // 0)
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE]


def test_no_time_left(make_spec: Any) -> None:
    study = open_study(make_spec(), "memory")
    outcome = study.optimize(3, timeout_s=0.0)
    assert (outcome.reason, outcome.new_trials) == (Ending.TIMEOUT, 0)


def stepwise(stop_by_itself: bool) -> Any:
    @objective(metrics=["loss", "other"], name="stepwise")
    def measured(config: Any, report: Any) -> Any:
        for step in range(1000):
            if report(step, {"loss": float(step), "other": math.nan}) or stop_by_itself:
                return Evaluation(status=Status.STOPPED, reason="told to", cost_s=0.1)
            time.sleep(0.001)
        return {"loss": 0.0, "other": 0.0}

    return measured


def test_when_the_time_is_over_a_reporting_backend_is_stopped_and_its_slot_stays_open(
    make_spec: Any,
) -> None:
    spec = make_spec(objective=stepwise(stop_by_itself=False))
    study = open_study(make_spec(objective=spec.objective, metrics=["loss", "other"]), "memory")
    outcome = study.optimize(3, timeout_s=0.05)
    assert (outcome.reason, outcome.new_trials) == (Ending.TIMEOUT, 0)
    assert study.trials == []


def test_a_measurement_that_stops_itself_counts_and_is_kept(make_spec: Any) -> None:
    spec = make_spec(objective=stepwise(stop_by_itself=True), metrics=["loss", "other"])
    study = open_study(spec, "memory")
    assert study.optimize(2).new_trials == 2
    trial = study.trials[0]
    assert trial.evaluation is not None
    assert trial.evaluation.status is Status.STOPPED
    assert trial.attributes["reports"] == [[0, {"loss": 0.0, "other": None}]]


def test_reporting_nonsense_does_not_raise_inside_the_objective(
    make_spec: Any, caplog: pytest.LogCaptureFixture
) -> None:
    @objective(metrics=["loss"], name="odd")
    def measured(config: Any, report: Any) -> Any:
        report("x", None)
        report(0, {"loss": "high"})
        report(math.inf, {"loss": 1.0})
        report(math.nan, {"loss": 1.0})
        report(10**5000, {"loss": 1.0})
        report(1, {"loss": 10**400})
        report(2, {"\ud800": 1.0})
        return {"loss": 1.0}

    study = open_study(make_spec(objective=measured, metrics=["loss"]), "memory")
    with caplog.at_level(logging.WARNING):
        study.optimize(1)
    assert study.trials[0].state is TrialState.COMPLETE
    assert "no number" in caplog.text


def test_directions_and_other_metrics(make_spec: Any) -> None:
    @objective(
        metrics=[Metric(name="rate", direction="maximize"), Metric(name="other")], name="rates"
    )
    def measured(config: Any) -> dict[str, float]:
        return {"rate": float(config["a"]), "other": -float(config["a"])}

    study = open_study(make_spec(objective=measured, metrics=["rate"]), "memory")
    study.optimize(8)
    best = study.best()
    assert best is not None
    assert best.config["a"] == max(trial.config["a"] for trial in study.trials)
    assert best.evaluation is not None
    assert set(best.evaluation.metrics) == {"rate", "other"}
    assert study.best("other") == best
    assert study.optuna_study.best_value == best.evaluation.metrics["rate"]


def test_an_all_continuous_space_is_never_exhausted(make_spec: Any) -> None:
    @objective(metrics=["loss"], name="line")
    def measured(config: Any) -> dict[str, float]:
        return {"loss": config["x"]}

    space = SearchSpace({"x": FloatDistribution(0, 1)})
    study = open_study(make_spec(space=space, objective=measured, metrics=["loss"]), "memory")
    assert study.optimize(30).new_trials == 30
