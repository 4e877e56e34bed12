"""Many configs as the physics takes them: layouts, pipelines, slices and switches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from objectives.analytical.columns import Column
from objectives.analytical.setup import Setup
from objectives.physics import activations
from objectives.physics.arrays import BoolArray, FloatArray
from objectives.physics.compute import Device, make_device
from objectives.physics.layout import Layout, parse_layout
from objectives.physics.long_link import LongLinkKnobs, parse_long_link_knobs
from objectives.physics.network_constants import network_constants
from objectives.physics.schedules import Pipeline, schedule_kinds
from objectives.physics.stages import Stages, stages
from objectives.physics.work import Slice

MODES = {"none": activations.NONE, "selective": activations.SELECTIVE, "full": activations.FULL}


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """n valid configs of one scenario; arrays of shape (n,).

    Attributes:
        layout: Where the ranks are.
        pipeline: Schedules.
        stages: Layers of the representative ranks, arrays of shape (4, n).
        device: One GPU in each config's precision.
        part: What one GPU works on.
        network: How the configs use the long link.
        tensor: Tensor-parallel degree.
        context: Context-parallel degree.
        shards: Ranks that divide parameters outside the experts.
        expert_shards: Ranks that divide each expert's parameters further.
        replicas: Copies of the shards.
        mode: Recomputation.
        fp8: Where products run in FP8.
        reshard: Where gathered weights are freed after use.
        prefetch: Layers gathered ahead.
        reduce_often: Where gradients are reduced after every microbatch.
        gradient_bytes: Per accumulated element.
        sent_gradient_bytes: Per element on the network.
        overlap_reduce: Where reduction runs beside compute.
        overlap_gather: Where gathering runs beside compute.
        async_p2p: Where messages between stages run beside compute.
        async_tensor: Where tensor-parallel products are decomposed.
        scatter: Where tensor ranks each send their share of a stage's output.
        ring: Where data-parallel collectives are flat rings.
        tree: Where their all-reduces are flat trees.
        in_switch: Where the node's switch reduces.
        chunks: Pieces that a hierarchical collective is cut into.
        activation_offload: Share of activations on the host.
        optimizer_offload: Share of optimizer states on the host.
        local_steps: Steps between synchronisations of the replicas.
    """

    layout: Layout
    pipeline: Pipeline
    stages: Stages
    device: Device
    part: Slice
    network: LongLinkKnobs
    tensor: FloatArray
    context: FloatArray
    shards: FloatArray
    expert_shards: FloatArray
    replicas: FloatArray
    mode: Column
    fp8: BoolArray
    reshard: BoolArray
    prefetch: FloatArray
    reduce_often: BoolArray
    gradient_bytes: FloatArray
    sent_gradient_bytes: FloatArray
    overlap_reduce: BoolArray
    overlap_gather: BoolArray
    async_p2p: BoolArray
    async_tensor: BoolArray
    scatter: BoolArray
    ring: BoolArray
    tree: BoolArray
    in_switch: BoolArray
    chunks: FloatArray
    activation_offload: FloatArray
    optimizer_offload: FloatArray
    local_steps: FloatArray

    def __len__(self) -> int:
        return len(self.tensor)


def make_batch(setup: Setup, columns: Mapping[str, Column]) -> Batch:
    """Read n configs.

    Args:
        setup: The scenario.
        columns: Checked arrays of shape (n,), one for every knob.
    """
    layout = parse_layout(columns, global_batch_sequences=setup.sequences)
    degrees = {name: degree.astype(np.float64) for name, degree in layout.degrees.items()}
    expert = layout.expert.astype(np.float64)
    holders = degrees["cp"] * degrees["shard"]
    pipeline = Pipeline(
        kind=schedule_kinds(columns["pipeline_parallel_schedule"]),
        ranks=degrees["pp"],
        microbatches=layout.microbatches.astype(np.float64),
        chunks=layout.virtual_stages.astype(np.float64),
    )
    fp8 = columns["precision"] == "fp8"
    gradient_bytes = np.where(columns["gradient_dtype"] == "fp32", 4.0, 2.0)
    reduces = columns["gradient_reduction"] == "per_microbatch"
    return Batch(
        layout=layout,
        pipeline=pipeline,
        stages=stages(
            pipeline,
            dense_layers=setup.transformer.dense_layers,
            expert_layers=setup.transformer.expert_layers,
            first_less=_floats(columns, "pipeline_parallel_first_stage_less_layers"),
            last_less=_floats(columns, "pipeline_parallel_last_stage_less_layers"),
        ),
        device=_device(setup, fp8),
        part=Slice(
            tokens=layout.microbatch_size * setup.sequence_length / degrees["cp"],
            sequence_length=setup.sequence_length,
            tensor=degrees["tp"],
            expert=expert,
            imbalance=setup.calibration.software.expert_imbalance,
            gradient_bytes=gradient_bytes,
            quantised=fp8.astype(np.float64),
        ),
        network=parse_long_link_knobs(columns),
        tensor=degrees["tp"],
        context=degrees["cp"],
        shards=holders,
        expert_shards=holders / expert,
        replicas=degrees["replicate"],
        mode=_modes(columns["activation_checkpoint_mode"]),
        fp8=fp8,
        reshard=(columns["fsdp_reshard_after_forward"] == "always") & (holders > 1),
        prefetch=_floats(columns, "fsdp_prefetch_depth"),
        reduce_often=reduces,
        gradient_bytes=gradient_bytes,
        sent_gradient_bytes=_sent_bytes(setup, columns["gradient_compression"], gradient_bytes),
        overlap_reduce=_flags(columns, "overlap_gradient_reduction"),
        overlap_gather=_flags(columns, "overlap_parameter_gather"),
        async_p2p=_flags(columns, "async_pipeline_p2p"),
        async_tensor=_flags(columns, "async_tensor_parallel"),
        scatter=_flags(columns, "p2p_scatter_gather"),
        ring=columns["collective_algorithm"] == "ring",
        tree=columns["collective_algorithm"] == "tree",
        in_switch=_flags(columns, "in_network_reduction"),
        chunks=_floats(columns, "cross_site_chunks"),
        activation_offload=_floats(columns, "activation_offload_fraction"),
        optimizer_offload=_floats(columns, "optimizer_offload_fraction"),
        local_steps=_floats(columns, "local_steps"),
    )


def _device(setup: Setup, fp8: BoolArray) -> Device:
    peaks, bursts = setup.accelerator.peak_flops_per_s, setup.reach.matmul_burst
    bf16 = peaks["bf16"]
    # A row that asks for a missing precision has been refused; any figure will do for it.
    return make_device(
        matmul_peak_flops_per_s=np.where(fp8, peaks.get("fp8", bf16), bf16),
        matmul_burst=np.where(fp8, bursts.get("fp8", bursts["bf16"]), bursts["bf16"]),
        element_bytes=np.where(fp8, 1.0, 2.0),
        bf16_peak_flops_per_s=bf16,
        memory_bandwidth_bytes_per_s=setup.accelerator.memory_bandwidth_bytes_per_s,
        gpus=setup.cluster.gpus,
        accelerator=setup.reach,
        kernel=setup.calibration.kernel,
    )


def _sent_bytes(setup: Setup, compression: Column, plain: FloatArray) -> FloatArray:
    constants = network_constants()
    scale = constants.quantisation_scale_bytes / constants.quantisation_block_elements
    return np.select(
        [compression == "int8", compression == "int4"], [1.0 + scale, 0.5 + scale], default=plain
    )


def _floats(columns: Mapping[str, Column], name: str) -> FloatArray:
    return columns[name].astype(np.float64)


def _flags(columns: Mapping[str, Column], name: str) -> BoolArray:
    return columns[name].astype(np.bool_)


def _modes(names: Column) -> Column:
    return np.select([names == name for name in MODES], list(MODES.values()))
