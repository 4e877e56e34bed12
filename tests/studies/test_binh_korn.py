"""The shipped study that is not about LLMs, against its exact front."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autotune import Evaluation, open_study, pareto
from studies.binh_korn import REFERENCE_POINT, binh_korn, exact_front, space, study


def evaluate(x: float, y: float) -> Evaluation:
    return binh_korn(study().design_point).evaluate({"x": x, "y": y}, seed=0)


def test_values_by_hand() -> None:
    result = evaluate(1.0, 2.0)
    assert result.metrics == {"f1": 20.0, "f2": 25.0}
    assert result.constraints == {"g1": 16 + 4 - 25, "g2": pytest.approx(7.7 - 49 - 25)}


def test_a_corner_is_infeasible() -> None:
    assert not evaluate(0.0, 3.0).feasible


def test_ends_of_the_front() -> None:
    front = exact_front(101)
    assert front.shape == (101, 2)
    assert front[0].tolist() == [0.0, 50.0]
    assert front[-1].tolist() == [136.0, 4.0]
    assert (np.diff(front[:, 0]) > 0).all()
    assert (np.diff(front[:, 1]) < 0).all()
    with pytest.raises(ValueError, match="at least 2"):
        exact_front(1)


def test_nothing_feasible_beats_the_front() -> None:
    """Ten thousand valid points: none dominates a point of the front."""
    columns = space().sample_columns(10_000, seed=0)
    x, y = columns["x"], columns["y"]
    feasible = ((x - 5) ** 2 + y**2 <= 25) & ((x - 8) ** 2 + (y + 3) ** 2 >= 7.7)
    points = np.column_stack([4 * x**2 + 4 * y**2, (x - 5) ** 2 + (y - 5) ** 2])[feasible]
    front = exact_front(2001)
    # The front is a polyline here: allow for the gap between its points.
    for f1, f2 in points:
        assert not ((front[:, 0] > f1 + 0.2) & (front[:, 1] > f2 + 0.2)).any()


def test_the_baseline_is_feasible_and_off_the_front() -> None:
    baseline = evaluate(**study().baselines["today"])
    assert baseline.feasible
    front = exact_front(1001)
    mine = [baseline.metrics["f1"], baseline.metrics["f2"]]
    assert (front < np.array(mine) - 1.0).all(axis=1).any()


def test_one_hundred_trials_reach_the_front() -> None:
    """The share of the exact hypervolume that the shipped study finds: 98 % with its seed."""
    found = open_study(study(), "memory")
    found.optimize()
    losses = pareto.losses_of(found.front(), found.metrics)
    exact = pareto.hypervolume(exact_front(2001), REFERENCE_POINT)
    share = pareto.hypervolume(losses, REFERENCE_POINT) / exact
    assert 0.97 < share < 1.0
    best = found.best("f1")
    assert best is not None
    assert best.evaluation is not None
    assert best.evaluation.metrics["f1"] < 4.0


def test_another_backend_by_one_word(tmp_path: Path) -> None:
    """The same spec, measured by a program that prints JSON."""
    spec = replace(study(), objective="command", n_trials=3)
    opened = open_study(spec, tmp_path / "study.db")
    opened.optimize()
    for trial in opened.trials:
        assert trial.evaluation is not None
        expected = evaluate(trial.config["x"], trial.config["y"])
        assert trial.evaluation.metrics == pytest.approx(expected.metrics)
        assert trial.evaluation.constraints == pytest.approx(expected.constraints)
    assert opened.name == "binh-korn@command"
