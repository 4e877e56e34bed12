"""A time limit for each trial: what hangs is killed, and nothing else is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from optuna.distributions import IntDistribution

from autotune import FailureKind, SearchSpace, TrialState, open_study
from autotune.study import Ending

LIMIT_S = 0.3


def limited_spec(make_spec: Any, line: Any, function: Any) -> Any:
    space = SearchSpace({"a": IntDistribution(0, 15)})
    return make_spec(space=space, objective=line(function), metrics=["loss"])


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_hangs_is_killed_with_its_programs_and_the_study_goes_on(
    make_spec: Any, line: Any, tmp_path: Path, wait_for: Any, n_jobs: int
) -> None:
    pids = tmp_path / "pids"

    def measured(a: int) -> Any:
        if a == 1:
            program = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
            pids.write_text(f"{os.getpid()} {program.pid}")
            while True:
                try:
                    time.sleep(60)
                except BaseException:  # nothing less than SIGKILL ends it
                    continue
        return {"loss": a}

    study = open_study(limited_spec(make_spec, line, measured), "memory")
    for a in (0, 1, 2, 3):
        study.enqueue({"a": a})
    outcome = study.optimize(4, n_jobs=n_jobs, trial_timeout_s=LIMIT_S)
    assert (outcome.reason, outcome.new_trials, outcome.new_failures) == (Ending.DONE, 4, 1)
    hung = study.trials[1]
    assert hung.evaluation is not None
    assert hung.evaluation.failure_kind is FailureKind.TIMEOUT
    assert "longer than 0.3 s" in hung.evaluation.reason
    assert hung.evaluation.cost_s == LIMIT_S
    for pid in pids.read_text().split():
        wait_for(lambda pid=pid: not is_running(int(pid)))


def test_a_process_that_dies_is_to_blame_at_once(make_spec: Any, line: Any) -> None:
    def measured(a: int) -> Any:
        if a == 1:
            os._exit(3)
        return {"loss": a, "pid": os.getpid()}

    study = open_study(limited_spec(make_spec, line, measured), "memory")
    for a in (0, 1, 2):
        study.enqueue({"a": a})
    assert study.optimize(3, trial_timeout_s=30).new_failures == 1
    assert study.trials[1].evaluation is not None
    assert study.trials[1].evaluation.failure_kind is FailureKind.CRASH
    assert study.trials[2].state is TrialState.COMPLETE


def test_an_interruption_kills_what_is_being_measured(
    make_spec: Any, line: Any, tmp_path: Path, wait_for: Any
) -> None:
    pids = tmp_path / "pids"

    def measured(a: int) -> Any:
        pids.write_text(str(os.getpid()))
        time.sleep(60)
        return {"loss": a}

    def interrupt() -> None:
        wait_for(lambda: pids.exists() and pids.read_text() != "")
        os.kill(os.getpid(), signal.SIGINT)

    study = open_study(limited_spec(make_spec, line, measured), "memory")
    thread = threading.Thread(target=interrupt)
    thread.start()
    outcome = study.optimize(2, trial_timeout_s=60)
    thread.join()
    assert (outcome.reason, outcome.new_trials) == (Ending.INTERRUPTED, 0)
    assert study.trials == []
    wait_for(lambda: not is_running(int(pids.read_text())))


def test_a_killed_study_leaves_no_process(tmp_path: Path, wait_for: Any) -> None:
    pids = tmp_path / "pids"
    program = f"""
import os, time
from pathlib import Path
from optuna.distributions import IntDistribution
from autotune import SearchSpace, StudySpec, objective, open_study

@objective(metrics=["loss"], name="endless")
def endless(config):
    Path({str(pids)!r}).write_text(str(os.getpid()))
    time.sleep(60)

space = SearchSpace({{"a": IntDistribution(0, 15)}})
spec = StudySpec(name="s", space=space, objective=endless, metrics=["loss"])
open_study(spec, "memory").optimize(1, trial_timeout_s=60)
"""
    study = subprocess.Popen([sys.executable, "-c", program])
    wait_for(lambda: pids.exists() and pids.read_text() != "")
    study.kill()
    study.wait()
    wait_for(lambda: not is_running(int(pids.read_text())))


def test_no_process_is_left_and_one_is_enough(
    make_spec: Any, line: Any, tmp_path: Path, wait_for: Any
) -> None:
    pids = tmp_path / "pids"

    def measured(a: int) -> Any:
        with pids.open("a") as file:
            file.write(f"{os.getpid()}\n")
        return {"loss": a}

    study = open_study(limited_spec(make_spec, line, measured), "memory")
    study.optimize(4, trial_timeout_s=30)
    (used,) = set(pids.read_text().split())
    wait_for(lambda: not is_running(int(used)))
