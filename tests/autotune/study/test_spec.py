from __future__ import annotations

from typing import Any

import pytest

from autotune import DesignPoint, InvalidInput, UnknownName, Unsupported, objective


def test_every_problem_is_said_at_once(make_spec: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        make_spec(
            name="a@b",
            metrics=["loss", "loss"],
            seed=-1,
            n_trials=2.5,
            sampler="tbe",
            baselines={"today": {"a": 99, "b": "p", "c": 0}},
        )
    paths = {problem.path for problem in caught.value.problems}
    assert {"name", "metrics", "seed", "n_trials", "sampler"} < paths
    assert {"baselines.today.a", "baselines.today.c", "baselines.today.x"} < paths
    assert "tpe" in str(caught.value)


def test_a_metric_the_objective_lacks_is_refused_by_name(make_spec: Any) -> None:
    with pytest.raises(Unsupported, match=r"mfu.*bowl.*loss, traffic"):
        make_spec(metrics=["mfu"]).make_objective()


def test_an_unknown_backend_lists_the_known_ones(make_spec: Any) -> None:
    with pytest.raises(UnknownName, match="analytical"):
        make_spec(objective="analytic").make_objective()


def test_the_fingerprint_covers_what_is_measured_and_nothing_else(make_spec: Any) -> None:
    @objective(metrics=["loss", "traffic"], constraints=["over"], name="bowl", version="2")
    def newer(config: Any) -> dict[str, float]:
        raise NotImplementedError

    base = make_spec()
    same = [
        {"n_trials": 7},
        {"sampler": "random"},
        {"seed": 3},
        {"tags": ["x"]},
        {"design_point": DesignPoint(name="renamed", content={"size": 3})},
    ]
    other = [
        {"metrics": ["traffic", "loss"]},
        {"metrics": ["loss"]},
        {"design_point": DesignPoint(name="here", content={"size": 4})},
        {"objective": newer},
    ]
    assert {make_spec(**change).fingerprint for change in same} == {base.fingerprint}
    prints = {make_spec(**change).fingerprint for change in other} | {base.fingerprint}
    assert len(prints) == len(other) + 1


def test_the_storage_name_has_the_objective(make_spec: Any) -> None:
    assert make_spec().storage_name == "small@bowl"
