"""A big and a small design point, and configs that fit them."""

from __future__ import annotations

from typing import Any

import pytest

from autotune import DesignPoint
from objectives.model import read_hf_config
from objectives.scenario import design_point


def two_small_buildings() -> dict[str, Any]:
    """A cluster file's content: 16 GPUs in each of two buildings."""
    building = {"region": "home", "accelerator": "H100-SXM", "gpus": 16, "gpus_per_node": 8}
    link = {"bandwidth": "400 Gbit/s", "latency": "5 us"}
    return {
        "name": "two-small-buildings",
        "building": [{"name": name, **building} for name in ("east", "west")],
        "link": {
            "node": {"bandwidth": "450 GB/s", "latency": "1 us"},
            "zone": link,
            "building": link,
            "between_buildings": {"capacity": "1.6 Tbit/s", "distance": "10 km"},
        },
    }


@pytest.fixture(scope="session")
def llama_405b() -> DesignPoint:
    """16,384 GPUs in two buildings, 2,048 sequences of 8,192 tokens a step."""
    return design_point(
        "llama3-405b",
        model="llama3.1-405b",
        cluster="two-buildings-16k-h100",
        workload={"global_batch_tokens": 2048 * 8192, "sequence_length": 8192},
    )


@pytest.fixture(scope="session")
def llama_8b() -> DesignPoint:
    """32 GPUs in two buildings, 64 sequences of 4,096 tokens a step."""
    return design_point(
        "llama3-8b",
        model="llama3-8b",
        cluster=two_small_buildings(),
        workload={"global_batch_tokens": 64 * 4096, "sequence_length": 4096},
    )


@pytest.fixture(scope="session")
def deepseek_v3() -> DesignPoint:
    """2,048 GPUs in two buildings; without multi-token prediction, which TorchTitan lacks."""
    return design_point(
        "deepseek-v3",
        model={**read_hf_config("deepseek-v3"), "num_nextn_predict_layers": 0},
        cluster="two-buildings-2k-h800",
        workload={"global_batch_tokens": 15360 * 4096, "sequence_length": 4096},
    )


@pytest.fixture
def production() -> dict[str, Any]:
    """The published layout of Llama 3 405B, data parallelism across the buildings."""
    return {
        "tensor_parallel_degree": 8,
        "context_parallel_degree": 1,
        "pipeline_parallel_degree": 16,
        "data_parallel_shard_degree": 128,
        "data_parallel_replicate_degree": 1,
        "dimension_order": "tp-cp-pp-shard-replicate",
        "pipeline_parallel_schedule": "Interleaved1F1B",
        "microbatch_size": 1,
        "virtual_stages_per_rank": 8,
        "pipeline_parallel_first_stage_less_layers": 1,
        "pipeline_parallel_last_stage_less_layers": 1,
        "async_pipeline_p2p": True,
        "async_tensor_parallel": False,
        "fsdp_reshard_after_forward": "never",
        "gradient_dtype": "fp32",
        "overlap_gradient_reduction": True,
        "overlap_parameter_gather": True,
        "activation_checkpoint_mode": "none",
    }


@pytest.fixture
def small() -> dict[str, Any]:
    """32 ranks for `llama_8b`: TP 2, PP 2, and 4 shards in each of 2 replicas."""
    return {
        "tensor_parallel_degree": 2,
        "pipeline_parallel_degree": 2,
        "data_parallel_shard_degree": 4,
        "data_parallel_replicate_degree": 2,
        "dimension_order": "tp-cp-shard-replicate-pp",
        "pipeline_parallel_schedule": "1F1B",
        "microbatch_size": 2,
        "async_pipeline_p2p": True,
    }
