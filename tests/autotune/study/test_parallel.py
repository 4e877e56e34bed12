from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Any

import pytest
from optuna.distributions import IntDistribution

from autotune import Evaluation, FailureKind, SearchSpace, TrialState, open_study
from autotune.study import Ending


@pytest.fixture(scope="module", autouse=True)
def _end_workers() -> Any:
    yield
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)


class CannotBeSent(Exception):
    """An error that no other process can get."""


def parallel_spec(make_spec: Any, line: Any, function: Any, **changes: Any) -> Any:
    space = SearchSpace({"a": IntDistribution(0, 15)})
    return make_spec(space=space, objective=line(function), metrics=["loss"], **changes)


def test_several_at_once_spend_the_budget_once(make_spec: Any, line: Any) -> None:
    def measured(a: int) -> Any:
        if a == 3:
            raise MemoryError("no room")
        return {"loss": (a - 7) ** 2}

    study = open_study(parallel_spec(make_spec, line, measured), "memory")
    seen: list[Any] = []
    outcome = study.optimize(30, n_jobs=2, on_trial=seen.append)
    assert (outcome.reason, outcome.new_trials) == (Ending.EXHAUSTED, 16)
    assert sorted(trial.slot for trial in seen) == list(range(16))
    assert {trial.config["a"] for trial in study.trials} == set(range(16))
    failed = [trial for trial in study.trials if trial.state is TrialState.FAILED]
    assert [trial.config["a"] for trial in failed] == [3]
    assert study.optimize(16, n_jobs=2).new_trials == 0


def test_whatever_one_evaluation_does_ends_its_trial_only(make_spec: Any, line: Any) -> None:
    def measured(a: int) -> Any:
        if a == 1:
            sys.exit(3)
        if a == 2:
            raise KeyboardInterrupt
        if a == 3:
            raise CannotBeSent(threading.Lock())
        if a == 4:
            return threading.Lock()
        return Evaluation(metrics={"loss": a}, attributes={"lock": threading.Lock()})

    study = open_study(parallel_spec(make_spec, line, measured), "memory")
    for a in range(6):
        study.enqueue({"a": a})
    outcome = study.optimize(6, n_jobs=2)
    assert (outcome.reason, outcome.new_trials, outcome.new_failures) == (Ending.DONE, 6, 4)
    kinds = [t.evaluation and t.evaluation.failure_kind for t in study.trials]
    assert kinds == [None, *[FailureKind.CRASH] * 3, FailureKind.INVALID, None]
    kept = study.trials[5].evaluation
    assert kept is not None
    assert "lock" in kept.attributes["lock"]


def test_a_config_that_kills_its_process_fails_and_no_other(make_spec: Any, line: Any) -> None:
    def measured(a: int) -> Any:
        if a == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"loss": a}

    study = open_study(parallel_spec(make_spec, line, measured), "memory")
    study.enqueue({"a": 3})
    outcome = study.optimize(5, n_jobs=2)
    assert (outcome.new_trials, outcome.new_failures) == (5, 1)
    result = study.trials[0].evaluation
    assert result is not None
    assert result.failure_kind is FailureKind.CRASH
    assert "died twice" in result.reason


def test_an_interruption_gives_all_slots_back(make_spec: Any, line: Any) -> None:
    def measured(a: int) -> Any:
        time.sleep(30 if a in (1, 2) else 0)
        return {"loss": a}

    study = open_study(parallel_spec(make_spec, line, measured), "memory")
    for a in (0, 1, 2):
        study.enqueue({"a": a})
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    outcome = study.optimize(6, n_jobs=2, on_trial=lambda _: timer.start())
    timer.join()
    assert outcome.reason == "interrupted"
    assert [trial.config["a"] for trial in study.trials] == [0]


def test_what_cannot_be_sent_to_a_process_is_an_error(make_spec: Any, line: Any) -> None:
    lock = threading.Lock()

    def measured(a: int) -> Any:
        with lock:
            return {"loss": a}

    study = open_study(parallel_spec(make_spec, line, measured), "memory")
    with pytest.raises(Exception, match="pickle"):
        study.optimize(2, n_jobs=2)
    assert study.trials == []
