from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import IntDistribution

from autotune import Config, SearchSpace, StorageRefused, StudySpec, objective, open_study

pytest.importorskip("optuna_dashboard", reason="needs the extra dashboard")

from autotune.dashboard import Application, make_application


@objective(metrics=["loss", "size"], constraints=["over"])
def two(config: Config) -> dict[str, float]:
    x = config["x"]
    return {"loss": 10.0 - x, "size": float(x), "over": x - 5.0}


@objective(metrics=["loss"], constraints=["over"])
def one(config: Config) -> dict[str, float]:
    return {"loss": 10.0 - config["x"], "over": config["x"] - 5.0}


def add_study(storage: str, name: str, backend: Any, metrics: tuple[str, ...]) -> None:
    spec = StudySpec(
        name=name,
        space=SearchSpace({"x": IntDistribution(0, 10)}),
        objective=backend,
        metrics=metrics,
        baselines={f"x = {x}": {"x": x} for x in range(3, 7)},
        n_trials=4,
    )
    open_study(spec, storage).optimize()


def get(application: Application, path: str, query: str = "") -> Any:
    answered: list[Any] = []
    environ = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "wsgi.url_scheme": "http",
    }
    body = b"".join(application(environ, lambda *answer: answered.extend(answer)))
    assert dict(answered[1])["Content-Length"] == str(len(body))
    return answered[0], json.loads(body)


def best_of(application: Application, study_id: int, query: str = "after=0") -> list[int]:
    status, document = get(application, f"/api/studies/{study_id}", query)
    assert status.startswith("200")
    return [trial["number"] for trial in document["best_trials"]]


@pytest.fixture
def storage(tmp_path: Path) -> str:
    path = str(tmp_path / "studies.db")
    add_study(path, "two", two, ("loss", "size"))
    add_study(path, "one", one, ("loss",))
    return path


def test_an_infeasible_trial_is_never_called_best(storage: str) -> None:
    application = make_application(storage)
    assert best_of(application, 1) == [0, 1, 2]
    assert best_of(application, 2) == [2]


def test_also_when_only_new_trials_are_asked_for(storage: str) -> None:
    assert best_of(make_application(storage), 1, "after=4") == [0, 1, 2]


def test_what_others_made_is_left_as_it_is(storage: str) -> None:
    foreign = optuna.create_study(storage=f"sqlite:///{storage}", study_name="foreign")
    foreign.add_trial(optuna.trial.create_trial(value=1.0))
    assert best_of(make_application(storage), 3) == [0]


def test_what_does_not_exist_is_said_as_before(storage: str) -> None:
    status, _ = get(make_application(storage), "/api/studies/99")
    assert status.startswith("404")


def test_no_storage_is_made_to_look_at(tmp_path: Path) -> None:
    with pytest.raises(StorageRefused):
        make_application(str(tmp_path / "none.db"))
    assert list(tmp_path.iterdir()) == []
