"""Tables, fronts and stored studies; and what Optuna's own tools make of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import FloatDistribution, IntDistribution

from autotune import (
    Evaluation,
    FailureKind,
    SearchSpace,
    UnknownName,
    objective,
    open_study,
    read_study,
)
from autotune.storage import open_storage
from autotune.storage.rows import NewTrial
from autotune.storage.writer import insert_trial, insert_trials
from autotune.study import list_studies

TODAY = {"a": 3, "b": "p", "x": 0.5}


def test_the_table_has_everything_under_its_own_name(make_spec: Any) -> None:
    study = open_study(make_spec(), "memory")
    study.optimize(4)
    frame = study.frame()
    assert len(frame) == 4
    assert {"slot", "state", "origin", "a", "b", "x", "loss", "traffic", "over"} <= set(frame)
    assert list(frame["a"]) == [trial.config["a"] for trial in study.trials]


def test_a_name_that_two_kinds_share_says_which(make_spec: Any) -> None:
    @objective(metrics=["a"], name="same")
    def same(config: Any) -> dict[str, float]:
        return {"a": -float(config["a"])}

    space = SearchSpace({"a": IntDistribution(0, 9), "state": FloatDistribution(0, 1)})
    study = open_study(make_spec(space=space, objective=same, metrics=["a"]), "memory")
    study.optimize(2)
    frame = study.frame()
    assert {"parameter.a", "metric.a", "state", "parameter.state"} <= set(frame)
    assert list(frame["parameter.a"]) == [-value for value in frame["metric.a"]]


def test_an_empty_study_has_an_empty_everything(make_spec: Any) -> None:
    study = open_study(make_spec(baselines={"today": TODAY}), "memory")
    assert study.trials == study.front() == []
    assert study.best() is None
    assert study.baseline() is None
    assert len(study.frame()) == 0


def test_unknown_names_list_the_known_ones(make_spec: Any) -> None:
    study = open_study(make_spec(baselines={"today": TODAY}), "memory")
    with pytest.raises(UnknownName, match="loss, traffic"):
        study.best("mfu")
    with pytest.raises(UnknownName, match="today"):
        study.baseline("yesterday")


def test_a_stored_study_tells_the_same_without_its_spec(make_spec: Any, tmp_path: Path) -> None:
    study = open_study(make_spec(baselines={"today": TODAY}), tmp_path / "s.db")
    study.optimize(12)
    for name in ("small", "small@bowl"):
        stored = read_study(tmp_path / "s.db", name)
        assert list(stored.trials) == study.trials
        assert stored.front() == study.front()
        assert stored.best("traffic") == study.best("traffic")
        assert stored.baseline() == study.baseline()
        assert stored.frame().equals(study.frame())


def test_a_name_with_several_objectives_must_say_which(make_spec: Any, tmp_path: Path) -> None:
    @objective(metrics=["loss", "traffic"], constraints=["over"], name="testbed")
    def testbed(config: Any) -> dict[str, float]:
        raise NotImplementedError

    for spec in (make_spec(), make_spec(objective=testbed)):
        open_study(spec, tmp_path / "s.db")
    with pytest.raises(UnknownName, match="small@bowl, small@testbed"):
        read_study(tmp_path / "s.db", "small")


def test_reading_writes_nothing(make_spec: Any, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    open_study(make_spec(), path).optimize(3)
    path.chmod(0o444)
    before = path.read_bytes()
    assert len(read_study(path, "small").trials) == 3
    assert len(list_studies(path)) == 1
    assert path.read_bytes() == before


def test_optunas_tools_read_it(make_spec: Any, tmp_path: Path) -> None:
    study = open_study(make_spec(), tmp_path / "s.db")
    study.optimize(25)
    seen = optuna.load_study(
        study_name=study.name, storage=optuna.storages.RDBStorage(f"sqlite:///{tmp_path}/s.db")
    )
    assert seen.metric_names == ["loss", "traffic"]
    infeasible = [trial.number for trial in study.trials if not trial.feasible]
    assert infeasible, "the test needs some"
    for ours, theirs in zip(study.trials, seen.trials, strict=True):
        assert theirs.params == study.spec.space.to_optuna(ours.config)
        assert ours.evaluation is not None
        assert theirs.values == [ours.evaluation.metrics[n] for n in ("loss", "traffic")]
        assert theirs.system_attrs["constraints"] == [ours.evaluation.constraints["over"]]
        assert theirs.constraints == {"0": ours.evaluation.constraints["over"]}
    best = {trial.number for trial in seen.best_trials}
    assert best == {trial.number for trial in study.front()}
    assert not best & set(infeasible)


def test_what_lacks_a_constraint_is_never_best(make_spec: Any, tmp_path: Path) -> None:
    """A row without its memory figure, wherever it came from."""
    study = open_study(make_spec(), tmp_path / "s.db")
    study.optimize(3)
    template = next(iter(study._ledger.history.rows.values())).packed
    result = template["evaluation"] | {
        "metrics": {"loss": -99.0, "traffic": -99.0},
        "constraints": {},
    }
    row = NewTrial(
        state="COMPLETE",
        params={},
        distributions={},
        packed={**template, "slot": None, "origin": "imported", "evaluation": result},
        values=(-99.0, -99.0),
    )
    with open_storage(tmp_path / "s.db").write() as connection:
        insert_trial(connection, study.record.study_id, row)
    again = open_study(make_spec(), tmp_path / "s.db")
    assert len(again.trials) == 4
    best = again.best()
    assert best is None or best.slot is not None
    assert all(trial.slot is not None for trial in again.front())


def test_failures_are_nowhere_best(make_spec: Any, line: Any) -> None:
    def measured(a: int) -> Any:
        return {"loss": a} if a > 15 else Evaluation.failure(FailureKind.OOM, "small")

    study = open_study(make_spec(objective=line(measured), metrics=["loss"]), "memory")
    study.optimize(20)
    best = study.best()
    assert best is not None
    assert best.config["a"] > 15
    assert study.optuna_study.best_trial.number == best.number


def test_ten_thousand_trials_are_read_and_asked_about(make_spec: Any, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    study = open_study(make_spec(), path)
    study.optimize(12)
    template = study._ledger.history.settled[11].packed
    configs = study.spec.space.sample(10_000, seed=5)
    rows = [
        NewTrial(
            state="COMPLETE",
            params={},
            distributions={},
            packed={**template, "slot": slot, "config": config},
        )
        for slot, config in enumerate(configs, start=12)
    ]
    with study.storage.write(study.record.study_id) as connection:
        insert_trials(connection, study.record.study_id, rows)
    stored = read_study(path, "small")
    assert len(stored.trials) == 10_012
    assert len(stored.frame()) == 10_012
    assert open_study(make_spec(), path).optimize(10_013).new_trials == 1
