"""What a config needs of the long link: bytes per step, and the smallest cut that is enough."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from objectives.analytical import collectives as names
from objectives.analytical.batch import Batch
from objectives.analytical.collectives import Traffic, cut_tier
from objectives.analytical.parts import Parts, rank_parameters, whole_load
from objectives.analytical.rows import take
from objectives.analytical.search import levels_at_once, smallest_enough, values_at_once
from objectives.analytical.setup import Setup
from objectives.analytical.step import Steady, edges, steady
from objectives.analytical.terms import COMPUTE, Load, merge, total
from objectives.analytical.times import Plan, Times, make_plan, with_capacity
from objectives.physics.activations import FULL
from objectives.physics.arrays import BoolArray, FloatArray
from objectives.physics.messages import sends_per_direction
from objectives.physics.tiers import REGION

TOLERANCE = 0.01
"""A cut is enough when the step takes at most this share longer than with an infinite one."""


def crossing_bytes(setup: Setup, batch: Batch, planned: Traffic, plan: Plan) -> FloatArray:
    """Bytes per step and direction that leave one side of the widest separation, shape (n,).

    Args:
        setup: The scenario.
        batch: The configs.
        planned: The collectives.
        plan: What each of them sends.
    """
    tier = cut_tier(setup)
    if tier is None:
        return np.zeros(len(batch))
    gpus = setup.sizes.region if tier == REGION else setup.sizes.building
    counts = collective_counts(setup, batch, planned)
    return gpus * total(
        counts[name] * plan.average_bytes[tier, i] for i, name in enumerate(plan.names)
    )


def collective_counts(setup: Setup, batch: Batch, planned: Traffic) -> dict[str, FloatArray]:
    """How often a mean rank runs each collective per step, shape (n,)."""
    model, pipeline = setup.transformer, batch.pipeline
    m, p = pipeline.microbatches, pipeline.ranks
    whole = whole_load(setup, batch)
    dense, expert = whole.dense / p, whole.expert / p
    mean = Load(dense=dense, expert=expert, embedding=whole.embedding / p, head=whole.head / p)
    outside, _ = rank_parameters(setup, batch, planned, mean)
    units = outside / planned.layer_parameters
    shared = model.experts is not None and model.experts.shared is not None
    exchanges = dense * 4 + expert * (4 if shared else 2)
    # Forward, backward, inputs once more, and a recomputed forward pass.
    again = np.where(batch.mode == FULL, 1.0, 0.0)
    gathers = np.where(batch.reshard, 2 * m, 1.0)
    reduces = np.where(batch.reduce_often, m, 1.0)
    counts = {
        names.TENSOR: m * exchanges * (2.5 + again),
        names.CONTEXT: m * (dense + expert) * (3 + again),
        names.GATHER: units * gathers,
        names.REDUCE: units * reduces,
        names.REPLICATE: units / batch.local_steps,
        names.TENSOR_VISITS: m * expert * 2 * (2.5 + again),
        names.DISPATCH: m * expert * (2 + again),
        names.COMBINE: m * expert * (2 + again),
        names.EXPERT_GATHER: expert * gathers,
        names.EXPERT_REDUCE: expert * reduces,
        names.EXPERT_REPLICATE: expert / batch.local_steps,
    }
    return counts | {border: m * sends_per_direction(pipeline) for border in names.BORDERS}


def needed_capacity(
    setup: Setup,
    batch: Batch,
    parts: Parts,
    planned: Traffic,
    plan: Plan,
    times: Times,
    core: Steady,
    *,
    crossing: FloatArray,
) -> FloatArray:
    """The smallest cut whose step time is within 1 % of an infinite one's, byte/s, shape (n,).

    For each capacity only what crosses is timed anew. Unless that is part of every layer, the
    steady part of the step stays, and only its ends are put together anew. 0 where nothing
    crosses.

    Args:
        setup: The scenario.
        batch: The configs.
        parts: What computing takes.
        planned: The collectives.
        plan: What each of them sends.
        times: How long they take over the cluster's own cut.
        core: The steady part of the step over it.
        crossing: Bytes over the cut per step and direction, shape (n,).
    """
    size = len(batch)
    needed = np.zeros(size)
    if not np.any(crossing > 0):
        return needed
    layered = _crosses_in_layers(batch, plan)
    everything = _State(batch=batch, parts=parts, planned=planned, times=times, core=core)
    for rows, anew in (
        (np.flatnonzero((crossing > 0) & ~layered), False),
        (np.flatnonzero((crossing > 0) & layered), True),
    ):
        if len(rows):
            state = everything if len(rows) == size else take(everything, rows, size)
            needed[rows] = _search(setup, state, crossing[rows], steady_anew=anew)
    return needed


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """What a step is put together from."""

    batch: Batch
    parts: Parts
    planned: Traffic
    times: Times
    core: Steady


def _search(setup: Setup, state: _State, crossing: FloatArray, *, steady_anew: bool) -> FloatArray:
    size = len(state.batch)
    tier = cut_tier(setup)
    assert tier is not None
    levels = levels_at_once(size)
    copies = values_at_once(levels)
    some = take(state, np.repeat(np.arange(size), copies), size) if copies > 1 else state
    plan = make_plan(setup, some.batch, some.planned)

    def time_s(capacity: FloatArray) -> FloatArray:
        times = with_capacity(some.times, plan, tier, capacity.ravel())
        core = some.core
        if steady_anew:
            core = steady(setup, some.batch, some.parts, some.planned, times)
        terms = edges(setup, some.batch, some.planned, times, core)
        merge(terms, core.terms)
        return total(terms.values()).reshape(size, copies)

    # All bytes must cross within the step, which is hardly ever longer than its compute by more
    # than this factor; and the grid must not depend on the cut that is there.
    start = crossing / state.core.terms[COMPUTE] / 2**15
    return smallest_enough(time_s, start, levels, tolerance=TOLERANCE)


def _crosses_in_layers(batch: Batch, plan: Plan) -> BoolArray:
    """Whether a config sends over a cut within its layers, microbatch by microbatch, shape (n,)."""
    every = (names.TENSOR, names.TENSOR_VISITS, names.CONTEXT, names.DISPATCH, names.COMBINE)
    always = np.array([name in every for name in plan.names])
    sharded = np.array([name in names.SHARDING for name in plan.names])
    pairs = plan.crossing
    often = (batch.reshard | batch.reduce_often)[pairs.row]
    mask = np.zeros(len(batch), dtype=np.bool_)
    mask[pairs.row[always[pairs.which] | (sharded[pairs.which] & often)]] = True
    return mask
