"""Pipeline schedules: idle time, activations in flight, and messages between stages.

Times are per microbatch and rank, all chunks of the rank together; ``p`` is the number of ranks,
``m`` of microbatches, ``v`` of chunks per rank. F, B and W are the forward pass, the backward
pass for inputs, and the backward pass for weights.

References:
    Huang et al., "GPipe", arXiv 1811.06965, section 2.3.
    Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM", arXiv 2104.04473, section 2.2 (1F1B, interleaved).
    Lamy-Poirier, "Breadth-First Pipeline Parallelism", arXiv 2211.05953, section 3.
    Qi et al., "Zero Bubble Pipeline Parallelism", arXiv 2401.10241, table 1 (ZB-H1, ZB-H2/2p).
    Qi et al., "Pipeline Parallelism with Controllable Memory", arXiv 2405.15362 (V schedules).
    "DeepSeek-V3 Technical Report", arXiv 2412.19437, table 2, and the DualPipe repository.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from objectives.physics.arrays import BoolArray, FloatArray, IntArray, Numbers

SCHEDULES = (
    "none",
    "GPipe",
    "1F1B",
    "Interleaved1F1B",
    "LoopedBFS",
    "ZBH1",
    "ZB2P",
    "InterleavedZeroBubble",
    "ZBVZeroBubble",
    "VHalf",
    "VMin",
    "DualPipeV",
)
"""Names as in torch.distributed.pipelining where it has the schedule."""

(
    NONE,
    GPIPE,
    ONE_F_ONE_B,
    INTERLEAVED,
    BREADTH_FIRST,
    ZB_H1,
    ZB_2P,
    INTERLEAVED_ZB,
    ZB_V,
    V_HALF,
    V_MIN,
    DUAL_PIPE_V,
) = range(len(SCHEDULES))

UNKNOWN = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """The pipelines of n configs.

    Attributes:
        kind: Index into `SCHEDULES`, `UNKNOWN` where the name is none of them, shape (n,).
        ranks: p, shape (n,).
        microbatches: m, shape (n,).
        chunks: v, shape (n,).
    """

    kind: IntArray
    ranks: FloatArray
    microbatches: FloatArray
    chunks: FloatArray

    @property
    def folded(self) -> BoolArray:
        """Whether the second chunk of each rank runs back, so that rank 0 has the last one."""
        return self.kind >= ZB_V

    @property
    def looped(self) -> BoolArray:
        """Whether every chunk's successor is on the next rank, around and around."""
        return np.isin(self.kind, (INTERLEAVED, BREADTH_FIRST, INTERLEAVED_ZB))

    @property
    def splits_backward(self) -> BoolArray:
        """Whether weight gradients are put off to fill idle time."""
        return self.kind >= ZB_H1


def schedule_kinds(names: NDArray[Any]) -> IntArray:
    """Indices into `SCHEDULES`, `UNKNOWN` for other names.

    Args:
        names: Text, shape (n,).
    """
    kinds = np.full(len(names), UNKNOWN, dtype=np.int64)
    texts = names.astype(str)
    for name in set(texts.tolist()) & set(SCHEDULES):
        kinds[texts == name] = SCHEDULES.index(name)
    return kinds


def bubble_s(
    pipeline: Pipeline, *, forward_s: Numbers, input_grad_s: Numbers, weight_grad_s: Numbers
) -> FloatArray:
    """Seconds per step that the slowest rank idles while the pipeline fills and drains.

    Args:
        pipeline: The schedules.
        forward_s: F, the mean over the other ranks.
        input_grad_s: B, likewise.
        weight_grad_s: W, likewise.
    """
    kind, others = pipeline.kind, pipeline.ranks - 1
    forward, data, weight = (
        np.asarray(x, dtype=np.float64) for x in (forward_s, input_grad_s, weight_grad_s)
    )
    everything = forward + data + weight
    one_split = np.maximum(forward + data - weight, 0.0)
    two_split = np.maximum(forward + data - 2 * weight, 0.0)
    # Breadth-first: with fewer microbatches than ranks, every further chunk waits for the first
    # microbatch to come around.
    missing = (pipeline.chunks - 1) * np.maximum(pipeline.ranks - pipeline.microbatches, 0.0)
    per_chunk = np.select(
        [
            kind == NONE,
            np.isin(kind, (GPIPE, ONE_F_ONE_B, INTERLEAVED)),
            kind == BREADTH_FIRST,
            np.isin(kind, (ZB_H1, INTERLEAVED_ZB)),
            kind == ZB_2P,
            kind == ZB_V,
            kind == V_HALF,
            kind == V_MIN,
            kind == DUAL_PIPE_V,
        ],
        [
            np.zeros_like(everything * others),
            others * everything,
            (others + missing) * everything,
            others * one_split,
            others * two_split,
            others * two_split,
            others * everything,
            others * everything * 4 / 3,
            others * np.maximum(forward + 2 * data - weight, 0.0),
        ],
    )
    return np.asarray(per_chunk / pipeline.chunks)


