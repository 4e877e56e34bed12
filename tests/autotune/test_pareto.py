from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from autotune.evaluation import Evaluation, FailureKind
from autotune.metric import Metric
from autotune.pareto import (
    REFERENCE_TRIALS,
    best,
    hypervolume,
    non_dominated,
    pareto_front,
    reference_point,
    study_hypervolume,
)
from autotune.trial import Origin, Trial, TrialState

TIME = Metric(name="time_s", unit="s")
RATE = Metric(name="rate", direction="maximize")
METRICS = (TIME, RATE)


def trial(
    number: int,
    time_s: float = 1.0,
    rate: float = 1.0,
    *,
    over: float | None = -1.0,
    **changes: Any,
) -> Trial:
    evaluation = Evaluation(
        metrics={"time_s": time_s, "rate": rate},
        constraints={} if over is None else {"memory_over": over},
    )
    fields: dict[str, Any] = {
        "number": number,
        "slot": number,
        "state": TrialState.COMPLETE,
        "origin": Origin.SAMPLER,
        "config": {"x": number, "layers": [1, 2]},
        "evaluation": evaluation,
    }
    return Trial(**(fields | changes))


def numbers(trials: list[Trial]) -> list[int]:
    return [each.number for each in trials]


@given(
    arrays(
        np.float64,
        st.tuples(st.integers(0, 12), st.integers(1, 4)),
        elements=st.integers(0, 5).map(float),
    )
)
def test_non_dominated_is_the_definition(losses: np.ndarray) -> None:
    def beaten(i: int) -> bool:
        return any(
            bool(np.all(losses[j] <= losses[i])) and (bool(np.any(losses[j] < losses[i])) or j < i)
            for j in range(len(losses))
            if j != i
        )

    assert non_dominated(losses).tolist() == [not beaten(i) for i in range(len(losses))]


def test_hypervolume_of_known_sets() -> None:
    assert hypervolume([[1.0, 2.0], [2.0, 1.0]], [3.0, 3.0]) == pytest.approx(3.0)
    assert hypervolume(np.empty((0, 2)), [3.0, 3.0]) == 0.0
    assert hypervolume([[4.0, 4.0]], [3.0, 3.0]) == 0.0


def test_front_respects_directions_and_is_sorted() -> None:
    trials = [trial(0, 2.0, 2.0), trial(1, 1.0, 1.0), trial(2, 3.0, 1.5), trial(3, 2.0, 2.0)]
    assert numbers(pareto_front(trials, METRICS)) == [1, 0]
    assert best(trials, RATE) == trials[0]


def test_nothing_unmeasured_or_infeasible_is_ever_good() -> None:
    failure = Evaluation.failure(FailureKind.OOM, "out of memory")
    trials = [
        trial(0, 5.0),
        trial(1, 1.0, over=0.5),
        trial(2, 1.0, state=TrialState.FAILED, evaluation=failure),
        trial(3, 1.0, state=TrialState.PRUNED),
        trial(4, 1.0, state=TrialState.RUNNING, evaluation=None),
        trial(5, 1.0, state=TrialState.VOID),
        trial(6, 1.0, over=None, origin=Origin.IMPORTED),
        trial(7, 1.0, evaluation=Evaluation(metrics={"rate": 9.0}, constraints={"memory_over": 0})),
    ]
    assert best(trials, TIME) == trials[0]
    assert numbers(pareto_front(trials, METRICS)) == [0]


def test_named_constraints_must_be_there() -> None:
    unknown = [trial(0, over=None), trial(1, over=None)]
    assert best(unknown, TIME) == unknown[0]
    assert best(unknown, TIME, constraints=["memory_over"]) is None
    assert pareto_front(unknown, METRICS, constraints=["memory_over"]) == []


def test_repeats_are_one_row_with_their_mean() -> None:
    config = {"x": 0}
    trials = [
        trial(0, 3.0, config=config),
        trial(1, 2.0),
        trial(2, 1.0, config=config, origin=Origin.REPEAT, slot=None),
        trial(3, 4.0, config=config, origin=Origin.REPEAT, slot=None),
    ]
    assert best(trials, TIME) == trials[1]
    lucky = best([trials[0], *trials[2:]], TIME)
    assert lucky is not None
    assert lucky.evaluation is not None
    assert lucky.evaluation.metrics["time_s"] == pytest.approx(8 / 3)
    assert lucky.attributes["repeats"] == 3
    assert lucky.attributes["standard_deviation"]["time_s"] == pytest.approx(1.527525, rel=1e-6)


def test_a_config_that_once_broke_its_limit_is_infeasible() -> None:
    config = {"x": 0}
    trials = [trial(0, config=config), trial(1, config=config, over=1.0)]
    assert best(trials, TIME) is None


def test_reference_point_stays_where_the_first_trials_put_it() -> None:
    first = [trial(i, time_s=1.0 + i, rate=float(i)) for i in range(REFERENCE_TRIALS)]
    later = [trial(50, time_s=1e6, rate=-1e6), trial(51, time_s=0.1, rate=100.0)]
    reference = reference_point(first, METRICS)
    assert reference is not None
    np.testing.assert_allclose(reference, [10.9, 0.9])
    np.testing.assert_allclose(reference_point([*later, *first], METRICS), reference)  # type: ignore[arg-type]
    assert study_hypervolume([*first, *later], METRICS) > study_hypervolume(first, METRICS) > 0


def test_reference_point_of_little() -> None:
    assert reference_point([trial(0, over=1.0)], METRICS) is None
    assert study_hypervolume([], METRICS) == 0.0
    single = reference_point([trial(0, 2.0, 0.0)], METRICS)
    np.testing.assert_allclose(single, [2.2, 1.0])  # type: ignore[arg-type]
    assert reference_point([trial(0, slot=None)], METRICS) is None
