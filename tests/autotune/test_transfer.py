from __future__ import annotations

from pathlib import Path
from typing import Any

from optuna.distributions import CategoricalDistribution, IntDistribution

from autotune import (
    Config,
    DesignPoint,
    Origin,
    SearchSpace,
    StudySpec,
    Trial,
    TrialState,
    objective,
    open_study,
)
from autotune.store import StudyStore
from autotune.transfer import candidates

SPACE = SearchSpace({"a": IntDistribution(0, 9), "b": CategoricalDistribution(["p", "q"])})


def trial(number: int, **config: Any) -> Trial:
    return Trial(
        number=number,
        slot=number,
        state=TrialState.COMPLETE,
        origin=Origin.SAMPLER,
        config=config,
    )


def test_sources_take_turns_and_nothing_comes_twice() -> None:
    sources = {
        "near": [trial(0, a=1, b="p"), trial(1, a=2, b="p"), trial(2, a=3, b="p")],
        "far": [trial(5, a=1, b="p"), trial(6, a=7, b="q")],
    }
    found = candidates(sources, SPACE, 3)
    assert [(each.source, each.config["a"]) for each in found] == [
        ("near", 1),
        ("near", 2),
        ("far", 7),
    ]
    assert found[0].notes == {"transferred_from": {"study": "near", "number": 0}}
    known = {SPACE.key({"a": 1, "b": "p"})}
    assert candidates(sources, SPACE, 1, known=known)[0].config["a"] == 2


def test_what_does_not_fit_is_moved_and_that_is_said() -> None:
    found = candidates({"s": [trial(3, a=12, b="p", gone=1)]}, SPACE, 5)
    assert found[0].config == {"a": 9, "b": "p"}
    assert found[0].notes["moved"] == {"a": [12, 9]}


def spec(size: float, best: int, **changes: Any) -> StudySpec:
    @objective(metrics=["loss"], name="v")
    def v(config: Config) -> dict[str, float]:
        return {"loss": abs(config["a"] - best) + (config["b"] == "q")}

    fields: dict[str, Any] = {
        "name": f"size-{size:g}",
        "space": SPACE,
        "objective": v,
        "metrics": ["loss"],
        "design_point": DesignPoint(
            name=f"{size:g}", content={"size": size}, features={"size": size}
        ),
        "n_startup_trials": 3,
    }
    return StudySpec(**(fields | changes))


def test_the_best_of_the_nearest_is_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    for size, best in ((1.0, 2), (5.0, 6), (40.0, 9)):
        open_study(spec(size, best), path).optimize(20)
    new = spec(6.0, 7, baselines={"today": {"a": 0, "b": "q"}})
    study = open_study(new, path)
    matches = StudyStore(path).nearest(new.design_point, 2)
    added = study.warm_start(matches, n=3)
    assert len(added) == 3
    assert {"a": 6, "b": "p"} in added
    assert study.warm_start(matches, n=3) == []
    study.optimize(6)
    origins = [trial.origin for trial in study.trials]
    assert origins == [Origin.BASELINE] + [Origin.TRANSFER] * 3 + [Origin.STARTUP] * 2
    transferred = study.trials[1]
    assert transferred.label == "size-5@v"
    assert transferred.evaluation is not None
    assert transferred.evaluation.metrics["loss"] == 1.0, "measured here, not copied"


def test_trials_by_name_or_alone(tmp_path: Path) -> None:
    study = open_study(spec(1.0, 2), "memory")
    named = study.warm_start({"elsewhere": [trial(0, a=1, b="p")]})
    alone = study.warm_start([trial(0, a=2, b="p"), trial(1, a=1, b="p")])
    assert (named, alone) == ([{"a": 1, "b": "p"}], [{"a": 2, "b": "p"}])
