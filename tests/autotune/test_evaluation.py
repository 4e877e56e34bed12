"""An evaluation has finite values or a kind of failure, never both, never neither."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from autotune import Evaluation, Evaluations, FailureKind, Status


@pytest.mark.parametrize(
    "fields",
    [
        {"metrics": {"time_s": float("nan")}},
        {"metrics": {"time_s": float("inf")}},
        {"constraints": {"memory": float("-inf")}},
        {"breakdown": {"compute": float("nan")}},
        {"cost_s": float("nan")},
    ],
)
def test_values_must_be_finite(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be finite"):
        Evaluation(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"status": Status.FAILED},
        {"status": Status.OK, "failure_kind": FailureKind.OOM},
        {"status": Status.STOPPED, "failure_kind": FailureKind.TIMEOUT},
    ],
)
def test_failure_and_kind_go_together(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="failure kind"):
        Evaluation(**fields)


def test_feasible_means_measured_and_within_limits() -> None:
    assert Evaluation(metrics={"t": 1.0}, constraints={"c": 0.0}).feasible
    assert not Evaluation(metrics={"t": 1.0}, constraints={"c": 1e-9, "d": -1.0}).feasible
    failed = Evaluation.failure(FailureKind.OOM, "81 GB of 80 GB", cost_s=2.0)
    assert not failed.feasible
    assert not failed.ok
    assert failed.cost_s == 2.0


def test_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Evaluation().cost_s = 1.0  # type: ignore[misc]


def batch() -> Evaluations:
    return Evaluations(
        metrics={"t": np.array([1.0, np.nan, 3.0])},
        constraints={"c": np.array([-1.0, np.nan, 1.0])},
        ok=np.array([True, False, True]),
        reasons={1: "schedule is not modelled"},
        breakdown={"compute": np.array([1.0, np.nan, 3.0])},
        cost_s=3.0,
    )


def test_rows_of_a_batch() -> None:
    rows = [batch().row(i) for i in range(3)]
    assert rows[0] == Evaluation(
        metrics={"t": 1.0}, constraints={"c": -1.0}, breakdown={"compute": 1.0}, cost_s=1.0
    )
    assert rows[1].failure_kind is FailureKind.INVALID
    assert rows[1].reason == "schedule is not modelled"
    assert not rows[2].feasible
    assert type(rows[2].metrics["t"]) is float


def test_feasible_rows_of_a_batch() -> None:
    assert len(batch()) == 3
    assert batch().feasible.tolist() == [True, False, False]


def test_a_refused_row_without_a_reason_still_has_one() -> None:
    refused = Evaluations(metrics={}, constraints={}, ok=np.array([False]))
    assert refused.row(0).reason
