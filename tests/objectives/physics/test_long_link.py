from __future__ import annotations

import numpy as np
import pytest

from objectives.physics.long_link import (
    LongLink,
    balance,
    in_flight_memory_bytes,
    share,
    utilisation,
)
from objectives.physics.network_constants import network_constants

CONSTANTS = network_constants()
CARD = 45e9


def link(**changes):
    values = {
        "capacity_bytes_per_s": 1.6e12,
        "latency_s": 49e-6,
        "loss": 1e-4,
        "buffer_bytes": 64e6,
        "gpus": 8192,
    }
    return LongLink(**values | changes)


def rates(knobs, cut, senders=8192.0):
    got = share(
        cut,
        knobs,
        CONSTANTS,
        senders=np.array([senders]),
        message_bytes=1e8,
        card_bytes_per_s=CARD,
    )
    return got.rate_bytes_per_s


def test_an_even_share_of_the_cut(knobs_of):
    assert rates(knobs_of(), link(loss=0.0)) == pytest.approx(1.6e12 / 8192 * 0.98 * 0.95)


def test_few_senders_are_bound_by_their_cards(knobs_of):
    assert rates(knobs_of(), link(loss=0.0), senders=16.0) == pytest.approx(CARD)


def test_a_lone_flow_with_go_back_n_suffers_over_distance_and_queue_pairs_help(knobs_of):
    far = link(latency_s=4.9e-3, capacity_bytes_per_s=1e15)
    one, sixteen = rates(
        knobs_of(transport="roce_go_back_n", connections=[1, 16], bytes_in_flight=1e12), far, 16.0
    )
    assert one < 0.1 * CARD < 0.5 * CARD < sixteen


def test_a_slow_share_has_little_in_flight_so_loss_costs_little(knobs_of):
    """At 12.8 Tb/s for 8,192 senders each connection has a packet or so on the way."""
    back, selective = rates(knobs_of(transport=["roce_go_back_n", "roce_selective_repeat"]), link())
    assert back == pytest.approx(selective, rel=0.01)


def test_windows_bound_a_connection_over_distance(knobs_of):
    far = link(latency_s=5e-3, capacity_bytes_per_s=1e15, loss=0.0)
    rate = rates(knobs_of(connections=4, bytes_in_flight=4e6), far, 16.0)
    assert rate == pytest.approx(4 * 4e6 / 10e-3)


def test_a_code_pays_parity_and_tcp_pays_for_loss(knobs_of):
    far = link(latency_s=5e-3, capacity_bytes_per_s=1e15, loss=1e-3)
    coded, tcp, selective = rates(
        knobs_of(transport=["erasure_coded", "tcp", "roce_selective_repeat"], bytes_in_flight=1e12),
        far,
        16.0,
    )
    assert coded == pytest.approx(0.8 * CARD)
    assert selective == pytest.approx(0.999 * CARD)
    assert tcp < 0.05 * CARD


def test_hashing_queue_pairs_beats_hashing_pairs_of_hosts(knobs_of):
    knobs = knobs_of(load_balancing=["ecmp", "flowlet", "e_ecmp", "spray"], connections=16)
    shares = balance(knobs, CONSTANTS, senders=np.array([512.0]), capacity=np.asarray(1.6e12))
    assert np.all(np.diff(shares) > 0)
    # Meta reports up to 40 % on all-reduce; here 16 against 256 flows a port.
    assert shares[2] / shares[0] == pytest.approx(1.4, abs=0.1)


def test_only_control_with_a_short_loop_fills_a_long_link(knobs_of):
    knobs = knobs_of(congestion_control=["dcqcn", "near_source", "receiver_driven", "none"])
    used = utilisation(link(latency_s=5e-3), knobs, CONSTANTS)
    assert used[0] == pytest.approx(0.75, abs=0.02)
    assert used[1] == pytest.approx(1.0, abs=0.01)
    assert used[2] == 1.0
    assert used[3] == CONSTANTS.pause_utilisation


def test_admission_by_the_receiver_costs_half_a_round_trip(knobs_of):
    knobs = knobs_of(congestion_control=["receiver_driven", "none"])
    got = share(
        link(loss=0.0),
        knobs,
        CONSTANTS,
        senders=np.array([8192.0]),
        message_bytes=1e8,
        card_bytes_per_s=CARD,
    )
    assert got.delay_s[0] - got.delay_s[1] == pytest.approx(49e-6)


def test_windows_cost_memory(knobs_of):
    knobs = knobs_of(connections=16, bytes_in_flight=4 * 2.0**20)
    assert in_flight_memory_bytes(knobs) == 128 * 2**20
