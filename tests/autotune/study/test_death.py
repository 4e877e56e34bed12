"""Workers that die, hang or come back late."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from autotune import FailureKind, Origin, Study, TrialState, open_study
from autotune.study import LeaseTimes
from autotune.study.lease import Watch
from autotune.study.ledger import Claim, NoClaim
from autotune.study.measuring import measure
from autotune.study.worker import Worker


def claim(study: Study, budget: int = 30) -> Claim:
    claimed = study._ledger.claim(budget)
    assert isinstance(claimed, Claim)
    return claimed


def finish(study: Study, claimed: Claim) -> Any:
    measurement = measure(study.objective, claimed.config, seed=claimed.seed)
    return study._ledger.settle(claimed, measurement)


def states(study: Study) -> Counter[str]:
    return Counter(trial.state for trial in study.trials)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes claims look as if they came from a worker of another machine."""
    here = Worker.here()

    def pretend(**changes: Any) -> None:
        fields = here.pack() | changes
        monkeypatch.setattr(Worker, "here", lambda: Worker.unpack(fields))

    return pretend


def test_a_worker_knows_itself_and_its_end() -> None:
    assert not Worker.here().is_gone()
    child = subprocess.Popen(["sleep", "60"])
    fields = Worker.here().pack()
    stat = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
    worker = Worker.unpack(fields | {"pid": child.pid, "started": int(stat[19])})
    assert not worker.is_gone()
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert worker.is_gone(), "a zombie does no work"
    child.wait()
    assert worker.is_gone()
    assert Worker.unpack(fields | {"started": 1}).is_gone(), "its number was given away again"
    assert not Worker.unpack(fields | {"host": "other", "pid": 0}).is_gone(), "nobody can tell"


def test_a_dead_workers_slot_is_tried_again_with_config_and_seed(
    make_spec: Any, tmp_path: Path, elsewhere: Any
) -> None:
    study = open_study(make_spec(), tmp_path / "s.db")
    study.optimize(7)
    elsewhere(started=1)
    lost = claim(study)

    other = open_study(make_spec(), tmp_path / "s.db")
    other.optimize(8)
    trial = other.trials[7]
    assert (trial.slot, trial.attempt, trial.state) == (7, 2, TrialState.COMPLETE)
    assert (trial.config, trial.seed) == (lost.config, lost.seed)
    assert other.optimize(8).new_trials == 0


def test_a_slot_whose_worker_died_twice_has_failed(
    make_spec: Any, tmp_path: Path, elsewhere: Any
) -> None:
    elsewhere(started=1)
    for _ in range(2):
        claim(open_study(make_spec(), tmp_path / "s.db"))
    study = open_study(make_spec(), tmp_path / "s.db")
    study._ledger.refresh()
    trial = study.trials[0]
    assert (trial.state, trial.attempt) == (TrialState.FAILED, 2)
    assert trial.evaluation is not None
    assert trial.evaluation.failure_kind is FailureKind.CRASH
    assert "died twice" in trial.evaluation.reason
    assert claim(study).row.packed["slot"] == 1


def test_a_lease_ends_when_the_counter_stands_still() -> None:
    now = [0.0]
    watch = Watch(lease_s=60, clock=lambda: now[0])
    assert not watch.expired(1, 0)
    now[0] = 59
    assert not watch.expired(1, 0)
    now[0] = 60
    assert watch.expired(1, 0)
    assert not watch.expired(1, 1), "it beat again"
    now[0] = 119
    assert not watch.expired(1, 1)


def test_a_silent_worker_loses_its_slot_and_its_late_result_is_a_repeat(
    make_spec: Any, tmp_path: Path, elsewhere: Any
) -> None:
    path, lease = tmp_path / "s.db", LeaseTimes(beat_s=60, lease_s=0.05)
    elsewhere(host="far away")
    slow = open_study(make_spec(), path, lease=lease)
    late = claim(slow)
    quick = open_study(make_spec(), path, lease=lease)
    assert quick.optimize(3).settled == 3
    assert finish(slow, late) is None

    trials = quick.trials
    assert [trial.slot for trial in trials] == [0, 1, 2, None]
    assert trials[0].attempt == 2
    assert trials[3].origin is Origin.REPEAT
    assert trials[3].config == trials[0].config
    assert trials[3].evaluation is not None
    assert quick.optimize(3).new_trials == 0
    assert slow.trials == trials
    assert len(slow.front()) == len(quick.front())