def in_flight(pipeline: Pipeline, rank: Numbers) -> FloatArray:
    """Most microbatches times chunks whose activations a rank holds at once.

    Args:
        pipeline: The schedules.
        rank: 0 to p - 1, broadcast against the configs.
    """
    kind, p, v = pipeline.kind, pipeline.ranks, pipeline.chunks
    every = pipeline.microbatches * v
    later = p - 1 - np.asarray(rank, dtype=np.float64)
    most = np.select(
        [
            kind == NONE,
            np.isin(kind, (GPIPE, BREADTH_FIRST)),
            kind == ONE_F_ONE_B,
            np.isin(kind, (INTERLEAVED, INTERLEAVED_ZB)),
            kind == ZB_H1,
            kind == ZB_2P,
            kind == ZB_V,
            kind == V_HALF,
            kind == V_MIN,
            kind == DUAL_PIPE_V,
        ],
        [
            np.ones_like(later * every),
            every + 0 * later,
            later + 1,
            2 * later + (v - 1) * p + 1,
            p + 0 * later,
            2 * p - 1 + 0 * later,
            2 * p + 0 * later,
            p + 2 + 0 * later,
            2 * np.ceil((p + 4) / 3) + 0 * later,
            2 * p + 1 + 0 * later,
        ],
    )
    return np.asarray(np.minimum(most, every))


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
) -> list[FloatArray]:
    """Seconds per step that ranks wait for messages, by the tier of the border they cross.

    Filling and draining pass every border once each way. Beyond that:

    - Synchronous messages are part of every chunk's forward and backward pass: the rank next to
      the slowest border waits for it and for its other border, once per chunk and microbatch.
    - 1F1B has no slack: a rank with k microbatches in flight gets the next one back only after
      a round trip behind it, so each microbatch costs the round trip's messages over k.
    - Interleaved ranks take p microbatches around the loop, which leaves no slack while the
      pipeline fills and drains: v - 1 further loops, each way. Zero-bubble ones fill the way
      back with weight gradients.
    - Breadth-first ranks have m - p microbatches of slack per loop.

    Args:
        pipeline: The schedules.
        border_s: One message over a border, by tier.
        borders: Borders of one way through the pipeline, by tier.
        inner_ranks: Ranks between two borders of a tier or wider, by tier.
        asynchronous: Where messages run beside compute, shape (n,).
        pace_s: Per microbatch of the slowest rank.

    References:
        Chen et al., "CrossPipe", arXiv 2507.00217 (latency between sites under 1F1B).
    """
    kind, v = pipeline.kind, pipeline.chunks
    outer = _extreme(borders, last=True)
    inner = _extreme(borders, last=False)
    more = pipeline.microbatches > 0
    waits: list[FloatArray] = []
    around = sum(n * x for n, x in zip(borders, border_s, strict=True))
    around = around + sum(o * x for o, x in zip(outer, border_s, strict=True))
    chunk_s = pace_s / v
    slack = np.maximum(pipeline.microbatches - pipeline.ranks, 0.0) * chunk_s / 3
    stalls = np.select(
        [kind == INTERLEAVED, kind == INTERLEAVED_ZB, kind == BREADTH_FIRST],
        [
            2 * (v - 1),
            v - 1,
            (v - 1)
            * (np.maximum(around - slack, 0.0) + np.maximum(around - 2 * slack, 0.0))
            / np.where(around > 0, around, 1.0),
        ],
        default=0.0,
    )
    round_trip = _round_trips(pipeline, border_s, borders, inner_ranks)
    for tier, (n, x) in enumerate(zip(borders, border_s, strict=True)):
        fill = 2 * n * x
        loops = stalls * (n + outer[tier]) * x
        blocking = pipeline.microbatches * v * x * (outer[tier] + inner[tier])
        beside = fill + loops + round_trip[tier]
        several = (pipeline.ranks > 1) & more
        waits.append(np.where(several, np.where(asynchronous, beside, fill + blocking), 0.0))
    return waits


def _extreme(borders: Sequence[FloatArray], *, last: bool) -> list[FloatArray]:
    """One for the widest (or narrowest) tier with a border, by tier; never both for one border."""
    total = sum(borders)
    order = list(range(len(borders)))
    marks = [np.zeros_like(np.asarray(borders[0], dtype=np.float64)) for _ in borders]
    done = np.zeros(marks[0].shape, dtype=np.bool_)
    for tier in reversed(order) if last else order:
        here = (borders[tier] > 0) & ~done
        if not last:
            here &= np.asarray(total) > 1
        marks[tier] = here.astype(np.float64)
        done |= here
    return marks


def _round_trips(
    pipeline: Pipeline,
    border_s: Sequence[FloatArray],
    borders: Sequence[FloatArray],
    inner_ranks: Sequence[FloatArray],
) -> list[FloatArray]:
    """What 1F1B waits per step after the first p microbatches, all of it given to one tier.

    The rank before the last border of a tier has as many microbatches in flight as ranks from
    there on; their round trip passes that border and all narrower ones behind it.
    """
    zeros = np.zeros_like(np.asarray(border_s[0], dtype=np.float64))
    worst, where = zeros, np.full(zeros.shape, -1)
    behind = zeros
    for tier, (n, x) in enumerate(zip(borders, border_s, strict=True)):
        in_flight_there = np.asarray(inner_ranks[tier], dtype=np.float64) + 1
        wait = np.where(n > 0, 2 * (x + behind) / in_flight_there, 0.0)
        where = np.where(wait > worst, tier, where)
        worst = np.maximum(worst, wait)
        wider = np.asarray(inner_ranks[tier + 1] if tier + 1 < len(borders) else inner_ranks[tier])
        inside = np.maximum(wider / np.maximum(inner_ranks[tier], 1) - 1, 0.0)
        behind = behind * np.maximum(wider / np.maximum(inner_ranks[tier], 1), 1.0) + inside * x
    later = np.maximum(pipeline.microbatches - pipeline.ranks, 0.0)
    total = np.where(pipeline.kind == ONE_F_ONE_B, later * worst, 0.0)
    return [np.where(where == tier, total, 0.0) for tier in range(len(borders))]
