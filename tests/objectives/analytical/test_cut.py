"""The long link a config needs: what its step time says of narrower and wider ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from objectives.analytical.search import (
    BITS,
    levels_at_once,
    smallest_enough,
    values_at_once,
)

CUT = ("link", "between_buildings", "capacity")


def _columns(columns, row):
    return {name: values[row : row + 1] for name, values in columns.items()}


def test_one_percent_is_reached_there_and_not_before(llama, samples) -> None:
    """Within a grid step of a tenth a line is drawn, also where congestion control sets in."""
    columns = samples("llama", 12, seed=8)
    needed = llama().evaluate_batch(columns).metrics["long_link_bandwidth_bytes_per_s"]
    # Ports are whole only in the mean, so that 10^20 byte/s stands for an infinite cut.
    infinite = llama(changes={CUT: "8e8 Tbit/s"}).evaluate_batch(columns).metrics["step_time_s"]
    for row, capacity in enumerate(needed):
        times = [
            llama(changes={CUT: f"{8 * capacity * factor} bit/s"})
            .evaluate_batch(_columns(columns, row))
            .metrics["step_time_s"][0]
            for factor in (1.0, 0.9)
        ]
        assert times[0] <= 1.0105 * infinite[row]
        assert times[1] > 1.01 * infinite[row]


def test_it_does_not_depend_on_the_cut_that_is_there(llama, samples) -> None:
    columns = samples("llama", 200, seed=9)
    name = "long_link_bandwidth_bytes_per_s"
    wide = llama().evaluate_batch(columns).metrics[name]
    narrow = llama(changes={CUT: "0.1 Tbit/s"}).evaluate_batch(columns).metrics[name]
    np.testing.assert_allclose(narrow, wide, rtol=1e-12)


def test_bytes_over_the_step_must_fit(llama, samples) -> None:
    """No config needs less than its bytes over its time."""
    found = llama().evaluate_batch(samples("llama", 2000, seed=10)).metrics
    fastest = llama(changes={CUT: "8e8 Tbit/s"}).evaluate_batch(samples("llama", 2000, seed=10))
    least = found["long_link_bytes"] / (1.01 * fastest.metrics["step_time_s"])
    assert np.all(found["long_link_bandwidth_bytes_per_s"] >= 0.9 * least)


def test_one_building_needs_none(measure) -> None:
    metrics = measure("one-building-16k-h100").metrics
    assert metrics["long_link_bandwidth_bytes_per_s"] == 0
    assert metrics["long_link_bytes"] == 0


def test_regions_are_the_widest_separation(llama, baseline) -> None:
    building = {
        "accelerator": "H100-SXM",
        "gpus": 8192,
        "gpus_per_node": 8,
        "gpus_per_zone": 2048,
    }
    changes = {
        ("building",): [
            {**building, "name": "east", "region": "here"},
            {**building, "name": "west", "region": "there"},
        ],
        ("link", "between_regions"): {"capacity": "12.8 Tbit/s", "distance": "1000 km"},
    }
    result = llama(changes=changes).evaluate(baseline, seed=0)
    assert result.metrics["long_link_bytes"] == pytest.approx(1.2e12, rel=0.03)
    assert result.breakdown["data parallel across regions"] > 0
    assert "data parallel across buildings" not in result.breakdown


@given(
    knees=st.lists(st.floats(1.0, 1e8), min_size=1, max_size=12),
    slope=st.floats(0.001, 1e6),
    levels=st.sampled_from([1, 2, 4, 8]),
)
def test_bisection_finds_where_a_bend_crosses_in_any_stride(
    knees: list[float], slope: float, levels: int
) -> None:
    """max(1, a + b / x) reaches 1.01 at b / (1.01 - a)."""
    knee = np.asarray(knees)
    start = np.full(len(knees), 0.01)

    def falls(values: np.ndarray) -> np.ndarray:
        assert values.shape[0] == len(knees)
        return np.maximum(1.0, 1.0 + slope * (knee[:, None] / values - 1.0))

    found = smallest_enough(falls, start, levels, tolerance=0.01)
    truth = knee / (1 + 0.01 / slope)
    assert np.all(found >= truth * (1 - 1e-6))
    np.testing.assert_allclose(found, truth, rtol=0.11)
    one_by_one = smallest_enough(falls, start, 1, tolerance=0.01)
    np.testing.assert_allclose(found, one_by_one, rtol=1e-12)


def test_few_are_answered_in_few_calls() -> None:
    for size in (1, 8, 9, 128, 129, 10**6):
        levels = levels_at_once(size)
        assert BITS % levels == 0
        assert values_at_once(levels) in (1, 2**levels)
