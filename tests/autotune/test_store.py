"""The studies of a storage: listed, found, compared and handed on."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from optuna.distributions import FloatDistribution

from autotune import (
    Config,
    DesignPoint,
    Origin,
    SearchSpace,
    StorageRefused,
    StudySpec,
    Trial,
    TrialState,
    UnknownName,
    objective,
    open_study,
)
from autotune.storage import Storage, open_storage
from autotune.store import StudyStore, distance


@objective(metrics=["cost", "size"], constraints=["over"], cost_s=1e-5)
def shifted(config: Config, design_point: DesignPoint) -> dict[str, float]:
    """A bowl around the design point's centre; its best value is infeasible."""
    d = config["x"] - design_point.content["centre"]
    return {"cost": d**2, "size": abs(config["x"]), "over": 0.1 - abs(d)}


@objective(metrics=["cost", "size"], name="never", constraints=["over"], cost_s=1e-5)
def never(config: Config) -> dict[str, float]:
    return {"cost": 0.0, "size": 0.0, "over": 1.0}


def at(centre: float, **features: float) -> DesignPoint:
    return DesignPoint(
        name=f"centre {centre:g}",
        content={"centre": centre},
        features=features or {"centre": centre, "colour": 1.0},
    )


def spec(centre: float, **changes: object) -> StudySpec:
    fields = {
        "name": f"study {centre:g}",
        "space": SearchSpace({"x": FloatDistribution(-10, 10)}),
        "objective": shifted,
        "metrics": ["cost"],
        "design_point": at(centre),
        "n_trials": 12,
        "tags": ("test", f"c{centre:g}"),
    }
    return StudySpec(**(fields | changes))  # type: ignore[arg-type]


@pytest.fixture
def storage() -> Storage:
    """Four studies: centres 0, 1 and 8, and one that found nothing."""
    opened = open_storage("memory")
    for each in (
        spec(0.0),
        spec(1.0, metrics=["cost", "size"]),
        spec(8.0),
        spec(1.0, name="hopeless", objective=never, tags=("test",)),
    ):
        open_study(each, opened).optimize()
    return opened


@pytest.fixture
def store(storage: Storage) -> StudyStore:
    return StudyStore(storage)


def names(found: list[object]) -> list[str]:
    return [getattr(each, "name", None) or each.study.name for each in found]  # type: ignore[attr-defined]


def test_lists_all_studies_oldest_first(store: StudyStore) -> None:
    assert names(store.studies()) == [
        "study 0@shifted", "study 1@shifted", "study 8@shifted", "hopeless@never",
    ]  # fmt: skip


def test_a_summary_counts_and_names_only_feasible_bests(store: StudyStore) -> None:
    """The unconstrained optimum lies in the infeasible part."""
    summary = store.studies()[0]
    assert summary.counts == {TrialState.COMPLETE: 12}
    assert 0 < summary.n_feasible <= 12
    assert summary.best.keys() == {"cost", "size"}
    feasible = [t.evaluation for t in store.trials(summary.name) if t.feasible]
    assert summary.best["cost"] == min(e.metrics["cost"] for e in feasible if e)
    assert summary.best["cost"] >= 0.01
    assert summary.last_finished is not None
    assert summary.record.created <= summary.last_finished


def test_nothing_feasible_means_no_best(store: StudyStore) -> None:
    summary = store.studies()[-1]
    assert (summary.n_feasible, summary.best) == (0, {})
    assert store.best_trials(summary.name) == []


def test_finds_by_anything(store: StudyStore) -> None:
    assert names(store.find(name="study 1")) == ["study 1@shifted"]
    assert names(store.find(name="study 1@shifted")) == ["study 1@shifted"]
    assert names(store.find(objective="never")) == ["hopeless@never"]
    assert names(store.find(tags=["test", "c8"])) == ["study 8@shifted"]
    assert names(store.find(tags=["test"], objective="shifted", design_point="centre 1")) == [
        "study 1@shifted"
    ]
    renamed = DesignPoint(name="another name", content={"centre": 1.0})
    assert names(store.find(design_point=renamed)) == ["study 1@shifted", "hopeless@never"]
    assert store.find(tags=["no such tag"]) == []
    assert len(store.find()) == 4


def test_trials_are_those_of_the_study(store: StudyStore, storage: Storage) -> None:
    study = open_study(spec(0.0), storage)
    assert store.trials("study 0") == study.trials
    assert store.read("study 0").best() == study.best()
    with pytest.raises(UnknownName, match="study 8@shifted"):
        store.trials("study 2")


