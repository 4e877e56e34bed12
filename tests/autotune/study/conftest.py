from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from autotune import Config, DesignPoint, SearchSpace, StudySpec, objective
from autotune.objective import ObjectiveFactory

WORKER = Path(__file__).with_name("worker.py")

MakeSpec = Callable[..., StudySpec]


@objective(metrics=["loss", "traffic"], constraints=["over"], name="bowl")
def bowl(config: Config) -> dict[str, float]:
    """Two metrics that disagree, and a third of the space infeasible."""
    return {
        "loss": (config["a"] - 7) ** 2 + config["x"] + (config["b"] == "q"),
        "traffic": float(config["a"]),
        "over": config["a"] - 20.0,
    }


def small_space() -> SearchSpace:
    return SearchSpace(
        {
            "a": IntDistribution(0, 30),
            "b": CategoricalDistribution(["p", "q"]),
            "x": FloatDistribution(0.0, 1.0),
        }
    )


@pytest.fixture
def make_spec() -> MakeSpec:
    """A spec of a small study, with changes."""

    def make(**changes: Any) -> StudySpec:
        fields: dict[str, Any] = {
            "name": "small",
            "space": small_space(),
            "objective": bowl,
            "metrics": ["loss", "traffic"],
            "design_point": DesignPoint(name="here", content={"size": 3}),
            "n_startup_trials": 5,
            "n_trials": 30,
        }
        return StudySpec(**(fields | changes))

    return make


@pytest.fixture
def line() -> Callable[..., ObjectiveFactory]:
    """Makes an objective of one metric over `a` out of a function of `a`."""

    def make(function: Callable[[int], Any], **changes: Any) -> ObjectiveFactory:
        @objective(**({"metrics": ["loss"], "name": "line"} | changes))
        def measured(config: Config) -> Any:
            return function(config["a"])

        return measured

    return make


@pytest.fixture
def start_worker(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts `worker.py` in a process of its own; what still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, str(WORKER), *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture
def wait_for() -> Callable[[Callable[[], bool]], None]:
    """Waits until something holds."""

    def wait(holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 30
        while not holds():
            assert time.monotonic() < deadline, "it never happened"
            time.sleep(0.02)

    return wait
