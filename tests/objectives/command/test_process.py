"""Programs that do not want to end: nothing of them may stay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from joblib import Parallel, delayed

from autotune import FailureKind, Objective
from objectives.command import guard

Make = Callable[..., Objective]

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="needs /proc to see whether processes are gone"
)


def _dead(pid: int) -> bool:
    """Gone, or a zombie that nobody has collected yet."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"


def _wait_until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def test_a_program_that_sleeps_for_ever(make: Make) -> None:
    code = "import time; print('started', flush=True); time.sleep(1000)"
    evaluation = make(code, timeout="1 s").evaluate({}, seed=0)
    assert evaluation.failure_kind is FailureKind.TIMEOUT
    assert evaluation.reason == "did not end within 1 s and was stopped; last output: started"
    assert evaluation.attributes["stdout_tail"] == "started\n"
    assert evaluation.cost_s >= 1


def test_a_program_may_tidy_up_after_sigterm(make: Make, tmp_path: Path) -> None:
    code = (
        "import os, signal, sys, time\n"
        "def end(*_): open(os.environ['DONE'], 'w').write('tidy'); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "print('{\"loss\": 1}', flush=True)\n"
        "time.sleep(1000)"
    )
    done = tmp_path / "done"
    evaluation = make(code, environment={"DONE": str(done)}, timeout="1 s", grace="10 s").evaluate(
        {}, seed=0
    )
    assert evaluation.failure_kind is FailureKind.TIMEOUT, "a result printed too early is none"
    assert done.read_text() == "tidy"


STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, '-I', '-S', '-c',
    'import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)'])
open(os.environ['PIDS'], 'w').write('%d %d' % (os.getpid(), child.pid))
time.sleep(1000)
"""


@needs_proc
def test_children_that_ignore_sigterm_die_too(make: Make, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    objective = make(STUBBORN, environment={"PIDS": str(pids)}, timeout="1 s", grace="0.1 s")
    assert objective.evaluate({}, seed=0).failure_kind is FailureKind.TIMEOUT
    parent, child = map(int, pids.read_text().split())
    assert _wait_until(lambda: _dead(parent) and _dead(child))


@needs_proc
def test_what_a_program_leaves_running_is_ended(make: Make) -> None:
    code = (
        "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', "
        "'import time; time.sleep(1000)']); print('{\"loss\": %d}' % p.pid)"
    )
    evaluation = make(code).evaluate({}, seed=0)  # the child keeps the output open
    assert evaluation.ok
    assert _wait_until(lambda: _dead(int(evaluation.metrics["loss"])))


@needs_proc
def test_an_interrupt_ends_the_program(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = tmp_path / "pid"
    code = "import os, time; open(os.environ['PID'], 'w').write(str(os.getpid())); time.sleep(1000)"

    def interrupted(*_: object) -> None:
        _wait_until(lambda: pid.exists() and pid.read_text() != "")
        raise KeyboardInterrupt

    monkeypatch.setattr("objectives.command.process._wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make(code, environment={"PID": str(pid)}).evaluate({}, seed=0)
    assert _wait_until(lambda: _dead(int(pid.read_text())))


def test_a_program_that_never_stops_printing(make: Make) -> None:
    objective = make("while True: print('x' * 1000)", output_limit="1 MB")
    evaluation = objective.evaluate({}, seed=0)
    assert evaluation.failure_kind is FailureKind.CRASH
    assert "printed more than 1e+06 bytes" in evaluation.reason


def test_a_program_that_reads_gets_nothing(make: Make) -> None:
    code = "import sys; print('{\"loss\": %d}' % len(sys.stdin.read()))"
    assert make(code).evaluate({}, seed=0).metrics == {"loss": 0}


KILLED = """
import sys
from optuna.distributions import IntDistribution
from autotune import SearchSpace, StudySpec, open_study
from objectives.command import command_objective

definition = {
    "argv": ["{python}", "-I", "-S", "-c", sys.argv[1]],
    "environment": {"PIDS": sys.argv[2]},
    "metric": {"loss": {}},
}
objective = command_objective(definition)
spec = StudySpec(name="s", space=SearchSpace({"x": IntDistribution(0, 9)}), objective=objective,
                 metrics=["loss"])
open_study(spec, "memory" if sys.argv[3] == "1" else sys.argv[2] + ".db").optimize(
    n_jobs=int(sys.argv[3])
)
"""


@needs_proc
@pytest.mark.parametrize("n_jobs", ["1", "2"])
def test_nothing_outlives_a_tuner_that_is_killed(n_jobs: str, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    arguments = (sys.executable, "-c", KILLED, STUBBORN, str(pids), n_jobs)
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL) as tuner:
        assert _wait_until(lambda: pids.exists() and " " in pids.read_text())
        time.sleep(1)  # it must not be for any other reason that they end
        parent, child = map(int, pids.read_text().split())
        assert not _dead(parent)
        tuner.kill()
    try:
        assert _wait_until(lambda: _dead(parent) and _dead(child))
    finally:
        if not _dead(parent):
            os.killpg(parent, signal.SIGKILL)


@needs_proc
def test_the_watcher_is_started_again_once_it_is_gone(make: Make) -> None:
    objective = make("print('{\"loss\": 1}')")
    assert objective.evaluate({}, seed=0).ok
    watcher = guard._watcher._process
    assert watcher is not None
    watcher.kill()
    watcher.wait()
    assert objective.evaluate({}, seed=0).ok
    assert guard._watcher._process is not watcher


def test_in_a_worker_process_a_program_takes_its_time(make: Make) -> None:
    objective = make("import time; time.sleep(0.5); print('{\"loss\": 1}')")
    first, _ = Parallel(n_jobs=2)(delayed(objective.evaluate)({}, seed=n) for n in range(2))
    assert first.metrics == {"loss": 1}, first.reason
