from __future__ import annotations

import dataclasses

import pytest

from autotune import InvalidInput
from objectives.baselines import deepseek_v3_production, llama3_production
from objectives.cluster import read_cluster
from objectives.knobs import search_space
from objectives.scenario import Scenario, Workload, design_point, scenario


@pytest.fixture(scope="module")
def llama() -> Scenario:
    return scenario(
        design_point(
            "llama",
            model="llama3.1-405b",
            cluster="two-buildings-16k-h100",
            workload=Workload(global_batch_tokens=2048 * 8192, sequence_length=8192),
        )
    )


@pytest.fixture(scope="module")
def deepseek() -> Scenario:
    return scenario(
        design_point(
            "deepseek",
            model="deepseek-v3",
            cluster="two-buildings-2k-h800",
            workload=Workload(global_batch_tokens=15360 * 4096, sequence_length=4096),
        )
    )


def test_llama_is_the_published_layout_and_valid(llama):
    config = llama3_production(llama)
    space = search_space(llama)
    assert space.explain(config) == []
    degrees = [config[name] for name in space.names if name.endswith("_degree")]
    assert degrees == [8, 1, 16, 128, 1, 1]
    assert config["dimension_order"] == "tp-cp-pp-shard-replicate"
    assert 2048 // 128 // config["microbatch_size"] == 16
    assert (126 + 1 + 1) / (16 * config["virtual_stages_per_rank"]) == 1


def test_deepseek_is_the_published_layout_and_valid(deepseek):
    config = deepseek_v3_production(deepseek)
    assert search_space(deepseek, precision="fp8").explain(config) == []
    assert config["pipeline_parallel_degree"] == 16
    assert config["expert_parallel_degree"] == 64
    assert config["tensor_parallel_degree"] == 1
    data = config["data_parallel_shard_degree"] * config["data_parallel_replicate_degree"]
    assert data == 128


def test_the_baselines_keep_their_layout_on_other_clusters():
    cluster = read_cluster("two-buildings-16k-h100")
    for building in cluster["building"]:
        building["gpus"] = 4096
    half = scenario(
        design_point(
            "half",
            model="llama3.1-405b",
            cluster=cluster,
            workload=Workload(global_batch_tokens=2048 * 8192, sequence_length=8192),
        )
    )
    config = llama3_production(half)
    assert config["data_parallel_shard_degree"] == 64
    assert search_space(half).contains(config)


def test_a_batch_that_does_not_divide_is_refused(llama):
    workload = Workload(global_batch_tokens=100 * 8192, sequence_length=8192)
    with pytest.raises(InvalidInput, match="got 16,384 GPUs and 100 sequences"):
        llama3_production(dataclasses.replace(llama, workload=workload))


def test_too_few_gpus_for_the_experts_are_refused(deepseek):
    cluster = read_cluster("two-buildings-2k-h800")
    for building in cluster["building"]:
        building["gpus"] = 256
        building["gpus_per_zone"] = 256
    small = scenario(
        design_point(
            "small",
            model="deepseek-v3",
            cluster=cluster,
            workload=Workload(global_batch_tokens=15360 * 4096, sequence_length=4096),
        )
    )
    with pytest.raises(InvalidInput, match="multiple of the 64 expert ranks, got 32"):
        deepseek_v3_production(small)
