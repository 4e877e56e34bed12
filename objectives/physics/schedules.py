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


def _table(*kinds: int) -> BoolArray:
    """True at the given kinds; the last entry is for `UNKNOWN`."""
    table = np.zeros(len(SCHEDULES) + 1, dtype=np.bool_)
    table[list(kinds)] = True
    return table


_LOOPED = _table(INTERLEAVED, BREADTH_FIRST, INTERLEAVED_ZB)
_FOLDED = _table(ZB_V, V_HALF, V_MIN, DUAL_PIPE_V)
_SPLIT = _table(ZB_H1, ZB_2P, INTERLEAVED_ZB, ZB_V, V_HALF, V_MIN, DUAL_PIPE_V)


_WHOLE, _FILLED, _DUAL = np.zeros((3, len(SCHEDULES) + 1))
"""What each of the other ranks' chunks adds to the idle time, by kind: whole passes F + B + W;
weight gradients per rank that fill the idle time F + B; and DualPipe's F + 2 B - W."""

_WHOLE[[GPIPE, ONE_F_ONE_B, INTERLEAVED, BREADTH_FIRST]] = 1.0
_WHOLE[[V_HALF, V_MIN]] = 1.0, 4 / 3
_FILLED[[ZB_H1, INTERLEAVED_ZB, ZB_V]] = 1.0
_FILLED[ZB_2P] = 2.0
_DUAL[DUAL_PIPE_V] = 1.0

_HELD = np.zeros((4, len(SCHEDULES) + 1))
"""By kind, activations in flight as a constant and multiples of p, of the ranks behind, and of
(v - 1) p."""

_HELD[:, NONE] = 1, 0, 0, 0
_HELD[:, ONE_F_ONE_B] = 1, 0, 1, 0
_HELD[:, INTERLEAVED] = _HELD[:, INTERLEAVED_ZB] = 1, 0, 2, 1
_HELD[:, ZB_H1] = 0, 1, 0, 0
_HELD[:, ZB_2P] = -1, 2, 0, 0
_HELD[:, ZB_V] = 0, 2, 0, 0
_HELD[:, V_HALF] = 2, 1, 0, 0
_HELD[:, DUAL_PIPE_V] = 1, 2, 0, 0
_ALL_HELD = _table(GPIPE, BREADTH_FIRST)


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
        return _FOLDED[self.kind]

    @property
    def looped(self) -> BoolArray:
        """Whether every chunk's successor is on the next rank, around and around."""
        return _LOOPED[self.kind]

    @property
    def splits_backward(self) -> BoolArray:
        """Whether weight gradients are put off to fill idle time."""
        return _SPLIT[self.kind]


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
    kind, v, others = pipeline.kind, pipeline.chunks, pipeline.ranks - 1
    forward, data, weight = (
        np.asarray(x, dtype=np.float64) / v for x in (forward_s, input_grad_s, weight_grad_s)
    )
    # Breadth-first: with fewer microbatches than ranks, every further chunk waits for the first
    # microbatch to come around.
    missing = np.maximum(pipeline.ranks - pipeline.microbatches, 0.0) * (v - 1)
    waits = others + missing * (kind == BREADTH_FIRST)
    whole = _WHOLE[kind] * waits * (forward + data + weight)
    # All ranks start together, after the optimizer of the step before; so the last one idles for
    # the forward passes before its own, whatever it does later. Published zero bubbles let it
    # start late, which needs an optimizer that does not wait for all gradients.
    latest = others * forward
    filled = np.minimum(_FILLED[kind] * others, pipeline.microbatches * v - 1)
    split = np.maximum(others * (forward + data) - filled * weight, latest)
    dual = np.maximum(others * (forward + 2 * data - weight), latest)
    return np.asarray(whole + (_FILLED[kind] > 0) * split + _DUAL[kind] * dual)


def in_flight(pipeline: Pipeline, rank: Numbers) -> FloatArray:
    """Most microbatches times chunks whose activations a rank holds at once.

    Args:
        pipeline: The schedules.
        rank: 0 to p - 1, broadcast against the configs.
    """
    p, v = pipeline.ranks, pipeline.chunks
    later = p - 1 - np.asarray(rank, dtype=np.float64)
    every = pipeline.microbatches * v
    fixed, per_rank, per_later, per_chunk = (row[pipeline.kind] for row in _HELD)
    most = fixed + per_rank * p + per_later * later + per_chunk * (v - 1) * p
    most = np.where(pipeline.kind == V_MIN, 2 * np.ceil((p + 4) / 3), most)
    return np.asarray(np.minimum(np.where(_ALL_HELD[pipeline.kind], every, most), every))
