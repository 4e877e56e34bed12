from __future__ import annotations

import numpy as np
import pytest

from objectives.physics.layout import split_order


def test_strides_follow_the_order_from_inside_out(layout_of):
    layout = layout_of(
        dimension_order=["tp-cp-pp-shard-replicate", "tp-cp-shard-replicate-pp"],
        data_parallel_shard_degree=64,
        data_parallel_replicate_degree=2,
    )
    assert layout.strides["tp"].tolist() == [1, 1]
    assert layout.strides["pp"].tolist() == [8, 1024]
    assert layout.strides["shard"].tolist() == [128, 8]
    assert layout.strides["replicate"].tolist() == [8192, 512]
    assert layout.world.tolist() == [16384, 16384]
    assert layout.data.tolist() == [128, 128]


def test_microbatches_per_pipeline(layout_of):
    assert layout_of(microbatch_size=[1, 2]).microbatches.tolist() == [16, 8]


def test_experts_are_shared_by_the_innermost_ranks_that_hold_shards(layout_of):
    layout = layout_of(
        tensor_parallel_degree=1,
        context_parallel_degree=4,
        data_parallel_shard_degree=256,
        expert_parallel_degree=[2, 8],
    )
    experts, others = layout.expert_group(), layout.expert_shard_group()
    assert [size.tolist() for size in experts.sizes] == [[2, 4], [1, 2]]
    assert [stride.tolist() for stride in experts.strides] == [[1, 1], [64, 64]]
    assert [size.tolist() for size in others.sizes] == [[2, 1], [256, 128]]
    assert [stride.tolist() for stride in others.strides] == [[2, 4], [64, 128]]
    assert layout.experts_divide.tolist() == [True, True]


def test_experts_take_shards_first_where_context_lies_further_out(layout_of):
    layout = layout_of(
        tensor_parallel_degree=1,
        context_parallel_degree=4,
        data_parallel_shard_degree=256,
        expert_parallel_degree=512,
        dimension_order="tp-pp-shard-replicate-cp",
    )
    assert [size.tolist() for size in layout.expert_group().sizes] == [[256], [2]]


def test_expert_and_remaining_ranks_make_up_the_shard_group(layout_of):
    layout = layout_of(context_parallel_degree=2, expert_parallel_degree=[1, 2, 4, 256])
    product = layout.expert_group().size * layout.expert_shard_group().size
    assert np.array_equal(product, layout.group("cp", "shard").size)


def test_an_order_names_each_dimension_once():
    with pytest.raises(ValueError, match="got 'tp-pp-shard'"):
        split_order("tp-pp-shard")
