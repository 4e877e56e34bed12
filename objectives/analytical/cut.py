"""What a config needs of the long link: bytes per step, and the smallest cut that is enough."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from objectives.analytical import collectives as names
from objectives.analytical.batch import Batch, make_batch
from objectives.analytical.collectives import (
    Time,
    Traffic,
    cut_tier,
    durations,
    fabric_of,
    make_traffic,
)
from objectives.analytical.columns import Column
from objectives.analytical.layer import Parts, make_parts
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
    setup: Setup,
    columns: Mapping[str, Column],
    batch: Batch,
    parts: Parts,
    planned: Traffic,
    times: Mapping[str, Time],
) -> FloatArray:
    """The smallest cut whose step time is within 1 % of an infinite one's, byte/s, shape (n,).

    Found by sections of its logarithm, for all configs at once: of few configs many capacities
    are tried in one call, of many configs one. Only what crosses is computed anew for each
    capacity. 0 where nothing crosses.

    Args:
        setup: The scenario.
        columns: What the batch was made of.
        batch: The configs.
        parts: What computing takes.
        planned: The collectives.
        times: How long they take over the cluster's own cut.
    """
    tier, size = cut_tier(setup), len(batch)
    if tier is None or not size:
        return np.zeros(size)
    crosses = np.any(
        [demand.endpoint_bytes[tier] > 0 for demand in planned.demands.values()], axis=0
    )
    infinite = np.full(size, INFINITE_BYTES_PER_S)
    goal = (1 + TOLERANCE) * _time_s(setup, batch, parts, planned, times, infinite)
    tried, rounds = next(row for row in _SECTIONS if size <= row[0])[1:]
    if tried > 1:
        batch = make_batch(setup, {name: np.repeat(v, tried) for name, v in columns.items()})
        parts, planned = make_parts(setup, batch), make_traffic(setup, batch)
        times = durations(fabric_of(setup, batch), planned)
    low = np.full(size, np.log(SMALLEST_BYTES_PER_S))
    high = np.full(size, np.log(INFINITE_BYTES_PER_S))
    rows = np.arange(size)
    for _ in range(rounds):
        edges = low + (high - low) * np.linspace(0, 1, tried + 2)[:, None]
        capacity = np.exp(edges[1:-1].T.ravel())
        time_s = _time_s(setup, batch, parts, planned, times, capacity).reshape(size, tried)
        enough = np.vstack([np.less_equal(time_s.T, goal), np.ones((1, size), dtype=np.bool_)])
        first = np.argmax(enough, axis=0)
        low, high = edges[first, rows], edges[first + 1, rows]
    return np.where(crosses, np.exp(high), 0.0)


_SECTIONS = ((8, 255, 3), (256, 15, 6), (np.inf, 1, 24))
"""Up to how many configs, how many capacities of each are tried at once, and in how many rounds:
each leaves 2^-24 of the logarithm's range."""


def _time_s(
    setup: Setup,
    batch: Batch,
    parts: Parts,
    planned: Traffic,
    times: Mapping[str, Time],
    capacity: FloatArray,
) -> FloatArray:
    """Step time with another cut."""
    tier = cut_tier(setup)
    assert tier is not None, "there is a cut"
    crossing = tuple(
        name for name, demand in planned.demands.items() if (demand.endpoint_bytes[tier] > 0).any()
    )
    anew = durations(fabric_of(setup, batch, capacity), planned, crossing) if crossing else {}
    return step(setup, batch, parts, planned, {**times, **anew}).time_s