def test_a_beating_worker_keeps_its_slot(make_spec: Any, tmp_path: Path, elsewhere: Any) -> None:
    path = tmp_path / "s.db"
    elsewhere(host="far away")
    slow = open_study(make_spec(), path, lease=LeaseTimes(beat_s=0.02, lease_s=0.4))
    with_heart = claim(slow)
    from autotune.study.lease import Heart

    with Heart(slow.storage, 0.02) as heart:
        heart.add(with_heart.row.trial_id)
        quick = open_study(make_spec(), path, lease=LeaseTimes(beat_s=1, lease_s=0.4))
        outcome = quick.optimize(2, timeout_s=0.8)
    assert outcome.reason == "timeout"
    assert states(quick) == {"running": 1, "complete": 1}
    assert finish(slow, with_heart) is not None


def test_a_long_evaluation_beats_and_a_short_one_does_not(
    make_spec: Any, line: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    from autotune.study import lease

    beats: list[int] = []
    monkeypatch.setattr(lease, "beat", lambda _, trial_id, count: beats.append(count))

    def measured(a: int) -> dict[str, float]:
        time.sleep(0.3)
        return {"loss": a}

    spec = make_spec(objective=line(measured), metrics=["loss"])
    open_study(spec, "memory", lease=LeaseTimes(beat_s=10, lease_s=60)).optimize(1)
    assert beats == []
    open_study(spec, "memory", lease=LeaseTimes(beat_s=0.05, lease_s=60)).optimize(1)
    assert beats[:2] == [1, 2]


def test_two_claims_of_one_slot_or_one_config(make_spec: Any, tmp_path: Path) -> None:
    """What one worker proposed before it knew of the other is thrown away, never measured."""
    path = tmp_path / "s.db"
    one, two = open_study(make_spec(), path), open_study(make_spec(), path)
    two._ledger.refresh()
    stale = two._ledger.proposer.propose(0, two._ledger.history, [])
    assert stale is not None
    first = claim(one)
    assert two._ledger._insert(stale) is None
    from dataclasses import replace

    elsewhere_same_config = replace(stale, slot=5)
    two_again = open_study(make_spec(), path)
    assert two_again._ledger._insert(elsewhere_same_config) is None
    second = claim(two)
    assert (first.row.packed["slot"], second.row.packed["slot"]) == (0, 1)
    assert [trial.number for trial in one.trials] == [0, 1]


def test_others_are_waited_for(make_spec: Any, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    one, two = open_study(make_spec(), path), open_study(make_spec(), path)
    held = claim(one, 1)
    assert two._ledger.claim(1) is NoClaim.WAIT
    finish(one, held)
    assert two._ledger.claim(1) is NoClaim.DONE


def test_killed_in_the_middle_and_run_again(
    start_worker: Any, wait_for: Any, tmp_path: Path
) -> None:
    """kill -9 in the 18th evaluation: the whole is what it would have been without."""
    flag = tmp_path / "flag"
    victim = start_worker(tmp_path / "s.db", "tpe", 30, 18, flag)
    wait_for(lambda: flag.exists() and flag.read_text().endswith("}"))
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    again = start_worker(tmp_path / "s.db", "tpe", 30)
    whole = start_worker(tmp_path / "whole.db", "tpe", 30)
    said = [json.loads(worker.communicate()[0]) for worker in (again, whole)]
    assert said == [{"reason": "done", "new": 13}, {"reason": "done", "new": 30}]

    from autotune import read_study

    killed, unharmed = (read_study(tmp_path / n, "worker").trials for n in ("s.db", "whole.db"))
    assert [t.config for t in killed] == [t.config for t in unharmed]
    assert [t.seed for t in killed] == [t.seed for t in unharmed]
    assert killed[17].config == json.loads(flag.read_text())
    assert {t.slot: t.attempt for t in killed if t.attempt > 1} == {17: 2}


def test_four_workers_share_ten_slots(start_worker: Any, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    workers = [start_worker(path, "tpe", 10) for _ in range(4)]
    said = [json.loads(worker.communicate()[0]) for worker in workers]
    assert sum(each["new"] for each in said) == 10
    assert {each["reason"] for each in said} == {"done"}

    from autotune import read_study

    trials = read_study(path, "worker").trials
    assert [trial.slot for trial in trials] == list(range(10))
    assert len({json.dumps(trial.config) for trial in trials}) == 10
    assert json.loads(start_worker(path, "tpe", 10).communicate()[0])["new"] == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_a_worker_cleanly(
    start_worker: Any, wait_for: Any, tmp_path: Path, number: signal.Signals
) -> None:
    flag = tmp_path / "flag"
    worker = start_worker(tmp_path / "s.db", "random", 30, 4, flag)
    wait_for(lambda: flag.exists() and flag.read_text().endswith("}"))
    worker.send_signal(number)
    said, _ = worker.communicate()
    assert worker.returncode == 0
    assert json.loads(said) == {"reason": "interrupted", "new": 3}

    from autotune import read_study

    trials = read_study(tmp_path / "s.db", "worker").trials
    assert [trial.state for trial in trials] == [TrialState.COMPLETE] * 3
