"""What only a process of its own shows: signals, start-up, pipes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

SLOW = """
import time
from dataclasses import replace

from autotune import objective
from toys import study, toy

slow_toy = lambda config: (time.sleep(0.05), toy(None).evaluate(config, seed=0))[1]
made = toy(None)
slow = replace(
    study(),
    name="slow",
    sampler="random",
    objective=objective(metrics=made.metrics, constraints=made.constraints, name="slow")(slow_toy),
    n_trials=40,
)
"""
MAIN = (sys.executable, "-c", "from autotune.cli import main; main()")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"]
)
def test_after_a_signal_the_same_command_resumes(
    number: signal.Signals, code: int, folder: Path
) -> None:
    (folder / "slow.py").write_text(SLOW)
    command = (*MAIN, "run", "slow.py:slow", "--json", "--no-report")
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert "trial 4/40" in process.stderr.readline()
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert "the same command resumes" in err
    assert "Traceback" not in err
    line = json.loads(out)
    assert line["outcome"] == "interrupted"
    if number is signal.SIGINT:
        return
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    resumed = json.loads(done.stdout)
    assert resumed["new_trials"] == 40 - line["trials"]
    assert f"going on from trial {line['trials']} of 40" in done.stderr


def test_a_finished_budget_needs_no_heavy_import(finished: Run, folder: Path) -> None:
    """What makes the answer slow is importing: none of these has anything to do with it."""
    script = (
        "import sys\n"
        "from autotune.cli.app import app\n"
        "try:\n"
        "    app(['run', 'toys.py:study'])\n"
        "except SystemExit as ended:\n"
        "    assert not ended.code\n"
        "heavy = {'sklearn', 'pandas', 'plotly', 'scipy.stats', 'joblib', 'torch'}\n"
        "sys.exit(f'imported: {heavy & set(sys.modules)}' if heavy & set(sys.modules) else 0)\n"
    )
    (folder / "toy-study.html").touch()
    done = subprocess.run(
        (sys.executable, "-c", script), cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "nothing to do" in done.stdout


@pytest.mark.parametrize("asked", ["status", "status --json"])
def test_a_closed_pipe_is_no_error(asked: str, finished: Run, folder: Path) -> None:
    command = " ".join([sys.executable, "-c", "'from autotune.cli import main; main()'"])
    done = subprocess.run(
        ["sh", "-c", f"{command} {asked} | true"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


@pytest.mark.parametrize("name", ["toys", "studies"], ids=["free name", "taken name"])
def test_several_jobs_from_a_file(name: str, folder: Path) -> None:
    (folder / "toys.py").rename(folder / f"{name}.py")
    command = (*MAIN, "run", f"{name}.py:study", "--n-jobs", "2", "--json", "--no-report")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    line = json.loads(done.stdout)
    assert line["trials"] == 12
    assert line["failed_by_kind"].keys() <= {"oom"}


PRINTING = """
import atexit, os
from dataclasses import replace

from autotune import objective
from toys import study, toy

print("printed on import")
os.write(1, b"written on import\\n")
atexit.register(print, "printed at exit")
made = toy(None)

@objective(metrics=made.metrics, constraints=made.constraints, name="talkative")
def talkative(config):
    print("printed by the objective")
    os.write(1, b"written by the objective\\n")
    os.system("echo printed by a program")
    return made.evaluate(config, seed=0)

loud = replace(study(), name="loud", objective=talkative, n_trials=3)
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "loud.py:loud", "--no-report"),
        ("run", "loud.py:loud", "--no-report", "--n-jobs", "2"),
        ("evaluate", "loud.py:loud", "--baseline", "spare"),
    ],
    ids=["run", "two jobs", "evaluate"],
)
def test_only_the_document_is_on_standard_output(arguments: tuple[str, ...], folder: Path) -> None:
    (folder / "loud.py").write_text(PRINTING)
    done = subprocess.run(
        (*MAIN, *arguments, "--json"), cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1, done.stdout
    assert json.loads(done.stdout)["study"] == "loud"
    said = ("on import", "by the objective", "by a program", "at exit")
    assert all(each in done.stderr for each in said)


@pytest.mark.parametrize("module", ["numpy", "typer"], ids=["package", "command line"])
def test_an_interrupt_while_loading_is_one_line(module: str, folder: Path) -> None:
    """The signal arrives inside an import that swallows exceptions, as some do."""
    (folder / f"{module}.py").write_text(
        "import os, signal\ntry:\n    os.kill(os.getpid(), signal.SIGINT)\n    input()\n"
        "except BaseException: pass\n"
    )
    (folder / "autotune").write_text("from autotune.cli import main\nmain()\n")
    environment = {"PYTHONPATH": str(folder), "PATH": ""}
    done = subprocess.run(
        (sys.executable, "autotune", "list"),
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 130
    assert done.stderr == "autotune: interrupted before anything began\n"
