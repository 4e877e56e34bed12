"""Peak device memory of a config, over the ranks of its pipeline."""

from __future__ import annotations

import numpy as np

from objectives.analytical.batch import Batch
from objectives.analytical.collectives import Traffic, cut_tier
from objectives.analytical.parts import Parts, activation_shape, rank_parameters
from objectives.analytical.setup import Setup
from objectives.analytical.terms import Load, total
from objectives.physics import memory
from objectives.physics.activations import working_bytes
from objectives.physics.arrays import FloatArray
from objectives.physics.long_link import in_flight_memory_bytes
from objectives.physics.memory import Sharding
from objectives.physics.schedules import BREADTH_FIRST, GPIPE, in_flight


def memory_parts(
    setup: Setup, batch: Batch, parts: Parts, planned: Traffic, ranks: Load
) -> dict[str, FloatArray]:
    """Bytes by use on each representative rank, arrays of shape (4, n).

    Freed before their turn: a stage's input and output, the inputs of normalisations (see
    `objectives.physics.activations.Keeping`), logits after their backward pass.

    Args:
        setup: The scenario.
        batch: The configs.
        parts: Activations that a layer keeps.
        planned: Parameters of a layer.
        ranks: What the representative ranks hold, arrays of shape (4, n).
    """
    outside, inside = rank_parameters(setup, batch, planned, ranks)
    common = _sharding(batch, batch.shards)
    experts = _sharding(batch, batch.expert_shards)
    held = in_flight(batch.pipeline, batch.stages.rank) / batch.pipeline.chunks
    kept = ranks.weigh(parts.kept)
    shape = np.zeros_like(outside)
    return {
        "weights": memory.weight_bytes(common, outside) + memory.weight_bytes(experts, inside),
        "gradients": memory.gradient_bytes(common, outside)
        + memory.gradient_bytes(experts, inside),
        "optimizer": memory.optimizer_bytes(common, outside)
        + memory.optimizer_bytes(experts, inside)
        + (batch.local_steps > 1)
        * (memory.outer_bytes(common, outside) + memory.outer_bytes(experts, inside)),
        "activations": held * kept * (1 - batch.activation_offload),
        "logits": ranks.head * _logits(setup, batch),
        "buffers": shape + _buffers(setup, batch, planned, parts, common, experts),
        "fixed": shape + setup.calibration.software.fixed_memory_bytes,
    }


def peak_bytes(by_use: dict[str, FloatArray]) -> FloatArray:
    """Of the fullest rank, shape (n,).

    Args:
        by_use: Arrays of shape (4, n).
    """
    return np.asarray(np.max(total(by_use.values()), axis=0))


def host_bytes(
    setup: Setup, batch: Batch, parts: Parts, planned: Traffic, ranks: Load
) -> FloatArray:
    """Host memory that the fullest rank's offloading takes, shape (n,)."""
    outside, inside = rank_parameters(setup, batch, planned, ranks)
    held = in_flight(batch.pipeline, batch.stages.rank) / batch.pipeline.chunks
    kept = ranks.weigh(parts.kept)
    states = memory.OPTIMIZER_BYTES * (outside / batch.shards + inside / batch.expert_shards)
    used = batch.activation_offload * held * kept + batch.optimizer_offload * states
    return np.asarray(np.max(used, axis=0))


def _sharding(batch: Batch, shards: FloatArray) -> Sharding:
    return Sharding(
        shards=shards,
        reshard=batch.reshard,
        reduce_often=batch.reduce_often,
        gradient_bytes=batch.gradient_bytes,
        offloaded=batch.optimizer_offload,
    )


def _logits(setup: Setup, batch: Batch) -> FloatArray:
    kind = batch.pipeline.kind
    waits = (kind == GPIPE) | (kind == BREADTH_FIRST)
    kept = np.where(waits, batch.pipeline.microbatches, 1.0)
    columns = setup.transformer.vocabulary / batch.tensor
    return memory.logits_bytes(batch.part.tokens, columns, kept=kept)


def _buffers(
    setup: Setup, batch: Batch, planned: Traffic, parts: Parts, common: Sharding, experts: Sharding
) -> FloatArray:
    """Layers at work, gathered weights, messages under way, and windows of the long link."""
    model = setup.transformer
    shape = activation_shape(setup, batch)
    working = [
        working_bytes(shape, model.attention, mlp)
        for mlp in (model.mlp, model.experts)
        if mlp is not None
    ]
    message = 2 * batch.part.tokens * model.hidden / np.where(batch.scatter, batch.tensor, 1.0)
    messages = np.where(batch.pipeline.ranks > 1, 4 * message, 0.0)
    # Offloaded activations pass through two layers' worth of buffers.
    passing = np.max(np.stack(tuple(parts.kept.values())), axis=0) * 2 * batch.activation_offload
    crossing = 0.0 if cut_tier(setup) is None else in_flight_memory_bytes(batch.network)
    return np.asarray(
        np.max(np.stack(working), axis=0)
        + memory.gathered_bytes(common, planned.layer_parameters, prefetched=batch.prefetch)
        + memory.gathered_bytes(experts, planned.expert_layer_parameters, prefetched=batch.prefetch)
        + messages
        + passing
        + crossing
    )
