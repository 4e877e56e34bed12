"""What a config needs of the long link: bytes per step, and the smallest cut that is enough."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from objectives.analytical import collectives as names
from objectives.analytical.batch import Batch
from objectives.analytical.collectives import Traffic, cut_tier
from objectives.analytical.parts import Parts, rank_parameters, whole_load
from objectives.analytical.setup import Setup
from objectives.analytical.step import Steady, edges, steady
from objectives.analytical.terms import Load, merge, total
from objectives.analytical.times import Plan, Times, with_capacity
from objectives.physics.activations import FULL
from objectives.physics.arrays import FloatArray
from objectives.physics.messages import sends_per_direction
from objectives.physics.tiers import REGION

TOLERANCE = 0.01
"""A cut is enough when the step takes at most this share longer than with an infinite one."""

INFINITE_BYTES_PER_S = 1e20
"""So many ports that no two flows ever meet."""

ROUNDS = 9
"""Of the search; each narrows the capacity down by a factor of four or more."""


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
) -> FloatArray:
    """The smallest cut whose step time is within 1 % of an infinite one's, byte/s, shape (n,).

    Only what crosses is timed anew for each capacity, and unless it is part of every layer only
    the ends of the step are put together anew. 0 where nothing crosses.

    Args:
        setup: The scenario.
        batch: The configs.
        parts: What computing takes.
        planned: The collectives.
        plan: What each of them sends.
        times: How long they take over the cluster's own cut.
        core: The steady part of the step over it.
    """
    tier = cut_tier(setup)
    if tier is None or not len(plan.crossing.row):
        return np.zeros(len(batch))
    in_layers = _crosses_in_layers(batch, plan)

    def time_s(capacity: FloatArray) -> FloatArray:
        anew = with_capacity(times, plan, tier, capacity)
        middle = steady(setup, batch, parts, planned, anew) if in_layers else core
        terms = edges(setup, batch, planned, anew, middle)
        merge(terms, middle.terms)
        return total(terms.values())

    goal = (1 + TOLERANCE) * time_s(np.full(len(batch), INFINITE_BYTES_PER_S))
    crossing = crossing_bytes(setup, batch, planned, plan)
    crosses = crossing > 0
    start = np.where(crosses, crossing, 1.0) / goal
    return np.where(crosses, smallest_enough(time_s, goal, start), 0.0)


def _crosses_in_layers(batch: Batch, plan: Plan) -> bool:
    """Whether any config sends over a cut within its layers, microbatch by microbatch."""
    every = {names.TENSOR, names.TENSOR_VISITS, names.CONTEXT, names.DISPATCH, names.COMBINE}
    layered = np.isin(plan.crossing.which, [plan.index(name) for name in every])
    often = (batch.reshard | batch.reduce_often)[plan.crossing.row]
    sharded = np.isin(plan.crossing.which, [plan.index(name) for name in names.SHARDING])
    return bool(np.any(layered | (sharded & often)))


def smallest_enough(
    time_s: Callable[[FloatArray], FloatArray], goal: FloatArray, start: FloatArray
) -> FloatArray:
    """The smallest capacity with time_s(capacity) <= goal, elementwise, shape (n,).

    Times fall about linearly with the reciprocal of the capacity, so that is the scale of the
    search: false position, with the weight of an end that stays halved (Illinois), between a
    capacity that is enough and one that is not.

    Args:
        time_s: Falling in the capacity.
        goal: Reached for large capacities.
        start: Where nothing less can be enough, roughly.

    References:
        Dowell and Jarratt, "A modified regula falsi method", BIT 11, 1971.
    """
    low = np.zeros_like(goal)
    low_value = np.full_like(goal, -TOLERANCE) * goal / (1 + TOLERANCE)
    high = 1.0 / start
    for _ in range(8):
        high_value = time_s(1.0 / high) - goal
        if np.all(high_value > 0):
            break
        high = np.where(high_value > 0, high, 4 * high)
    found = np.where(high_value > 0, 0.0, high)
    side = np.zeros_like(goal)
    for _ in range(ROUNDS):
        span = high_value - low_value
        guess = (low * high_value - high * low_value) / np.where(span > 0, span, 1.0)
        guess = np.clip(guess, low + 1e-3 * (high - low), high - 1e-3 * (high - low))
        value = time_s(1.0 / guess) - goal
        enough = value <= 0
        found = np.where(enough, np.maximum(found, guess), found)
        high_value = np.where(enough & (side > 0), high_value / 2, high_value)
        low_value = np.where(~enough & (side < 0), low_value / 2, low_value)
        low, low_value = np.where(enough, guess, low), np.where(enough, value, low_value)
        high, high_value = np.where(enough, high, guess), np.where(enough, high_value, value)
        side = np.where(enough, 1.0, -1.0)
    return 1.0 / np.where(found > 0, found, 1.0 / INFINITE_BYTES_PER_S)
