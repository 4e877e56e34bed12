"""Published production configurations, laid out over a scenario's GPUs.

What the sources do not say is chosen in the baseline's favour, unless it says otherwise, and
named here, since a weak baseline makes every speed-up worthless.
"""

from __future__ import annotations

from typing import Any

from autotune import InvalidInput
from objectives.knobs.domains import MIB
from objectives.scenario import Scenario


def llama3_production(scenario: Scenario) -> dict[str, Any]:
    """Llama 3 405B as Meta trained it: TP 8, CP 1, PP 16, DP 128 on 16,384 GPUs.

    Published: the degrees and their order TP, CP, PP, DP from inside out, so that data
    parallelism crosses between buildings; batch of 16 M tokens with 16 microbatches of one
    sequence; an interleaved schedule with one layer per chunk (8 chunks a rank) and one layer
    fewer on the first and last stage; asynchronous point-to-point sends; optimizer states and
    gradients sharded, parameters not resharded after forward; FP32 gradient accumulation and
    reduce-scatter; no activation checkpointing; RoCE with 16 flows per pair of GPUs, E-ECMP on
    them, no DCQCN (Llama 3 report, sections 3.3.1 to 3.3.2). Admission driven by receivers:
    the same clusters in the second reference, section 6.

    Chosen in its favour, not published: gradient reduction and parameter gathering overlap
    with compute; collectives go hierarchically over the buildings in 16 chunks; point-to-point
    sends are scattered over the tensor group, as sequence parallelism leaves the activations;
    NVLink switches reduce and 4 MiB are in flight per connection, both NCCL's defaults.

    Args:
        scenario: Data parallelism takes the GPUs that 8 x 16 leave.

    Raises:
        InvalidInput: If the GPUs or the batch do not divide.

    References:
        "The Llama 3 Herd of Models", arXiv 2407.21783.
        Gangidi et al., "RDMA over Ethernet for Distributed AI Training at Meta Scale", SIGCOMM
        2024.
    """
    return {
        **_degrees(scenario, "llama3-production", tensor=8, pipeline=16),
        "expert_parallel_degree": 1,
        "dimension_order": "tp-cp-pp-shard-replicate",
        "pipeline_parallel_schedule": "Interleaved1F1B",
        "microbatch_size": 1,
        "virtual_stages_per_rank": 8,
        "pipeline_parallel_first_stage_less_layers": 1,
        "pipeline_parallel_last_stage_less_layers": 1,
        "async_pipeline_p2p": True,
        "p2p_scatter_gather": True,
        "async_tensor_parallel": False,
        "activation_checkpoint_mode": "none",
        "precision": "bf16",
        **_sharded_once_per_step(),
        **_roce(),
    }


def deepseek_v3_production(scenario: Scenario) -> dict[str, Any]:
    """DeepSeek-V3 as DeepSeek trained it: PP 16, EP 64, ZeRO-1 data parallelism, no TP.

    Published: 16-way pipeline parallelism, 64-way expert parallelism over 8 nodes, ZeRO-1, the
    DualPipe schedule, no tensor parallelism, FP8 matrix products, recomputation of norms and
    MLA up-projections (here: selective), 2,048 H800 in one cluster, hence 128-way data
    parallelism (DeepSeek-V3 report, sections 3.2 to 3.3).

    Chosen in its favour, not published: over two buildings the pipeline crosses, between its
    middle stages, since gradients of 671 B parameters would need twenty times the bandwidth;
    microbatches of one sequence; DualPipe in its V form, with the same bubble and one copy of
    the parameters less; one layer fewer on the first and two on the last stage, which has the
    multi-token-prediction module and the head; network as Meta's.

    Args:
        scenario: Data parallelism takes the GPUs that 16 stages leave.

    Raises:
        InvalidInput: If the GPUs or the batch do not divide.

    References:
        "DeepSeek-V3 Technical Report", arXiv 2412.19437.
    """
    degrees = _degrees(scenario, "deepseek-v3-production", tensor=1, pipeline=16)
    data = degrees["data_parallel_shard_degree"]
    if data % 64:
        raise InvalidInput(
            "baseline deepseek-v3-production",
            f"data parallelism must be a multiple of the 64 expert ranks, got {data}; give the "
            "cluster a multiple of 1,024 GPUs",
        )
    return {
        **degrees,
        "expert_parallel_degree": 64,
        "dimension_order": "tp-cp-shard-pp-replicate",
        "pipeline_parallel_schedule": "DualPipeV",
        "microbatch_size": 1,
        "virtual_stages_per_rank": 2,
        "pipeline_parallel_first_stage_less_layers": 1,
        "pipeline_parallel_last_stage_less_layers": 2,
        "async_pipeline_p2p": True,
        "p2p_scatter_gather": False,
        "async_tensor_parallel": False,
        "activation_checkpoint_mode": "selective",
        "precision": "fp8",
        **_sharded_once_per_step(),
        **_roce(),
    }


def _degrees(scenario: Scenario, name: str, *, tensor: int, pipeline: int) -> dict[str, Any]:
    """Data parallelism over what tensor and pipeline parallelism leave."""
    world = scenario.cluster.gpus
    sequences = scenario.workload.global_batch_sequences
    data = world // (tensor * pipeline)
    if world % (tensor * pipeline) or sequences % max(data, 1) or not data:
        raise InvalidInput(
            f"baseline {name}",
            f"the GPUs must divide by {tensor} x {pipeline} and the sequences per step by the "
            f"quotient, got {world:,} GPUs and {sequences:,} sequences; change the cluster or "
            "the batch, or name another baseline",
        )
    return {
        "tensor_parallel_degree": tensor,
        "context_parallel_degree": 1,
        "pipeline_parallel_degree": pipeline,
        "data_parallel_shard_degree": data,
        "data_parallel_replicate_degree": 1,
    }


def _sharded_once_per_step() -> dict[str, Any]:
    return {
        "fsdp_reshard_after_forward": "never",
        "fsdp_prefetch_depth": 1,
        "gradient_reduction": "per_step",
        "gradient_dtype": "fp32",
        "overlap_gradient_reduction": True,
        "overlap_parameter_gather": True,
        "activation_offload_fraction": 0.0,
        "optimizer_offload_fraction": 0.0,
    }


def _roce() -> dict[str, Any]:
    return {
        "collective_algorithm": "hierarchical",
        "in_network_reduction": True,
        "cross_site_chunks": 16,
        "transport": "roce_go_back_n",
        "connections_per_pair": 16,
        "load_balancing": "e_ecmp",
        "congestion_control": "receiver_driven",
        "bytes_in_flight": 4 * MIB,
    }
