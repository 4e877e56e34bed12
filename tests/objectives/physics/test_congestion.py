from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from objectives.physics.congestion import pause_headroom_bytes, sawtooth_utilisation


def test_a_sawtooth_keeps_three_quarters_without_buffer_and_all_with_one_product():
    assert sawtooth_utilisation(buffer_bytes=0.0, bandwidth_delay_bytes=1e6) == pytest.approx(0.75)
    assert sawtooth_utilisation(buffer_bytes=1e6, bandwidth_delay_bytes=1e6) == pytest.approx(1.0)
    assert sawtooth_utilisation(buffer_bytes=1e6, bandwidth_delay_bytes=0.0) == pytest.approx(1.0)


@given(
    buffer=st.floats(0, 1e9),
    product=st.floats(0, 1e9),
    more=st.floats(1, 10),
)
def test_longer_links_are_never_better_used_and_buffers_never_hurt(buffer, product, more):
    used = sawtooth_utilisation(buffer_bytes=buffer, bandwidth_delay_bytes=product)
    longer = sawtooth_utilisation(buffer_bytes=buffer, bandwidth_delay_bytes=product * more)
    deeper = sawtooth_utilisation(buffer_bytes=buffer * more, bandwidth_delay_bytes=product)
    assert longer <= used * (1 + 1e-12)
    assert deeper >= used * (1 - 1e-12)


def test_headroom_of_a_400_gigabit_port_over_ten_kilometres():
    bytes_ = pause_headroom_bytes(rate_bytes_per_s=50e9, round_trip_s=97.94e-6, packet_bytes=4096)
    assert bytes_ == pytest.approx(4.9e6, rel=0.01)
