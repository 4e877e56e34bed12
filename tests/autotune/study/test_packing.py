from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from autotune import Evaluation, FailureKind, InvalidInput, SearchSpace, Status, TrialState
from autotune.storage.rows import StudyRow, TrialRow, dumps
from autotune.study.packing import (
    config_key,
    pack_config,
    pack_evaluation,
    pack_study,
    state_of,
    unpack_config,
    unpack_evaluation,
    unpack_study,
)

SPACE = SearchSpace(
    {
        "int": IntDistribution(-5, 5),
        "float": FloatDistribution(-1e9, 1e9),
        "step": FloatDistribution(0.0, 1.0, step=0.1),
        "mixed": CategoricalDistribution([None, True, 2, 0.5, "ö"]),
        "tuple": CategoricalDistribution(["[8,1]", "[4,2]"]),
    }
)

NAMES = st.text(min_size=1, max_size=8)
NUMBERS = st.dictionaries(NAMES, st.floats(allow_nan=False, allow_infinity=False), max_size=3)


@given(st.integers(0, 10_000))
def test_a_config_comes_back_with_the_same_key(seed: int) -> None:
    import json

    config = SPACE.sample(1, seed=seed)[0]
    stored = json.loads(dumps(pack_config(config)))
    assert unpack_config(stored) == config
    assert config_key(stored) == SPACE.key(config)


def test_lists_in_configs_are_tuples_again() -> None:
    config = {"layout": (8, (1, 2)), "more": {"x": (1,)}}
    assert unpack_config(pack_config(config)) == config


@given(NUMBERS, NUMBERS, NUMBERS)
def test_a_result_comes_back(
    metrics: dict[str, float], constraints: dict[str, float], breakdown: dict[str, float]
) -> None:
    evaluation = Evaluation(
        metrics=metrics, constraints=constraints, breakdown=breakdown, cost_s=1.5
    )
    assert unpack_evaluation(pack_evaluation(evaluation)) == evaluation


def test_a_failure_comes_back() -> None:
    for evaluation in (
        Evaluation.failure(FailureKind.OOM, "too big", cost_s=2.0),
        Evaluation(status=Status.STOPPED, reason="told to"),
    ):
        assert unpack_evaluation(pack_evaluation(evaluation)) == evaluation


@pytest.mark.parametrize(
    ("state", "packed", "expected"),
    [
        ("RUNNING", {}, TrialState.RUNNING),
        ("COMPLETE", {"evaluation": {}}, TrialState.COMPLETE),
        ("FAIL", {"evaluation": {}}, TrialState.FAILED),
        ("FAIL", {"void": {}}, TrialState.VOID),
        ("FAIL", {}, TrialState.VOID),
        ("PRUNED", {}, TrialState.PRUNED),
    ],
)
def test_what_states_mean(state: Any, packed: dict[str, Any], expected: TrialState) -> None:
    row = TrialRow(
        trial_id=1,
        number=0,
        state=state,
        started=datetime.now(UTC),
        finished=None,
        packed=packed,
    )
    assert state_of(row) is expected


def test_a_study_comes_back(make_spec: Any) -> None:
    spec = make_spec(baselines={"today": {"a": 1, "b": "p", "x": 0.5}}, tags=["t"])
    row = StudyRow(study_id=3, name="n", packed=pack_study(spec, spec.make_objective()))
    record = unpack_study(row)
    assert (record.name, record.tags, record.fingerprint) == ("small", ("t",), spec.fingerprint)
    assert [metric.name for metric in record.metrics] == ["loss", "traffic"]
    assert record.design_point == spec.design_point
    assert record.baselines == spec.baselines
    assert SearchSpace.from_json(record.space).fingerprint == spec.space.fingerprint


def test_a_newer_format_is_refused(make_spec: Any) -> None:
    spec = make_spec()
    packed = pack_study(spec, spec.make_objective()) | {"format": 99}
    with pytest.raises(InvalidInput, match="update"):
        unpack_study(StudyRow(study_id=3, name="n", packed=packed))
