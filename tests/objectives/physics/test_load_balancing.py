from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from objectives.physics.load_balancing import exact_hash_efficiency, hash_efficiency

TABLE = [
    (8, 8, 0.41),
    (16, 8, 0.50),
    (32, 8, 0.58),
    (64, 8, 0.66),
    (128, 8, 0.74),
    (64, 16, 0.52),
    (256, 16, 0.69),
    (1024, 64, 0.62),
]


@pytest.mark.parametrize(("flows", "links", "efficiency"), TABLE)
def test_exact_expectation_of_random_hashing(flows, links, efficiency):
    assert exact_hash_efficiency(flows, links) == pytest.approx(efficiency, abs=6e-3)


def test_exact_expectation_agrees_with_drawn_loads():
    loads = np.random.default_rng(0).multinomial(24, [1 / 6] * 6, size=20_000).max(axis=1)
    assert exact_hash_efficiency(24, 6) == pytest.approx((4 / loads).mean(), abs=4e-3)


@pytest.mark.parametrize("links", [2, 4, 8, 16, 32, 64, 128])
def test_closed_form_is_near_the_exact_one(links):
    for per_link in (1, 2, 4, 8, 16):
        flows = links * per_link
        assert hash_efficiency(flows, links) == pytest.approx(
            exact_hash_efficiency(flows, links), abs=0.02 if per_link > 1 else 0.04
        )


@pytest.mark.parametrize("links", [8, 32, 128, 512])
def test_fewer_flows_than_links_mostly_meet_nobody(links):
    for flows in (1, 2, 4, links // 8, links // 4):
        assert hash_efficiency(flows, links) * links / flows == pytest.approx(
            exact_hash_efficiency(flows, links) * links / flows, abs=0.04
        )


def test_many_flows_fill_the_links_and_one_flow_fills_one():
    assert hash_efficiency(1e7, 32) > 0.99
    assert hash_efficiency(5, 1) == pytest.approx(1.0, abs=1e-6)
    assert hash_efficiency(1, 64) == pytest.approx(1 / 64)


@given(links=st.floats(1, 4096), flows=st.floats(1, 1e6), more=st.floats(1, 100))
def test_more_flows_are_never_less_even(links, flows, more):
    few, many = hash_efficiency(flows, links), hash_efficiency(flows * more, links)
    assert 0 < few <= many * (1 + 1e-9)
    assert many <= 1 + 1e-12


@given(links=st.floats(1, 4096), flows=st.floats(1, 1e6), more=st.floats(1, 100))
def test_more_links_never_carry_less(links, flows, more):
    few = links * hash_efficiency(flows, links)
    many = links * more * hash_efficiency(flows, links * more)
    # The two branches of the closed form differ by up to 3 % where they meet.
    assert many >= few * 0.97
