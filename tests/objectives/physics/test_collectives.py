from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from objectives.physics.collectives import (
    all_to_all_s,
    broadcast_s,
    hierarchical_all_reduce_s,
    in_network_all_reduce_s,
    point_to_point_s,
    quantised_bytes,
    ring_all_gather_s,
    ring_all_reduce_s,
    tree_all_reduce_s,
)

# NCCL all-reduce on V100 nodes: nodes, MB, delay in ms, Gb/s, measured ms.
# Source: BinhangYuan/tc_cluster_setting, emulated wide-area links on AWS.
MEASURED = np.array(
    [
        (4, 128, 1, 5, 329),
        (4, 256, 1, 5, 655),
        (4, 128, 5, 2, 835),
        (4, 256, 5, 2, 1650),
        (8, 128, 1, 5, 383),
        (8, 256, 1, 5, 763),
        (8, 128, 5, 2, 970),
        (8, 256, 5, 2, 1921),
        (8, 128, 10, 1, 1940),
        (8, 256, 10, 1, 3841),
        (16, 128, 1, 5, 410),
        (16, 256, 1, 5, 817),
        (16, 128, 5, 2, 1038),
        (16, 256, 5, 2, 2057),
        (16, 128, 10, 1, 2076),
        (16, 256, 10, 1, 4114),
        (32, 128, 1, 5, 434),
        (32, 256, 1, 5, 844),
        (32, 128, 5, 2, 1071),
        (32, 256, 5, 2, 2124),
        (32, 256, 10, 1, 4251),
    ],
    dtype=float,
)

COLLECTIVES = [
    ring_all_gather_s,
    ring_all_reduce_s,
    tree_all_reduce_s,
    all_to_all_s,
    broadcast_s,
    in_network_all_reduce_s,
]


def test_ring_bound_is_a_little_below_every_measured_wide_area_all_reduce():
    nodes, megabytes, delay_ms, gigabits, measured_ms = MEASURED.T
    predicted = ring_all_reduce_s(
        ranks=nodes,
        payload_bytes=megabytes * 2**20,
        bandwidth_bytes_per_s=gigabits * 1e9 / 8,
        latency_s=delay_ms * 1e-3,
        channels=2,
    )
    error = predicted / (measured_ms * 1e-3) - 1
    assert error.max() < -0.01
    assert error.min() > -0.043


def test_one_channel_gives_the_textbook_ring():
    seconds = ring_all_reduce_s(
        ranks=8, payload_bytes=8e9, bandwidth_bytes_per_s=1e9, latency_s=1e-3
    )
    assert seconds == pytest.approx(2 * 7 / 8 * 8 + 14 * 1e-3)


def test_gloo_on_four_sites_waits_for_every_hop():
    # 16 MiB at 1 Gbit/s and 10 ms round trip: 201 ms of transfer and six hops.
    seconds = ring_all_reduce_s(
        ranks=4, payload_bytes=2**24, bandwidth_bytes_per_s=1.25e8, latency_s=5e-3
    )
    assert seconds == pytest.approx(0.231, abs=1e-3)


def test_hierarchical_sends_only_a_share_across():
    seconds = hierarchical_all_reduce_s(
        sites=2,
        ranks_per_site=64,
        payload_bytes=64e9,
        inner_bandwidth_bytes_per_s=50e9,
        inner_latency_s=0.0,
        outer_bandwidth_bytes_per_s=1e9,
        outer_latency_s=5e-3,
    )
    assert seconds == pytest.approx(2 * 63 / 64 * 64 / 50 + 1.0 + 2 * 5e-3)


def test_a_switch_that_reduces_beats_a_ring_of_eight_but_not_of_two():
    ratio = [
        float(
            in_network_all_reduce_s(
                ranks=n, payload_bytes=1e9, bandwidth_bytes_per_s=1e9, latency_s=0.0
            )
            / ring_all_reduce_s(
                ranks=n, payload_bytes=1e9, bandwidth_bytes_per_s=1e9, latency_s=0.0
            )
        )
        for n in (2, 8)
    ]
    assert ratio == pytest.approx([1.5, 9 / 14])


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_one_rank_sends_nothing(collective):
    seconds = collective(ranks=1, payload_bytes=1e9, bandwidth_bytes_per_s=1e9, latency_s=1e-3)
    assert seconds == 0


@pytest.mark.parametrize("collective", COLLECTIVES)
@given(
    ranks=st.integers(2, 4096),
    payload=st.floats(1, 1e12),
    bandwidth=st.floats(1e6, 1e12),
    latency=st.floats(0, 1),
    more=st.floats(1, 10),
)
def test_slower_links_and_larger_payloads_never_help(
    collective, ranks, payload, bandwidth, latency, more
):
    base = collective(
        ranks=ranks, payload_bytes=payload, bandwidth_bytes_per_s=bandwidth, latency_s=latency
    )
    worse = [
        {"payload_bytes": payload * more},
        {"bandwidth_bytes_per_s": bandwidth / more},
        {"latency_s": latency * more},
    ]
    for change in worse:
        arguments = {
            "ranks": ranks,
            "payload_bytes": payload,
            "bandwidth_bytes_per_s": bandwidth,
            "latency_s": latency,
        } | change
        assert collective(**arguments) >= base * (1 - 1e-12)


def test_a_message_takes_its_bytes_and_one_hop():
    assert point_to_point_s(
        payload_bytes=2e9, bandwidth_bytes_per_s=1e9, latency_s=0.5
    ) == pytest.approx(2.5)


def test_quantised_vectors_carry_their_scales():
    bytes_ = quantised_bytes(elements=512, bits=4, scale_bytes=2, block_elements=256)
    assert bytes_ == 512 / 2 + 2 * 2