def test_nearest_first_and_only_what_found_something(store: StudyStore) -> None:
    matches = store.nearest(at(2.0))
    assert names(matches) == ["study 1@shifted", "study 0@shifted", "study 8@shifted"]
    assert matches[0].distance < matches[1].distance < matches[2].distance
    assert matches[0].differences == {"centre": -1.0, "colour": 0.0}
    assert names(store.nearest(at(2.0), n=1)) == ["study 1@shifted"]
    assert store.nearest(at(2.0), objective="never") == []
    assert names(store.nearest(at(1.0), 2, exclude=["study 1@shifted"])) == [
        "study 0@shifted", "study 8@shifted",
    ]  # fmt: skip


def test_the_same_content_is_at_distance_zero(store: StudyStore) -> None:
    match = store.nearest(DesignPoint(name="elsewhere", content={"centre": 8.0}), n=1)[0]
    assert (match.study.name, match.distance) == ("study 8@shifted", 0.0)


def test_distance_is_in_units_of_the_spread() -> None:
    spread = {"a": 2.0, "b": 0.5, "constant": 0.0}
    assert distance(at(0, a=0.0), at(1, a=2.0), spread) == 1.0
    assert distance(at(0, a=0.0, b=0.0), at(1, a=2.0, b=1.0), spread) == pytest.approx(2.5**0.5)
    assert distance(at(0, a=1.0, constant=3.0), at(1, a=1.0, constant=3.0), spread) == 0.0


def test_a_feature_that_one_side_lacks_counts_as_one_spread() -> None:
    spread = {"a": 2.0, "b": 1.0}
    assert distance(at(0, a=0.0, b=0.0), at(1, a=0.0), spread) == pytest.approx(0.5**0.5)
    nothing = DesignPoint(name="no features", content={"centre": 5})
    assert distance(nothing, at(1, a=0.0), spread) == 1.0
    assert distance(nothing, DesignPoint(name="neither"), spread) == math.inf


def test_best_trials_are_the_front_then_the_next(store: StudyStore) -> None:
    study = store.read("study 1")
    front = store.best_trials("study 1", n=len(study.front()))
    assert [t.number for t in front] == [t.number for t in study.front()]
    more = store.best_trials("study 1", n=len(front) + 2)
    assert more[: len(front)] == front
    assert len(more) == len(front) + 2
    two = store.best_trials("study 1", n=2)
    assert two == [front[0], front[-1]]
    everything = store.best_trials("study 1", n=1000)
    assert len({t.number for t in everything}) == len(everything)
    assert all(t.feasible for t in everything)


def test_a_single_metric_ranks_by_it(store: StudyStore) -> None:
    ranked = store.best_trials("study 0", n=4)
    assert [cost(t) for t in ranked] == sorted(cost(t) for t in ranked)


def test_a_new_study_starts_from_the_nearest_by_measuring_again(storage: Storage) -> None:
    """The best of the nearest study comes first, with this design point's own values."""
    new = open_study(spec(2.0), storage)
    store = StudyStore(storage)
    matches = store.nearest(new.spec.design_point, n=1, exclude=[new.name])
    assert names(matches) == ["study 1@shifted"]
    asked = new.warm_start(matches, n=3)
    assert asked == [t.config for t in store.best_trials("study 1", n=3)]
    new.optimize(6)
    transferred = [t for t in new.trials if t.origin is Origin.TRANSFER]
    assert [t.config for t in transferred] == asked
    assert [t.slot for t in transferred] == [0, 1, 2]
    for trial in transferred:
        assert trial.label == "study 1@shifted"
        assert trial.attributes["transferred_from"]["study"] == "study 1@shifted"
        assert cost(trial) == pytest.approx((trial.config["x"] - 2.0) ** 2)


def test_starting_from_nothing_is_starting(storage: Storage) -> None:
    new = open_study(spec(2.0, objective=never), storage)
    matches = StudyStore(storage).nearest(new.spec.design_point, objective="never")
    assert new.warm_start(matches) == []
    assert new.optimize(2).new_trials == 2


def test_frame_has_one_row_a_study(store: StudyStore) -> None:
    frame = store.frame()
    assert list(frame["study"]) == names(store.studies())
    assert frame["complete"].tolist() == [12] * 4
    assert frame["best cost"].isna().tolist() == [False, False, False, True]


def test_an_empty_storage_has_an_empty_history() -> None:
    store = StudyStore(open_storage("memory"))
    assert store.studies() == []
    assert store.nearest(at(0.0)) == []
    assert len(store.frame()) == 0


def test_reading_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(StorageRefused):
        StudyStore(tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []


def cost(trial: Trial) -> float:
    assert trial.evaluation is not None
    return trial.evaluation.metrics["cost"]
