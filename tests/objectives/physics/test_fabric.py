from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from objectives.physics import traffic
from objectives.physics.fabric import duration
from objectives.physics.tiers import SITE, ZONE, span

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
