from __future__ import annotations

import json
import logging
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from autotune.cli.app import app

STUDIES = """
from dataclasses import replace

from optuna.distributions import CategoricalDistribution

from autotune import DesignPoint, Evaluation, FailureKind, Metric, Product, SearchSpace, StudySpec
from autotune import objective

SPACE = SearchSpace(
    {
        "tp": CategoricalDistribution([1, 2, 4, 8]),
        "dp": CategoricalDistribution([1, 2, 4, 8]),
        "chunks": CategoricalDistribution([1, 2, 4, 8, 16]),
        "overlap": CategoricalDistribution([False, True]),
    },
    constraints=[Product(name="world", factors=("tp", "dp"), equals=8)],
)


@objective(
    metrics=[
        Metric(name="time_s", unit="s", label="step time"),
        Metric(name="link_bytes_per_s", unit="byte/s", label="link bandwidth"),
    ],
    constraints=["memory_over_bytes"],
    name="toy",
    cost_s=1e-5,
)
def toy(config):
    if config["chunks"] == 16 and config["tp"] == 8:
        return Evaluation.failure(FailureKind.OOM, "16 chunks do not fit")
    compute, waiting = 1.0 + 0.1 * config["tp"], (0.5 if config["overlap"] else 2.0)
    return Evaluation(
        metrics={
            "time_s": compute + waiting / config["chunks"],
            "link_bytes_per_s": 1e9 * config["chunks"] * config["dp"],
        },
        constraints={"memory_over_bytes": 1e9 * (4 - config["dp"] * config["tp"] / config["chunks"])
                     - 3.5e9},
        breakdown={"compute_s": compute, "waiting_s": waiting / config["chunks"]},
    )


def study():
    return StudySpec(
        name="toy-study",
        description="A small study.",
        space=SPACE,
        objective=toy,
        metrics=("time_s", "link_bytes_per_s"),
        design_point=DesignPoint(name="toy-point", content={"gpus": 8}),
        baselines={
            "production": {"tp": 8, "dp": 1, "chunks": 1, "overlap": False},
            "spare": {"tp": 4, "dp": 2, "chunks": 2, "overlap": False},
        },
        n_trials=12,
        n_startup_trials=4,
    )


SWEEP = [replace(study(), name=f"sweep-{n}", n_trials=4) for n in (1, 2)]


@objective(metrics=["loss"], cost_s=1e-5)
def broken(config):
    raise RuntimeError("nothing works")


all_fail = StudySpec(name="all-fail", space=SPACE, objective=broken, metrics=["loss"], n_trials=3)
costly = replace(study(), name="costly", objective=objective(
    metrics=toy(DesignPoint(name="x")).metrics, constraints=["memory_over_bytes"], cost_s=1e4
)(lambda config: toy(DesignPoint(name="x")).evaluate(config, seed=0)))
number = 3
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on standard output."""
        assert self.out.count("\n") == 1, self.out
        return json.loads(self.out)


Run = Callable[..., Ended]


@pytest.fixture(autouse=True)
def _logger_as_before() -> Iterator[None]:
    """Commands send the package's log to standard error; other tests want it elsewhere."""
    logger = logging.getLogger("autotune")
    handlers, level = logger.handlers[:], logger.level
    yield
    logger.handlers[:] = handlers
    logger.setLevel(level)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory with the studies' file in it."""
    (tmp_path / "toys.py").write_text(STUDIES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "toys", raising=False)
    return tmp_path


@pytest.fixture
def autotune(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in this process, in ``folder``."""

    def run(*arguments: str) -> Ended:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            app(list(arguments), prog_name="autotune")
        captured = capsys.readouterr()
        code = ended.value.code
        return Ended(code=int(code or 0), out=captured.out, err=captured.err)

    return run


@pytest.fixture(scope="session")
def finished_storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A storage with all 12 trials of ``toys.py:study``."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "toys.py").write_text(STUDIES)
    arguments = ["run", f"{folder}/toys.py:study", "--storage", f"{folder}/autotune.db"]
    with pytest.raises(SystemExit) as ended:
        app([*arguments, "--no-report", "--json"], prog_name="autotune")
    assert not ended.value.code
    return folder / "autotune.db"


@pytest.fixture
def finished(autotune: Run, folder: Path, finished_storage: Path) -> Run:
    """As ``autotune``, in a folder whose storage holds ``toys.py:study``, all 12 trials."""
    with (
        closing(sqlite3.connect(finished_storage)) as source,
        closing(sqlite3.connect(folder / "autotune.db")) as copy,
    ):
        source.backup(copy)
    return autotune
