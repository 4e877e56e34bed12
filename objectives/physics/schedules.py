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
    # All ranks start together, after the optimizer of the step before; so the last one idles for
    # the forward passes before its own, whatever it does later. Published zero bubbles let it
    # start late, which needs an optimizer that does not wait for all gradients.
    one_split = np.maximum(forward + data - weight, forward)
    two_split = np.maximum(forward + data - 2 * weight, forward)
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
            others * one_split,
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
