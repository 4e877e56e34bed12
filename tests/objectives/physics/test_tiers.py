from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from objectives.physics.layout import Group
from objectives.physics.tiers import BUILDING, TierSizes, span


def counts(spread):
    return [fanout.tolist() for fanout in spread.fanouts]


def test_llama_layout_over_two_buildings(layout_of, sizes):
    layout = layout_of()
    assert counts(span(layout.group("tp"), sizes)) == [[8], [1], [1], [1], [1]]
    assert counts(span(layout.group("pp"), sizes)) == [[1], [16], [1], [1], [1]]
    data = span(layout.group("cp", "shard", "replicate"), sizes)
    assert counts(data) == [[1], [8], [8], [2], [1]]
    assert data.crosses_buildings.tolist() == [True]
    assert data.ranks_within(BUILDING).tolist() == [64]


def test_the_outermost_dimension_crosses(layout_of, sizes):
    layout = layout_of(
        dimension_order=["tp-cp-shard-replicate-pp", "tp-pp-shard-replicate-cp"],
        context_parallel_degree=2,
        data_parallel_shard_degree=64,
    )
    crosses = {
        name: span(layout.group(name), sizes).crosses_buildings.tolist()
        for name in ("tp", "cp", "pp", "shard")
    }
    assert crosses == {
        "tp": [False, False],
        "cp": [False, True],
        "pp": [True, False],
        "shard": [False, False],
    }


def test_four_gpus_a_node_split_a_tensor_group_of_eight(layout_of):
    small = TierSizes.nested(node=4, zone=64, building=8192, region=16384)
    assert counts(span(layout_of().group("tp"), small)) == [[4], [2], [1], [1], [1]]


def test_blocks_never_straddle_a_boundary():
    sizes = TierSizes.nested(node=8, zone=3072, building=8192, region=16384)
    assert sizes == TierSizes(node=8, zone=1024, building=8192, region=16384)


def test_a_group_over_an_uneven_boundary_counts_strangers_not_neighbours():
    sizes = TierSizes(node=8, zone=24, building=48, region=48)
    group = Group(sizes=(np.array([3, 4]),), strides=(np.array([8, 8]),))
    spread = span(group, sizes)
    assert spread.nodes.tolist() == [3, 1]
    assert spread.aligned.tolist() == [True, False]


powers = st.integers(0, 6).map(lambda exponent: 2**exponent)


@given(
    degrees=st.lists(st.integers(1, 12), min_size=1, max_size=5),
    node=powers,
    zone=powers,
    building=powers,
)
def test_the_tiers_multiply_to_the_group(degrees, node, zone, building):
    region = node * zone * building
    sizes = TierSizes.nested(node=node, zone=node * zone, building=region, region=2 * region)
    stride = 1
    for degree in degrees:
        group = Group(sizes=(np.array([degree]),), strides=(np.array([stride]),))
        spread = span(group, sizes)
        assert spread.size.tolist() == [degree]
        assert min(fanout.min() for fanout in spread.fanouts) >= 1
        stride *= degree
