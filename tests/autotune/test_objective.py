"""A plain Python function is an objective; whatever it returns or raises becomes a result."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest

from autotune import (
    BatchObjective,
    Config,
    DesignPoint,
    Evaluation,
    FailureKind,
    InvalidInput,
    Metric,
    Objective,
    Report,
    Status,
    Unsupported,
    objective,
)
from autotune.objective import columns_of

HERE = DesignPoint(name="here", content={"slope": 3})


def returning(value: Any, **declared: Any) -> Objective:
    declared = {"metrics": ["time_s"], "constraints": ["memory"], **declared}

    @objective(**declared)
    def function(config: Config) -> Any:
        return value

    return function(HERE)


def test_declares_what_the_decorator_says() -> None:
    throughput = Metric(name="rate", direction="maximize")

    @objective(metrics=["time_s", throughput], constraints=["memory"], version="2", cost_s=5)
    def step(config: Config) -> dict[str, float]:
        return {}

    made = step(HERE)
    assert isinstance(made, Objective)
    assert not isinstance(made, BatchObjective)
    assert (made.name, made.version, made.deterministic, made.cost_s) == ("step", "2", True, 5)
    assert made.metrics == (Metric(name="time_s"), throughput)
    assert made.constraints == ("memory",)


def test_sorts_the_result_into_metrics_and_constraints() -> None:
    made = returning({"memory": np.float32(-1), "time_s": 2, "note": "ignored"})
    evaluation = made.evaluate({}, seed=0)
    assert evaluation.metrics == {"time_s": 2.0}
    assert evaluation.constraints == {"memory": -1.0}
    assert type(evaluation.constraints["memory"]) is float
    assert evaluation.cost_s >= 0


def test_gets_what_it_names() -> None:
    @objective(metrics=["value"], deterministic=False)
    def noisy(config: Config, seed: int, design_point: DesignPoint) -> dict[str, float]:
        return {"value": seed * design_point.content["slope"] + config["x"]}

    assert noisy(HERE).evaluate({"x": 1}, seed=2).metrics == {"value": 7.0}


def test_may_report_and_stop() -> None:
    @objective(metrics=["value"])
    def long(config: Config, report: Report) -> Evaluation:
        for step in range(10):
            if report(step, {"value": 1.0}):
                return Evaluation(status=Status.STOPPED, reason=f"at step {step}")
        return Evaluation(metrics={"value": 0.0})

    stopped = long(HERE).evaluate({}, seed=0, report=lambda step, metrics: step == 3)
    assert (stopped.status, stopped.reason) == (Status.STOPPED, "at step 3")


def test_cannot_change_the_callers_config() -> None:
    @objective(metrics=["value"])
    def greedy(config: dict[str, Any]) -> dict[str, float]:
        config["layout"].pop()
        return {"value": config.pop("x")}

    config = {"x": 1, "layout": [8, 1]}
    assert greedy(HERE).evaluate(config, seed=0).ok
    assert config == {"x": 1, "layout": [8, 1]}


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ((math.nan, 1), "mapping"),
        ((math.inf, 1), "mapping"),
        (("a", 1), "mapping"),
        (None, "mapping"),
        (3.0, "mapping"),
        ({"time_s": math.nan, "memory": 0}, "time_s must be finite"),
        ({"time_s": 1, "memory": math.inf}, "memory must be finite"),
        ({"time_s": 10**400, "memory": 0}, "time_s must be finite"),
        ({"time_s": 1, "memory": -(10**5000)}, "memory must be finite"),
        ({"time_s": "a", "memory": 0}, "time_s"),
        ({"time_s": "1", "memory": 0}, "time_s"),
        ({"time_s": None, "memory": 0}, "time_s"),
        ({"time_s": [1, 2], "memory": 0}, "time_s"),
        ({"time_s": 1}, "memory"),
        ({}, "time_s"),
        (Evaluation(metrics={"time_s": 1.0}), "memory"),
        (Evaluation(metrics={"x": 1.0}, constraints={"memory": 0.0}), "time_s"),
    ],
)
def test_a_result_that_is_none_of_the_declared_is_invalid(result: Any, said: str) -> None:
    evaluation = returning(result).evaluate({}, seed=0)
    assert evaluation.failure_kind is FailureKind.INVALID
    assert said in evaluation.reason


def test_an_exception_is_a_crash_with_its_text() -> None:
    @objective(metrics=["value"])
    def broken(config: Config) -> dict[str, float]:
        return {"value": 1 / config["x"]}

    evaluation = broken(HERE).evaluate({"x": 0}, seed=0)
    assert evaluation.failure_kind is FailureKind.CRASH
    assert "ZeroDivisionError" in evaluation.reason


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (MemoryError("80 GB is not enough"), FailureKind.OOM),
        (TimeoutError("60 s are over"), FailureKind.TIMEOUT),
        (Unsupported("no such schedule"), FailureKind.INVALID),
        (OSError("disk full"), FailureKind.CRASH),
    ],
)
def test_exceptions_are_told_apart(error: Exception, kind: FailureKind) -> None:
    @objective(metrics=["value"])
    def failing(config: Config) -> dict[str, float]:
        raise error

    evaluation = failing(HERE).evaluate({}, seed=0)
    assert evaluation.failure_kind is kind
    assert str(error) in evaluation.reason
    assert "in failing" in evaluation.attributes["traceback"]


def test_an_exit_is_a_crash() -> None:
    @objective(metrics=["value"])
    def leaving(config: Config) -> dict[str, float]:
        sys.exit("no licence")

    evaluation = leaving(HERE).evaluate({}, seed=0)
    assert evaluation.failure_kind is FailureKind.CRASH
    assert evaluation.reason == "SystemExit: no licence"


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"metrics": ["a"], "constraints": ["a"]}, "name of a metric, got 'a'"),
        ({"metrics": ["a", "a"]}, "metrics: must differ, got 'a'"),
        ({"metrics": ["a", Metric(name="a", unit="s")]}, "metrics: must differ, got 'a'"),
        ({"metrics": ["a"], "constraints": ["b", "b"]}, "constraints: must differ, got 'b'"),
        ({"metrics": []}, "at least one"),
    ],
)
def test_a_name_has_one_meaning(declared: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        objective(**declared)


def test_one_name_needs_no_list() -> None:
    made = returning({"time_s": 1, "memory": 0}, metrics="time_s", constraints="memory")
    assert made.evaluate({}, seed=0).feasible


def test_an_interrupt_is_not_swallowed() -> None:
    @objective(metrics=["value"])
    def stopped(config: Config) -> dict[str, float]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped(HERE).evaluate({}, seed=0)


def test_a_failed_evaluation_is_passed_on() -> None:
    failed = Evaluation.failure(FailureKind.TIMEOUT, "60 s")
    assert returning(failed).evaluate({}, seed=0) is failed


def test_columns_of_configs() -> None:
    columns = columns_of([{"x": 1, "kind": "a"}, {"x": 2, "kind": "bcd"}])
    assert columns["x"].tolist() == [1, 2]
    assert columns["kind"].tolist() == ["a", "bcd"]
    assert columns_of([]) == {}
