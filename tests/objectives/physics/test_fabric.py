from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from objectives.physics import traffic
from objectives.physics.fabric import duration, make_fabric, neighbour_seconds
from objectives.physics.layout import Group
from objectives.physics.tiers import BUILDING, SITE, ZONE, TierSizes, span

GRADIENTS = 4 * 405.85e9 / 128


@pytest.fixture(scope="session")
def spread(layout_of, sizes):
    return span(layout_of().group("cp", "shard", "replicate"), sizes)


ALGORITHMS = {
    "hierarchical": lambda s, b: traffic.hierarchical_gather(s, b),
    "ring": lambda s, b: traffic.ring_gather(s, b),
    "tree": lambda s, b: traffic.tree_all_reduce(s, b),
    "all_to_all": lambda s, b: traffic.all_to_all(s, b),
    "message": lambda s, b: traffic.neighbour_sends(s, b)[SITE],
}


def test_a_cut_is_a_shared_aggregate(spread, fabric_of):
    """405 B in FP32 over 12.8 Tb/s: half of 1.6 TB, at the rates that spraying leaves."""
    demand = traffic.hierarchical_gather(spread, GRADIENTS)
    result = duration(demand, fabric_of())
    assert result.transfer_s[SITE] == pytest.approx(
        0.5 * GRADIENTS * 128 / 1.6e12 / 0.931, rel=1e-3
    )


def test_a_fat_cut_leaves_the_cards_as_the_limit(spread, fabric_of):
    demand = traffic.hierarchical_gather(spread, GRADIENTS)
    fabric = fabric_of(cut={"capacity_bytes_per_s": 1e18, "loss": 0.0, "latency_s": 1e-9})
    card = fabric.links[ZONE].bandwidth_bytes_per_s
    assert duration(demand, fabric).transfer_s[SITE] == pytest.approx(GRADIENTS / 128 / card)


def test_chunks_hide_all_tiers_behind_the_slowest(spread, fabric_of):
    demand = traffic.hierarchical_gather(spread, GRADIENTS)
    fabric = fabric_of()
    whole, parts = duration(demand, fabric), duration(demand, fabric, chunks=16)
    assert parts.total_s < whole.total_s
    assert parts.total_s > whole.transfer_s[SITE]


def test_many_chunks_of_a_small_vector_only_cost_hops(spread, fabric_of):
    demand = traffic.hierarchical_gather(spread, 1e4)
    fabric = fabric_of()
    assert duration(demand, fabric, chunks=16).total_s > duration(demand, fabric).total_s


def test_phases_outside_the_node_share_the_network_card(layout_of, sizes, fabric_of):
    """However many chunks: a card cannot send for two tiers at once."""
    spread = span(layout_of().group("cp", "shard", "replicate"), sizes)
    fabric = fabric_of(cut={"capacity_bytes_per_s": 1e18}, building={"oversubscription": 1.0})
    demand = traffic.hierarchical_gather(spread, GRADIENTS)
    card = fabric.links[ZONE].bandwidth_bytes_per_s
    outside = sum(demand.endpoint_bytes[ZONE:])
    assert duration(demand, fabric, chunks=1000).total_s >= outside / card


@pytest.mark.parametrize("name", ALGORITHMS)
@given(
    payload=st.floats(1e3, 1e12),
    more=st.floats(1, 100),
    capacity=st.floats(1e9, 1e14),
    latency=st.floats(1e-9, 1e-1),
    loss=st.floats(0, 1e-2),
    chunks=st.sampled_from([1, 4, 16]),
    transport=st.sampled_from(["roce_go_back_n", "roce_selective_repeat", "erasure_coded", "tcp"]),
    control=st.sampled_from(["none", "dcqcn", "receiver_driven", "near_source", "distance_aware"]),
    balancing=st.sampled_from(["ecmp", "e_ecmp", "flowlet", "spray"]),
)
def test_worse_links_never_shorten_a_collective(
    name,
    payload,
    more,
    capacity,
    latency,
    loss,
    chunks,
    transport,
    control,
    balancing,
    layout_of,
    sizes,
    fabric_of,
    knobs_of,
):
    order = "tp-cp-shard-replicate-pp" if name == "message" else "tp-cp-pp-shard-replicate"
    layout = layout_of(dimension_order=order)
    group = layout.group("pp") if name == "message" else layout.group("shard", "replicate")
    spread = span(group, sizes)
    knobs = knobs_of(transport=transport, congestion_control=control, load_balancing=balancing)
    cut = {"capacity_bytes_per_s": capacity, "latency_s": latency, "loss": loss}

    def seconds(scale=1.0, **changes):
        demand = ALGORITHMS[name](spread, payload * scale)
        return float(
            duration(demand, fabric_of(knobs=knobs, cut=cut | changes), chunks=chunks).total_s[0]
        )

    base = seconds()
    assert np.isfinite(base)
    slack = 1 - 1e-9
    assert seconds(scale=more) >= base * slack
    assert seconds(latency_s=latency * more) >= base * slack
    assert seconds(loss=min(loss * more, 0.5)) >= base * slack
    # The closed form of hashing has a seam of 3 %.
    assert seconds(capacity_bytes_per_s=capacity / more) >= base * 0.97


