"""The values of every knob, for one scenario."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution

from objectives.scenario import Scenario

MIB = 2**20

NEGATIVE_CONTROLS = ("tp-pp-shard-replicate-cp", "cp-pp-shard-replicate-tp")
"""Orders that put context or tensor parallelism across: nobody should want them."""

DIMENSION_ORDERS = (
    "tp-cp-pp-shard-replicate",
    "tp-cp-shard-pp-replicate",
    "tp-cp-pp-replicate-shard",
    "tp-cp-shard-replicate-pp",
    *NEGATIVE_CONTROLS,
)
"""Inner to outer."""

SCHEDULES_OF_ONE_STAGE = ("GPipe", "1F1B", "ZBH1", "ZB2P")
SCHEDULES_OF_TWO_STAGES = ("ZBVZeroBubble", "VHalf", "VMin", "DualPipeV")
SCHEDULES_OF_MORE_STAGES = ("Interleaved1F1B", "LoopedBFS", "InterleavedZeroBubble")
SCHEDULES = (
    "none",
    *SCHEDULES_OF_ONE_STAGE,
    *SCHEDULES_OF_MORE_STAGES,
    *SCHEDULES_OF_TWO_STAGES,
)

FRACTIONS = (0.0, 0.25, 0.5, 0.75, 1.0)


def domains(
    scenario: Scenario, *, same_mathematics: bool, precision: str, negative_controls: bool
) -> dict[str, BaseDistribution]:
    """The distribution of every knob, in the order of a config.

    Args:
        scenario: The model, cluster and workload.
        same_mathematics: Whether number formats are fixed.
        precision: Of matrix products where they are.
        negative_controls: Whether `NEGATIVE_CONTROLS` are among the orders.
    """
    values = {
        **_layout(scenario, negative_controls=negative_controls),
        **_pipeline(scenario),
        **_sharding(),
        **_memory(scenario),
        **_mathematics(scenario, same_mathematics=same_mathematics, precision=precision),
        **_collectives(scenario),
    }
    return {knob: CategoricalDistribution(tuple(choices)) for knob, choices in values.items()}


def divisors(number: int, limit: int | None = None) -> list[int]:
    """Divisors in rising order, up to a limit.

    Args:
        number: At least 1.
        limit: None for all.
    """
    most = number if limit is None else min(limit, number)
    return [d for d in range(1, most + 1) if number % d == 0]


def _layout(scenario: Scenario, *, negative_controls: bool) -> dict[str, Sequence[Any]]:
    world = scenario.cluster.gpus
    model = scenario.model
    per_node = min(building.gpus_per_node for building in scenario.cluster.buildings)
    sequences = scenario.workload.global_batch_sequences
    experts = model.moe.num_experts if model.moe else 1
    return {
        "tensor_parallel_degree": divisors(world, per_node),
        "context_parallel_degree": divisors(world, 16),
        "pipeline_parallel_degree": divisors(world, model.num_layers + 4),
        "data_parallel_shard_degree": divisors(world, sequences),
        "data_parallel_replicate_degree": divisors(world, sequences),
        "expert_parallel_degree": [d for d in divisors(experts) if world % d == 0],
        "dimension_order": [
            order
            for order in DIMENSION_ORDERS
            if negative_controls or order not in NEGATIVE_CONTROLS
        ],
    }


def _pipeline(scenario: Scenario) -> dict[str, Sequence[Any]]:
    return {
        "pipeline_parallel_schedule": SCHEDULES,
        "microbatch_size": [1, 2, 4, 8],
        "virtual_stages_per_rank": _chunks(scenario),
        "pipeline_parallel_first_stage_less_layers": [0, 1, 2],
        "pipeline_parallel_last_stage_less_layers": [0, 1, 2],
        "async_pipeline_p2p": [False, True],
        "p2p_scatter_gather": [False, True],
    }


def _chunks(scenario: Scenario) -> list[int]:
    """Chunks per rank that divide the layers of some pipeline long enough to interleave."""
    layers = scenario.model.num_layers
    ranks = divisors(scenario.cluster.gpus, layers + 4)
    long = [p for p in ranks if p >= 4] or ranks
    slots = range(layers, layers + 5)
    fitting = [v for v in range(2, 17) if any(n % (p * v) == 0 for p in long for n in slots)]
    return sorted({1, 2, *fitting})


def _sharding() -> dict[str, Sequence[Any]]:
    return {
        "fsdp_reshard_after_forward": ["never", "always"],
        "fsdp_prefetch_depth": [1, 2, 3],
        "gradient_reduction": ["per_step", "per_microbatch"],
        "overlap_gradient_reduction": [False, True],
        "overlap_parameter_gather": [False, True],
        "async_tensor_parallel": [False, True],
    }


def _memory(scenario: Scenario) -> dict[str, Sequence[Any]]:
    fractions = FRACTIONS if scenario.cluster.host else FRACTIONS[:1]
    return {
        "activation_checkpoint_mode": ["none", "selective", "full"],
        "activation_offload_fraction": fractions,
        "optimizer_offload_fraction": fractions,
    }


def _mathematics(
    scenario: Scenario, *, same_mathematics: bool, precision: str
) -> dict[str, Sequence[Any]]:
    if same_mathematics:
        return {"precision": [precision], "gradient_dtype": ["fp32"]}
    formats = [
        name
        for name in ("bf16", "fp8")
        if all(name in b.accelerator.peak_flops_per_s for b in scenario.cluster.buildings)
    ]
    return {"precision": formats, "gradient_dtype": ["fp32", "bf16"]}


def _collectives(scenario: Scenario) -> dict[str, Sequence[Any]]:
    anywhere: dict[str, Sequence[Any]] = {
        "collective_algorithm": ["ring", "tree", "hierarchical"],
        "in_network_reduction": [False, True],
    }
    across: dict[str, Sequence[Any]] = {
        "cross_site_chunks": [1, 2, 4, 8, 16],
        "transport": ["roce_go_back_n", "roce_selective_repeat", "erasure_coded", "tcp"],
        "connections_per_pair": [1, 2, 4, 8, 16, 32],
        "load_balancing": ["ecmp", "e_ecmp", "flowlet", "spray"],
        "congestion_control": [
            "none",
            "dcqcn",
            "receiver_driven",
            "near_source",
            "distance_aware",
        ],
        "bytes_in_flight": [4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB],
    }
    if len(scenario.cluster.buildings) == 1:
        across = {knob: choices[:1] for knob, choices in across.items()}
    return anywhere | across
