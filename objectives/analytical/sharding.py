"""Data parallelism once per step: weights gathered at its start, gradients reduced at its end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from objectives.analytical import collectives as names
from objectives.analytical.batch import Batch
from objectives.analytical.collectives import Traffic
from objectives.analytical.setup import Setup
from objectives.analytical.terms import SLOWDOWN, Terms, total
from objectives.analytical.times import Times
from objectives.physics.arrays import BoolArray, FloatArray
from objectives.physics.memory import OPTIMIZER_BYTES
from objectives.physics.schedules import BREADTH_FIRST


def sharding_terms(
    setup: Setup,
    batch: Batch,
    planned: Traffic,
    times: Times,
    *,
    outside: FloatArray,
    inside: FloatArray,
    forward_s: FloatArray,
    backward_s: FloatArray,
) -> Terms:
    """Seconds that a step waits for its one gathering and its one reduction.

    Args:
        setup: The scenario.
        batch: The configs.
        planned: What one layer's collectives move.
        times: How long they take.
        outside: Parameters of the fullest rank outside the experts, before sharding.
        inside: The same inside the experts.
        forward_s: Of a microbatch, the forward pass.
        backward_s: Of a microbatch, the backward pass.
    """
    layers = outside / planned.layer_parameters
    present = planned.expert_layer_parameters > 0
    experts = np.where(present, inside / np.where(present, planned.expert_layer_parameters, 1.0), 0)
    one_use = np.where(batch.reshard, 1.0 / np.maximum(layers, 1.0), 1.0)
    gathered = [(names.GATHER, one_use * layers)]
    reduced = [
        (names.REDUCE, np.where(batch.reduce_often, 1.0, layers)),
        (names.REPLICATE, layers / batch.local_steps),
    ]
    if setup.transformer.experts is not None:
        gathered.append((names.EXPERT_GATHER, one_use * experts))
        reduced += [
            (names.EXPERT_REDUCE, np.where(batch.reduce_often, np.minimum(experts, 1.0), experts)),
            (names.EXPERT_REPLICATE, experts / batch.local_steps),
        ]
    start = _exposed(setup, batch, times, gathered, layers, batch.overlap_gather, forward_s)
    end = _exposed(setup, batch, times, reduced, layers, batch.overlap_reduce, backward_s)
    slowdown = start.pop(SLOWDOWN) + end.pop(SLOWDOWN)
    return {**start, **end, SLOWDOWN: slowdown}


def _exposed(
    setup: Setup,
    batch: Batch,
    times: Times,
    counts: Sequence[tuple[str, FloatArray]],
    layers: FloatArray,
    overlaps: BoolArray,
    pass_s: FloatArray,
) -> Terms:
    """What of some collectives shows at an end of the step.

    A rank's chunks become needed (or ready) one after another: at once the first layer, then the
    rest of its chunk within one microbatch, then further chunks a round of microbatches apart.
    The latest of the three sets the delay. Rank 0 is both the first to start and the last to
    finish, so nothing of it hides in the fill of the pipeline.
    """
    pipeline = batch.pipeline
    seconds = {name: count * times.total(name) for name, count in counts}
    whole = total(seconds.values())
    chunk_s = pass_s / pipeline.chunks
    rounds = np.where(
        pipeline.kind == BREADTH_FIRST,
        pipeline.microbatches,
        np.minimum(pipeline.microbatches, pipeline.ranks),
    )
    window = ((pipeline.chunks - 1) * rounds + 1) * chunk_s
    at_once = np.maximum(whole / np.maximum(layers, 1.0), whole / pipeline.chunks - chunk_s)
    late = np.maximum(at_once, whole - window)
    shown = np.where(overlaps, np.minimum(late, whole), whole)
    factor = shown / np.where(whole > 0, whole, 1.0)
    terms = {name: factor * value for name, value in seconds.items()}
    terms[SLOWDOWN] = setup.calibration.software.overlap_slowdown * (whole - shown)
    return terms


def host_optimizer_s(setup: Setup, batch: Batch, parameters: FloatArray) -> FloatArray:
    """Seconds of the optimizer's share on the host: gradients down, Adam, weights up.

    The three stream through one another in pieces, so the slowest counts.

    Args:
        setup: The scenario.
        batch: The configs.
        parameters: Of the fullest rank's shard.

    References:
        Ren et al., "ZeRO-Offload", arXiv 2101.06840, section 4.2.
    """
    host = setup.cluster.host
    if host is None:
        return np.zeros(len(batch))
    kernel = setup.calibration.kernel
    there = batch.optimizer_offload * parameters
    link = host.bandwidth_bytes_per_s * kernel.host_link_efficiency
    memory = host.memory_bandwidth_bytes_per_s * kernel.host_memory_efficiency
    # Read the gradient and the states, write the states and the BF16 weight.
    touched = batch.gradient_bytes + 2 * OPTIMIZER_BYTES + 2
    down, up = there * batch.gradient_bytes / link, there * 2 / link
    return np.maximum(np.maximum(down, up), there * touched / memory)
