from __future__ import annotations

import numpy as np
import pytest

from objectives.physics import traffic
from objectives.physics.fabric import cut_bytes
from objectives.physics.network_constants import network_constants
from objectives.physics.tiers import NODE, SITE, ZONE, span

PARAMETERS = 405.85e9
TOKENS = 2048 * 8192
HIDDEN = 16384


def data_span(layout, sizes):
    return span(layout.group("cp", "shard", "replicate"), sizes)


def test_405b_with_data_parallelism_across_sends_1_2_tb_per_direction(layout_of, sizes, fabric_of):
    layout = layout_of()
    per_gpu = PARAMETERS / 128
    spread = data_span(layout, sizes)
    gradients = traffic.hierarchical_gather(spread, 4 * per_gpu)
    weights = traffic.hierarchical_gather(spread, 2 * per_gpu)
    fabric = fabric_of()
    total = cut_bytes(gradients, fabric) + cut_bytes(weights, fabric)
    assert total == pytest.approx(1.2e12, rel=0.02)


def test_flat_rings_send_twice_that_through_few_cards(layout_of, sizes, fabric_of):
    spread = data_span(layout_of(), sizes)
    ring = traffic.ring_gather(spread, 1.0)
    hierarchical = traffic.hierarchical_gather(spread, 1.0)
    fabric = fabric_of()
    ratio = cut_bytes(ring, fabric) / cut_bytes(hierarchical, fabric)
    assert ratio == pytest.approx(2 * 127 / 128)
    senders = ring.average_bytes[SITE] / ring.endpoint_bytes[SITE] * fabric.sizes.building
    assert senders == pytest.approx(128)  # one card for each of 8 x 16 groups
    assert hierarchical.average_bytes[SITE] == hierarchical.endpoint_bytes[SITE]


@pytest.mark.parametrize(("crossings", "terabytes"), [(1, 0.55), (15, 8.2)])
def test_405b_with_the_pipeline_across(layout_of, sizes, fabric_of, crossings, terabytes):
    """Per direction: once for one chunk a rank; 2 v - 1 times for v = 8."""
    layout = layout_of(dimension_order="tp-cp-shard-replicate-pp")
    spread = span(layout.group("pp"), sizes)
    message = 8192 * HIDDEN * 2 / 8  # one microbatch's activations, scattered over 8 GPUs
    over_cut = traffic.neighbour_sends(spread, message)[SITE]
    per_microbatch = cut_bytes(over_cut, fabric_of())
    assert per_microbatch * 16 == pytest.approx(TOKENS * HIDDEN * 2)
    assert per_microbatch * 16 * crossings == pytest.approx(terabytes * 1e12, rel=0.01)


def test_each_long_edge_of_a_ring_is_crossed_about_twice(layout_of, sizes):
    spread = data_span(layout_of(), sizes)
    reduce = traffic.all_reduce(traffic.ring_gather(spread, 1.0))
    assert reduce.hops[SITE] * 5e-3 == pytest.approx(20e-3)
    assert np.sum(reduce.hops, axis=0) == pytest.approx(2 * 127)


def test_a_ring_inside_one_tier_takes_n_minus_one_hops(layout_of, sizes):
    spread = span(layout_of().group("tp"), sizes)
    assert traffic.ring_gather(spread, 1.0).hops[NODE] == 7


def test_borders_count_each_pair_of_neighbours_once(layout_of, sizes):
    spread = data_span(layout_of(), sizes)
    assert [count.tolist() for count in traffic.borders(spread)] == [[0], [112], [14], [1], [0]]


def test_rings_in_a_node_use_all_its_cards(layout_of, sizes):
    layout = layout_of(
        tensor_parallel_degree=1, pipeline_parallel_degree=1, data_parallel_shard_degree=16384
    )
    ring = traffic.ring_gather(data_span(layout, sizes), 8.0)
    moved = 8.0 * 16383 / 16384
    assert ring.endpoint_bytes[NODE] == pytest.approx(moved)
    assert ring.endpoint_bytes[ZONE] == pytest.approx(moved / 8)


def test_hierarchical_bytes_sum_to_those_of_the_whole_group(layout_of, sizes):
    """Fan-outs f1..fk pass (f1-1)/f1 + (f2-1)/(f1 f2) + ... = (n-1)/n of the vector."""
    spread = data_span(layout_of(tensor_parallel_degree=1, pipeline_parallel_degree=128), sizes)
    demand = traffic.hierarchical_gather(spread, 1.0)
    n = spread.size
    assert np.sum(demand.endpoint_bytes, axis=0) == pytest.approx((n - 1) / n)


def test_an_all_to_all_sends_equal_parts_everywhere(layout_of, sizes):
    layout = layout_of(
        tensor_parallel_degree=1,
        pipeline_parallel_degree=16,
        data_parallel_shard_degree=1024,
        expert_parallel_degree=64,
        dimension_order="tp-cp-shard-replicate-pp",
    )
    spread = span(layout.expert_group(), sizes)
    exchange = traffic.all_to_all(spread, 64.0, network_payload_bytes=32.0)
    assert exchange.endpoint_bytes[NODE] == pytest.approx(7)
    assert exchange.endpoint_bytes[ZONE] == pytest.approx(56 / 64 * 32)
    assert exchange.endpoint_bytes[SITE] == 0


def test_switch_reduction_helps_eight_gpus_and_leaves_two_alone(layout_of, sizes):
    layout = layout_of(tensor_parallel_degree=[8, 2])
    spread = span(layout.group("tp"), sizes)
    constants = network_constants()
    ring = traffic.all_reduce(traffic.ring_gather(spread, 8.0))
    switched = traffic.in_switch_all_reduce(ring, spread, 8.0, constants)
    slower = constants.node_link_efficiency / constants.switch_reduction_efficiency
    assert switched.endpoint_bytes[NODE].tolist() == pytest.approx([9.0 * slower, 8.0])
    assert switched.hops[NODE].tolist() == [8.0, 2.0]


def test_choose_takes_whole_demands(layout_of, sizes):
    spread = data_span(layout_of(data_parallel_shard_degree=[128, 128]), sizes)
    ring, tiers = traffic.ring_gather(spread, 1.0), traffic.hierarchical_gather(spread, 1.0)
    chosen = traffic.choose(np.array([True, False]), ring, tiers)
    assert chosen.sequential.tolist() == [False, True]
    assert chosen.cut_bytes_per_gpu[0] == ring.cut_bytes_per_gpu[0]
    assert chosen.cut_bytes_per_gpu[1] == tiers.cut_bytes_per_gpu[1]
