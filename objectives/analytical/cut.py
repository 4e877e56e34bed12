"""What a config needs of the long link: bytes per step, and the smallest cut that is enough."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from objectives.analytical import collectives as names
from objectives.analytical.batch import Batch
from objectives.analytical.collectives import Time, Traffic, cut_tier, durations, fabric_of
from objectives.analytical.layer import Parts
from objectives.analytical.setup import Setup
from objectives.analytical.step import Load, rank_parameters, step
from objectives.physics.arrays import FloatArray
from objectives.physics.fabric import Fabric
from objectives.physics.messages import sends_per_direction

TOLERANCE = 0.01
"""A cut is enough when the step takes at most this share longer than with an infinite one."""

INFINITE_BYTES_PER_S = 1e20
"""So many ports that no two flows ever meet."""

SMALLEST_BYTES_PER_S = 1e3


def crossing_bytes(
    setup: Setup, batch: Batch, planned: Traffic, fabric: Fabric, ranks: Load
) -> FloatArray:
    """Bytes per step and direction that leave one side of the widest separation, shape (n,).

    Args:
        setup: The scenario.
        batch: The configs.
        planned: The collectives.
        fabric: The links.
        ranks: What the representative ranks hold.
    """
    tier = cut_tier(setup)
    if tier is None:
        return np.zeros(len(batch))
    counts = collective_counts(setup, batch, planned, ranks)
    gpus = fabric.sizes.building if tier == 3 else fabric.sizes.region
    return np.sum(
        np.stack(
            [
                count * planned.demands[name].average_bytes[tier] * gpus
                for name, count in counts.items()
            ]
        ),
        axis=0,
    )


def collective_counts(
    setup: Setup, batch: Batch, planned: Traffic, ranks: Load
) -> dict[str, FloatArray]:
    """How often a mean rank runs each collective per step, shape (n,)."""
    model, pipeline = setup.transformer, batch.pipeline
    m = pipeline.microbatches
    layers = (model.layers + model.mtp_layers) / pipeline.ranks
    expert_layers = layers - model.dense_layers / pipeline.ranks if model.experts else 0 * layers
    full = np.where(batch.mode == 2, 1.0, 0.0)
    ones = np.ones(len(batch))
    whole = Load(
        dense=(layers - expert_layers) * ones,
        expert=expert_layers * ones,
        embedding=ones / pipeline.ranks,
        head=ones / pipeline.ranks,
    )
    outside, _ = rank_parameters(setup, batch, planned, whole)
    units = outside / planned.layer_parameters
    shared = model.experts is not None and model.experts.shared is not None
    per_expert_layer = 4.0 if shared else 2.0
    dense = layers - expert_layers
    tensor = dense * 4 + expert_layers * per_expert_layer
    gathers = np.where(batch.reshard, 2 * m, 1.0)
    reduces = np.where(batch.reduce_often, m, 1.0)
    counts = {
        # Forward, backward, inputs once more, and a recomputed forward pass.
        names.TENSOR: m * tensor * (2.5 + full),
        names.CONTEXT: m * layers * (3 + full),
        names.GATHER: units * gathers,
        names.REDUCE: units * reduces,
        names.REPLICATE: units / batch.local_steps,
        **{border: m * sends_per_direction(pipeline) for border in names.BORDERS},
    }
    if model.experts is not None:
        counts |= {
            names.TENSOR_VISITS: m * expert_layers * 2 * (2.5 + full),
            names.DISPATCH: m * expert_layers * (2 + full),
            names.COMBINE: m * expert_layers * (2 + full),
            names.EXPERT_GATHER: expert_layers * gathers,
            names.EXPERT_REDUCE: expert_layers * reduces,
            names.EXPERT_REPLICATE: expert_layers / batch.local_steps,
        }
    return counts


def needed_capacity(
    setup: Setup, batch: Batch, parts: Parts, planned: Traffic, times: Mapping[str, Time]
) -> FloatArray:
    """The smallest cut whose step time is within 1 % of an infinite one's, byte/s, shape (n,).

    Found by bisection of its logarithm, for all configs at once. Only what crosses is computed
    anew for each capacity. 0 where nothing crosses.

    Args:
        setup: The scenario.
        batch: The configs.
        parts: What computing takes.
        planned: The collectives.
        times: How long they take over the cluster's own cut.
    """
    tier = cut_tier(setup)
    size = len(batch)
    if tier is None or not size:
        return np.zeros(size)
    crossing = tuple(
        name for name, demand in planned.demands.items() if (demand.endpoint_bytes[tier] > 0).any()
    )
    crosses = np.zeros(size, dtype=np.bool_)
    for name in crossing:
        crosses |= planned.demands[name].endpoint_bytes[tier] > 0

    def time_s(capacity: FloatArray) -> FloatArray:
        anew = durations(fabric_of(setup, batch, capacity), planned, crossing)
        return step(setup, batch, parts, planned, {**times, **anew}).time_s

    goal = (1 + TOLERANCE) * time_s(np.full(size, INFINITE_BYTES_PER_S))
    low = np.full(size, np.log(SMALLEST_BYTES_PER_S))
    high = np.full(size, np.log(INFINITE_BYTES_PER_S))
    for _ in range(24):
        middle = (low + high) / 2
        enough = time_s(np.exp(middle)) <= goal
        high = np.where(enough, middle, high)
        low = np.where(enough, low, middle)
    return np.where(crosses, np.exp(high), 0.0)
