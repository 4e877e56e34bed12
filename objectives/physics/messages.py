"""Messages between pipeline stages: what ranks wait for them.

Borders between neighbouring ranks are told apart by the tier of their link; ``n`` of a tier on
one way through the pipeline, ``x`` seconds for one message over one of them.

References:
    Chen et al., "CrossPipe", arXiv 2507.00217 (latency between sites under 1F1B).
    The closed forms are checked against a simulation of every pass in the tests.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from objectives.physics.arrays import BoolArray, FloatArray, Numbers
from objectives.physics.schedules import (
    BREADTH_FIRST,
    GPIPE,
    INTERLEAVED,
    INTERLEAVED_ZB,
    ONE_F_ONE_B,
    SCHEDULES,
    V_HALF,
    V_MIN,
    ZB_H1,
    Pipeline,
)

_LAG = np.full(len(SCHEDULES) + 1, 2.0)
"""Passes that each further rank has fewer under way, by kind."""

_LAG[[ONE_F_ONE_B, ZB_H1, V_HALF, V_MIN]] = 1.0


def sends_per_direction(pipeline: Pipeline) -> FloatArray:
    """Messages per microbatch over one border between neighbours, in each direction.

    One chunk per rank: one, forward one way and backward the other. Looped over v chunks, the
    middle border is passed v times onward and v - 1 times by the way back to the first rank: 2 v
    - 1. Folded, twice.

    Args:
        pipeline: The schedules.
    """
    looped = np.where(pipeline.looped, 2 * pipeline.chunks - 1, 1.0)
    several = np.where(pipeline.folded, 2.0, looped)
    return np.asarray(np.where(pipeline.ranks > 1, several, 0.0))


def exposed_messages(
    pipeline: Pipeline,
    *,
    border_s: Sequence[FloatArray],
    borders: Sequence[FloatArray],
    inner_ranks: Sequence[FloatArray],
    asynchronous: BoolArray,
    pace_s: FloatArray,
    weight_s: FloatArray,
) -> list[FloatArray]:
    """Seconds per step that ranks wait for messages, by the tier of the border they cross.

    Asynchronous messages delay only who needs them: the fill and drain of the pipeline, further
    loops through it, and round trips between neighbours in the steady state. Synchronous ones are
    part of every chunk's passes: the rank next to the slowest border waits for it and for its
    other border, once per chunk and microbatch.

    Args:
        pipeline: The schedules.
        border_s: x, by tier.
        borders: n, by tier.
        inner_ranks: Ranks between two borders of a tier or wider, by tier.
        asynchronous: Where messages run beside compute, shape (n,).
        pace_s: Per microbatch of the slowest rank.
        weight_s: Of that, weight gradients.
    """
    outer, inner = _widest(borders), _narrowest(borders)
    ways = np.where(pipeline.folded, 4.0, 2.0)
    loops = _further_loops(pipeline, border_s, borders, outer, pace_s)
    steady, where = _steady_s(pipeline, border_s, borders, inner_ranks, pace_s, weight_s)
    several = pipeline.ranks > 1
    waits = []
    for tier, (n, x) in enumerate(zip(borders, border_s, strict=True)):
        fill = ways * n * x
        beside = fill + loops * (n + outer[tier]) * x + np.where(where == tier, steady, 0.0)
        blocking = pipeline.microbatches * pipeline.chunks * x * (outer[tier] + inner[tier])
        waits.append(np.where(several, np.where(asynchronous, beside, fill + blocking), 0.0))
    return waits


def _further_loops(
    pipeline: Pipeline,
    border_s: Sequence[FloatArray],
    borders: Sequence[FloatArray],
    outer: Sequence[FloatArray],
    pace_s: FloatArray,
) -> FloatArray:
    """How many further ways around the loop, both passes together, show in full.

    Interleaved ranks take p microbatches per chunk, which leaves no slack while the pipeline
    fills and drains: v - 1 loops each way; on the way back zero-bubble ones do weight gradients.
    Breadth-first ranks have m - p microbatches of slack per loop.
    """
    kind, loops = pipeline.kind, pipeline.chunks - 1
    around = np.zeros_like(pace_s)
    for n, o, x in zip(borders, outer, border_s, strict=True):
        around = around + (n + o) * x
    # A third of a microbatch is its forward pass.
    third = pace_s / pipeline.chunks / 3
    spare = np.maximum(pipeline.microbatches - pipeline.ranks, 0.0) * third
    late = np.maximum(around - spare, 0.0) + np.maximum(around - 2 * spare, 0.0)
    breadth = loops * late / np.where(around > 0, around, 1.0)
    once, twice = kind == INTERLEAVED_ZB, kind == INTERLEAVED
    return np.asarray(once * loops + twice * 2 * loops + (kind == BREADTH_FIRST) * breadth)


def _steady_s(
    pipeline: Pipeline,
    border_s: Sequence[FloatArray],
    borders: Sequence[FloatArray],
    inner_ranks: Sequence[FloatArray],
    pace_s: FloatArray,
    weight_s: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Waits of the steady state, and the tier to blame.

    Neighbours answer each other: a forward pass goes down over q borders and its answer comes
    back. If each further rank has a passes fewer under way, the answer is due a q + 1 passes
    later, while the way takes q + 1 of them and 2 x per border; (a - 1) q passes are slack, and
    weight gradients that can wait. 1F1B has a = 1 and no slack, interleaved schedules a = 2. The
    worst stretch counts: one slow border alone, or all borders of a unit.
    """
    kind, chunks = pipeline.kind, pipeline.chunks
    lag = _LAG[kind]
    waits = (kind != GPIPE) & (kind != BREADTH_FIRST) & (pipeline.ranks > 1)
    one_pass = pace_s / chunks
    can_wait = np.where(pipeline.splits_backward, weight_s / chunks, 0.0)
    passes = pipeline.microbatches * chunks

    def stretch_s(way_s: FloatArray, count: Numbers, last: FloatArray) -> FloatArray:
        slack = (lag - 1) * count * one_pass + (count + np.asarray(1.0)) * can_wait
        each = np.maximum(2 * way_s - slack, 0.0) / (lag * count + 1)
        first = np.where(lag > 1, pipeline.ranks * chunks, last)
        return each * np.maximum(passes - first, 0.0)

    worst = np.zeros_like(pace_s)
    blame = np.full(worst.shape, -1.0)
    within = np.zeros_like(pace_s)
    for tier, (n, x) in enumerate(zip(borders, border_s, strict=True)):
        if not np.any(n > 0):
            continue
        size = np.asarray(inner_ranks[tier])
        wider = np.asarray(inner_ranks[tier + 1]) if tier + 1 < len(borders) else pipeline.ranks
        units = wider / size
        within = units * within + (units - 1) * x
        for wait in (
            stretch_s(x, 1.0, size),
            stretch_s(within, np.maximum(wider - 1, 1.0), np.ones_like(size)),
        ):
            seconds = np.where((n > 0) & waits, wait, 0.0)
            blame = np.where(seconds > worst, tier, blame)
            worst = np.maximum(worst, seconds)
    return worst, blame


def _widest(borders: Sequence[FloatArray]) -> list[FloatArray]:
    """By tier, 1 for the widest one that has a border."""
    return _first_present(borders, range(len(borders) - 1, -1, -1))


def _narrowest(borders: Sequence[FloatArray]) -> list[FloatArray]:
    """By tier, 1 for the narrowest one that has a border, where a rank has two."""
    several = np.sum(np.stack(tuple(borders)), axis=0) > 1
    return [mark * several for mark in _first_present(borders, range(len(borders)))]


def _first_present(borders: Sequence[FloatArray], order: Sequence[int]) -> list[FloatArray]:
    marks = [np.zeros_like(n) for n in borders]
    found = np.zeros(borders[0].shape, dtype=np.bool_)
    for tier in order:
        marks[tier] = np.where((borders[tier] > 0) & ~found, 1.0, 0.0)
        found = found | (borders[tier] > 0)
    return marks
