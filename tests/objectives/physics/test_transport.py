from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from objectives.physics import transport

FIBRE_S_PER_M = 4.897e-9
RATE = 400e9 / 8


@pytest.mark.parametrize(("km", "efficiency"), [(10, 0.893), (100, 0.455), (1000, 0.077)])
def test_go_back_n_at_400_gigabit(km, efficiency):
    packets = transport.packets_in_flight(
        rate_bytes_per_s=RATE, round_trip_s=2 * km * 1e3 * FIBRE_S_PER_M, packet_bytes=4096
    )
    found = transport.go_back_n_efficiency(loss=1e-4, packets=packets)
    assert found == pytest.approx(efficiency, abs=1.5e-3)


def test_many_connections_lose_less_each():
    one, sixteen = (
        transport.go_back_n_efficiency(
            loss=1e-4,
            packets=transport.packets_in_flight(
                rate_bytes_per_s=RATE / n, round_trip_s=1e-2, packet_bytes=4096
            ),
        )
        for n in (1, 16)
    )
    assert one < 0.1 < 0.5 < sixteen


def test_recovery_by_code_costs_its_parity_and_nearly_never_fails():
    assert transport.erasure_coding_efficiency(data_packets=32, parity_packets=8) == 0.8
    failure = transport.erasure_coding_failure(loss=1e-3, data_packets=32, parity_packets=8)
    # Nine losses of forty: about (40 choose 9) p^9.
    assert failure == pytest.approx(273438880 * 1e-27, rel=0.05)


def test_windows_and_loss_bound_a_connection():
    assert transport.window_rate_bytes_per_s(window_bytes=4e6, round_trip_s=1e-3) == 4e9
    assert transport.window_rate_bytes_per_s(window_bytes=4e6, round_trip_s=0.0) == np.inf
    rate = transport.mathis_rate_bytes_per_s(
        segment_bytes=1460, round_trip_s=0.1, loss=1e-4, factor=1.22
    )
    assert rate == pytest.approx(1460 / 0.1 * 122)


def test_aws_streams_between_regions_are_bound_by_their_windows():
    # 32 streams, Oregon to Tokyo, Seoul, Sydney: rates x round trips agree within 8 %.
    round_trip_s = np.array([0.096, 0.124, 0.139])
    bits = np.array([3.71e9, 2.82e9, 2.5e9])
    window = np.median(bits / 8 * round_trip_s)
    rate = transport.window_rate_bytes_per_s(window_bytes=window, round_trip_s=round_trip_s)
    assert rate * 8 == pytest.approx(bits, rel=0.08)


loss = st.floats(0, 0.5)


@given(low=loss, high=loss, packets=st.floats(1, 1e6))
def test_more_loss_is_never_faster(low, high, packets):
    low, high = sorted((low, high))
    assert transport.go_back_n_efficiency(
        loss=high, packets=packets
    ) <= transport.go_back_n_efficiency(loss=low, packets=packets)
    assert transport.selective_repeat_efficiency(
        loss=high
    ) <= transport.selective_repeat_efficiency(loss=low)
    assert transport.any_lost(loss=high, packets=packets) >= transport.any_lost(
        loss=low, packets=packets
    )
    assert transport.mathis_rate_bytes_per_s(
        segment_bytes=1460, round_trip_s=0.1, loss=high, factor=1.0
    ) <= transport.mathis_rate_bytes_per_s(
        segment_bytes=1460, round_trip_s=0.1, loss=low, factor=1.0
    )


@given(p=st.floats(0, 0.5), packets=st.floats(1, 1e6))
def test_repeating_only_what_was_lost_is_never_worse(p, packets):
    assert transport.selective_repeat_efficiency(loss=p) >= transport.go_back_n_efficiency(
        loss=p, packets=packets
    ) * (1 - 1e-12)
