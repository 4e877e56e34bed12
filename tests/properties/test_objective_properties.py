"""Whatever a function returns or raises, an evaluation comes out; distances are distances."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from autotune import Config, DesignPoint, Evaluation, FailureKind, objective
from autotune.store import distance
from autotune.study.packing import pack_evaluation, unpack_evaluation

HERE = DesignPoint(name="here")

junk = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.complex_numbers()
    | st.lists(st.floats(), max_size=3)
)
results = junk | st.dictionaries(st.sampled_from(["loss", "over", "other"]), junk)
numbers = st.floats(allow_nan=False, allow_infinity=False)
errors = st.sampled_from([ValueError, KeyError, MemoryError, TimeoutError, RuntimeError, OSError])


@given(results)
def test_any_result_is_an_evaluation_with_everything_or_a_failure(result: Any) -> None:
    @objective(metrics=["loss"], constraints=["over"])
    def returns(config: Config) -> Any:
        return result

    evaluation = returns(HERE).evaluate({"x": 1}, seed=0)
    if evaluation.ok:
        assert evaluation.metrics.keys() == {"loss"}
        assert evaluation.constraints.keys() == {"over"}
        assert math.isfinite(evaluation.metrics["loss"] + 0 * evaluation.constraints["over"])
    else:
        assert evaluation.failure_kind is FailureKind.INVALID
        assert evaluation.reason


@given(errors, st.text())
def test_any_error_is_a_failure_with_its_text(kind: type[Exception], text: str) -> None:
    @objective(metrics=["loss"])
    def raises(config: Config) -> dict[str, float]:
        raise kind(text)

    evaluation = raises(HERE).evaluate({}, seed=0)
    assert evaluation.failure_kind in FailureKind
    assert kind.__name__ in evaluation.reason


@given(
    st.dictionaries(st.text(), numbers),
    st.dictionaries(st.text(), numbers),
    st.floats(0, 1e6),
)
def test_an_evaluation_survives_being_stored(
    metrics: dict[str, float], constraints: dict[str, float], cost_s: float
) -> None:
    stored = pack_evaluation(
        Evaluation(metrics=metrics, constraints=constraints, cost_s=cost_s, breakdown=metrics)
    )
    back = unpack_evaluation(stored)
    assert back.metrics == metrics
    assert back.constraints == constraints
    assert back.feasible == all(value <= 0 for value in constraints.values())


points = st.builds(
    DesignPoint,
    name=st.just("any"),
    content=st.fixed_dictionaries({"id": st.integers(0, 3)}),
    features=st.dictionaries(st.sampled_from("abc"), st.floats(-1e3, 1e3)),
)
spreads = st.dictionaries(st.sampled_from("abc"), st.floats(0.1, 10))


@given(points, points, spreads)
def test_distance_is_symmetric_and_zero_only_where_nothing_differs(
    first: DesignPoint, second: DesignPoint, spread: dict[str, float]
) -> None:
    there = distance(first, second, spread)
    assert there == distance(second, first, spread)
    assert there >= 0
    if first.fingerprint == second.fingerprint:
        assert there == 0


@given(points, st.sampled_from("abc"), st.floats(0.1, 100), st.floats(1.1, 10))
def test_distance_grows_with_a_difference(
    here: DesignPoint, name: str, difference: float, factor: float
) -> None:
    spread = {"a": 1.0, "b": 1.0, "c": 1.0}
    base = {**here.features, name: 0.0}

    def away(value: float) -> float:
        there = DesignPoint(name="x", content={"id": 9}, features={**base, name: value})
        origin = DesignPoint(name="y", content={"id": 8}, features=base)
        return distance(there, origin, spread)

    assert away(difference) < away(factor * difference)
