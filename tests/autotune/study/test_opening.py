from __future__ import annotations

from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from autotune import (
    DesignPoint,
    Origin,
    SearchSpace,
    StudyMismatch,
    TrialState,
    objective,
    open_study,
    read_study,
)
from autotune.storage import open_storage
from autotune.study import list_studies


def wider_space() -> SearchSpace:
    """One choice and one parameter more, one range narrower."""
    return SearchSpace(
        {
            "a": IntDistribution(0, 25),
            "b": CategoricalDistribution(["p", "q", "r"]),
            "x": FloatDistribution(0.0, 1.0),
            "new": CategoricalDistribution([False, True]),
        },
        defaults={"new": False},
    )


def test_a_changed_space_is_an_error_that_names_both_and_the_difference(
    make_spec: Any, tmp_path: Path
) -> None:
    path = tmp_path / "s.db"
    open_study(make_spec(), path).optimize(3)
    changed = make_spec(space=wider_space())
    with pytest.raises(StudyMismatch) as caught:
        open_study(changed, path)
    said = str(caught.value)
    for part in (make_spec().fingerprint, changed.fingerprint, "'r'", "new: added", "migrate"):
        assert part in said


def test_a_changed_design_point_and_version_are_said(make_spec: Any, tmp_path: Path) -> None:
    @objective(metrics=["loss", "traffic"], constraints=["over"], name="bowl", version="2")
    def newer(config: Any) -> dict[str, float]:
        raise NotImplementedError

    path = tmp_path / "s.db"
    open_study(make_spec(), path)
    there = DesignPoint(name="here", content={"size": 4})
    with pytest.raises(StudyMismatch, match=r"size: was 3, is 4[\s\S]*was version 1, is 2"):
        open_study(make_spec(design_point=there, objective=newer), path)


def test_migrating_keeps_history_outside_the_budget(make_spec: Any, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    old = open_study(make_spec(), path)
    old.optimize(20)
    inside = [trial for trial in old.trials if trial.config["a"] <= 25]
    assert 0 < len(inside) < 20, "the test needs rows on both sides"

    study = open_study(make_spec(space=wider_space()), path, migrate=True)
    assert study.name == "small@bowl~2"
    imported = study.trials
    assert [(t.origin, t.slot) for t in imported] == [(Origin.IMPORTED, None)] * len(inside)
    assert [t.config for t in imported] == [{**t.config, "new": False} for t in inside]
    assert [t.evaluation for t in imported] == [t.evaluation for t in inside]
    source = {"study": "small@bowl", "number": inside[0].number}
    assert imported[0].attributes["imported_from"] == source

    assert study.optimize(30).new_trials == 30
    measured = [t for t in study.trials if t.slot is not None]
    assert len(measured) == 30
    assert any(t.config["b"] == "r" for t in measured), "the new choice is sampled"
    assert any(t.config["new"] for t in measured)
    assert not {study.spec.space.key(t.config) for t in imported} & {
        study.spec.space.key(t.config) for t in measured
    }

    again = open_study(make_spec(space=wider_space()), path)
    assert again.name == study.name
    assert again.trials == study.trials
    assert open_study(make_spec(), path).name == "small@bowl"
    assert read_study(path, "small").record.storage_name == "small@bowl~2"
    assert len(study.optuna_study.best_trials) == len(study.front())


def test_migrating_twice_remembers_the_first_source(make_spec: Any, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    open_study(make_spec(), path).optimize(3)
    open_study(make_spec(metrics=["traffic"]), path, migrate=True)
    third = open_study(make_spec(metrics=["loss"]), path, migrate=True)
    assert third.name == "small@bowl~3"
    sources = {t.attributes["imported_from"]["study"] for t in third.trials}
    assert sources == {"small@bowl"}


def test_numbers_of_another_backend_version_stay_behind(make_spec: Any, tmp_path: Path) -> None:
    @objective(metrics=["loss", "traffic"], constraints=["over"], name="bowl", version="2")
    def newer(config: Any) -> dict[str, float]:
        return {"loss": 0.0, "traffic": 0.0, "over": 0.0}

    path = tmp_path / "s.db"
    open_study(make_spec(), path).optimize(3)
    assert open_study(make_spec(objective=newer), path, migrate=True).trials == []


def test_what_lacks_a_constraint_is_not_taken_over(make_spec: Any, tmp_path: Path) -> None:
    @objective(metrics=["loss", "traffic"], constraints=["over", "heat"], name="bowl")
    def hotter(config: Any) -> dict[str, float]:
        raise NotImplementedError

    path = tmp_path / "s.db"
    open_study(make_spec(), path).optimize(3)
    assert open_study(make_spec(objective=hotter), path, migrate=True).trials == []


def test_sampler_and_seed_change_only_on_purpose(make_spec: Any, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    open_study(make_spec(), path).optimize(3)
    other = make_spec(sampler="random", seed=9)
    with pytest.raises(StudyMismatch, match=r"sampler 'tpe', seed 0.*reset_sampler"):
        open_study(other, path)
    study = open_study(other, path, reset_sampler=True)
    assert (study.record.sampler, study.record.seed) == ("random", 9)
    assert study.optimize(6).new_trials == 3
    assert open_study(other, path).record.seed == 9


def test_words_about_a_study_follow_the_spec(make_spec: Any, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    open_study(make_spec(), path).optimize(2)
    baseline = {"a": 3, "b": "p", "x": 0.5}
    spec = make_spec(description="new", tags=["t"], baselines={"today": baseline}, n_trials=50)
    study = open_study(spec, path)
    stored = list_studies(path)[0]
    assert (stored.description, stored.tags, stored.n_trials) == ("new", ("t",), 50)
    study.optimize(3)
    assert study.trials[2].label == "today"


def test_a_later_order_of_the_baselines_is_stored(make_spec: Any, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    p, q = {"a": 3, "b": "p", "x": 0.5}, {"a": 4, "b": "q", "x": 0.5}
    open_study(make_spec(baselines={"p": p, "q": q}), path).optimize(2)
    study = open_study(make_spec(baselines={"q": q, "p": p}), path)
    assert list(study.record.baselines) == ["q", "p"]
    stored = read_study(path, "small")
    assert list(stored.record.baselines) == ["q", "p"]
    assert study.baseline() == stored.baseline() == study.trials[1]


def test_another_programs_study_of_the_name_is_left_alone(make_spec: Any, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    optuna.create_study(study_name="small@bowl", storage=open_storage(path).optuna())
    with pytest.raises(StudyMismatch, match="another program"):
        open_study(make_spec(), path)
    assert list_studies(path) == []


def test_objectives_have_studies_of_their_own(make_spec: Any, tmp_path: Path) -> None:
    @objective(metrics=["loss", "traffic"], constraints=["over"], name="testbed")
    def testbed(config: Any) -> dict[str, float]:
        return {"loss": 0.0, "traffic": 0.0, "over": 0.0}

    path = tmp_path / "s.db"
    open_study(make_spec(), path).optimize(2)
    second = open_study(make_spec(objective=testbed), path)
    assert second.trials == []
    second.optimize(1)
    assert [r.storage_name for r in list_studies(path)] == ["small@bowl", "small@testbed"]
    assert {t.state for t in read_study(path, "small@testbed").trials} == {TrialState.COMPLETE}