# Bus bandwidth in GB/s of collectives on 8 H200 (one node) and 32 B200 (four nodes).
# Source: stas00/ml-engineering, network benchmarks.
MEASURED = [
    ("h200", "gather", 8, 16 * 2**30, 361.4),
    ("h200", "switch", 8, 32 * 2**20, 275.8),
    ("h200", "switch", 8, 64 * 2**20, 346.5),
    ("h200", "switch", 8, 512 * 2**20, 450.3),
    ("h200", "switch", 8, 16 * 2**30, 480.0),
    ("b200", "ring", 8, 16 * 2**20, 255.0),
    ("b200", "ring", 8, 128 * 2**20, 568.4),
    ("b200", "ring", 8, 2**30, 723.3),
    ("b200", "ring", 32, 64 * 2**20, 156.7),
    ("b200", "ring", 32, 256 * 2**20, 229.1),
    ("b200", "ring", 32, 8 * 2**30, 380.4),
]


@pytest.mark.parametrize(("gpu", "kind", "ranks", "payload", "measured"), MEASURED)
def test_bus_bandwidth_is_within_a_quarter_of_measured(
    gpu, kind, ranks, payload, measured, knobs_of
):
    fabric = make_fabric(
        sizes=TierSizes.nested(node=8, zone=ranks, building=ranks, region=ranks),
        node=SimpleNamespace(
            bandwidth_bytes_per_s={"h200": 450e9, "b200": 900e9}[gpu],
            latency_s=1e-6,
            oversubscription=1.0,
        ),
        zone=SimpleNamespace(bandwidth_bytes_per_s=50e9, latency_s=5e-6, oversubscription=1.0),
        building=SimpleNamespace(bandwidth_bytes_per_s=50e9, latency_s=5e-6, oversubscription=1.0),
        between_buildings=None,
        between_regions=None,
        knobs=knobs_of(),
    )
    group = Group(sizes=(np.array([ranks]),), strides=(np.array([1]),))
    spread = span(group, fabric.sizes)
    demand = traffic.ring_gather(spread, payload)
    if kind != "gather":
        demand = traffic.all_reduce(demand)
    if kind == "switch":
        demand = traffic.in_switch_all_reduce(demand, spread, payload, fabric.constants)
    times = 1 if kind == "gather" else 2
    busbw = times * (ranks - 1) / ranks * payload / duration(demand, fabric).total_s / 1e9
    assert busbw == pytest.approx(measured, rel=0.27)


def test_a_group_never_crosses_a_missing_cut_for_nothing(fabric_of, sizes, layout_of):
    spread = span(layout_of().group("shard"), sizes)
    alone = dataclasses.replace(fabric_of(), site=None)
    demand = traffic.hierarchical_gather(spread, GRADIENTS)
    assert duration(demand, alone).transfer_s[SITE] > 0


def test_messages_by_the_border_they_cross(layout_of, sizes, fabric_of):
    layout = layout_of(dimension_order="tp-cp-shard-replicate-pp")
    pipeline = span(layout.group("pp"), sizes)
    inside, across = (
        neighbour_seconds(pipeline, 33.5e6, fabric_of())[tier] for tier in (ZONE, SITE)
    )
    assert inside == 0  # every stage has a zone of its own
    assert neighbour_seconds(pipeline, 33.5e6, fabric_of())[BUILDING] > 0
    # 1,024 GPUs of the middle stage share the cut.
    assert across == pytest.approx(33.5e6 * 1024 / 1.6e12 / 0.931, rel=0.02)
