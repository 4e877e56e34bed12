"""Which layers the ranks of a pipeline hold.

All chunks have equally many layers but for the first and the last, which may have fewer. Ranks
differ only by the first and last chunk and the leading dense layers of a mixture of experts, so
four of them stand for all: rank 0, rank 1, the first without dense layers, and the last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from objectives.physics.arrays import BoolArray, FloatArray
from objectives.physics.schedules import Pipeline

REPRESENTATIVES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """What the representative ranks hold; arrays of shape (4, n).

    Attributes:
        rank: Their numbers.
        dense_layers: Layers with a plain MLP.
        expert_layers: Layers with experts.
        first: Whether the rank has the first chunk, and with it the embedding.
        last: Whether it has the last chunk, and with it the head.
    """

    rank: FloatArray
    dense_layers: FloatArray
    expert_layers: FloatArray
    first: BoolArray
    last: BoolArray


def layers_per_chunk(
    pipeline: Pipeline, *, layers: int, first_less: FloatArray, last_less: FloatArray
) -> FloatArray:
    """Layers of every chunk but the first and last, shape (n,); whole where the split is valid.

    Args:
        pipeline: The schedules.
        layers: Of the model.
        first_less: Layers that the first chunk lacks, shape (n,).
        last_less: Layers that the last chunk lacks, shape (n,).
    """
    return (layers + first_less + last_less) / (pipeline.ranks * pipeline.chunks)


def stages(
    pipeline: Pipeline,
    *,
    dense_layers: int,
    expert_layers: int,
    first_less: FloatArray,
    last_less: FloatArray,
) -> Stages:
    """Lay the layers out over the representative ranks.

    Args:
        pipeline: The schedules.
        dense_layers: Layers with a plain MLP; the leading ones where there are both kinds.
        expert_layers: Layers with experts.
        first_less: Layers that the first chunk lacks, shape (n,).
        last_less: Layers that the last chunk lacks, shape (n,).
    """
    per_chunk = layers_per_chunk(
        pipeline, layers=dense_layers + expert_layers, first_less=first_less, last_less=last_less
    )
    final = pipeline.ranks - 1
    leading = dense_layers if expert_layers else 0
    beyond = np.ceil((leading + first_less) / per_chunk)
    rank = np.stack(
        [np.zeros_like(final), *np.minimum((np.ones_like(final), beyond), final), final]
    )
    first = rank == 0
    last = np.where(pipeline.folded, rank == 0, rank == final)
    held = pipeline.chunks * per_chunk - first * first_less - last * last_less
    if not expert_layers:
        return Stages(
            rank=rank, dense_layers=held, expert_layers=np.zeros_like(held), first=first, last=last
        )
    dense = _leading_layers(pipeline, rank, per_chunk, first_less, leading)
    return Stages(rank=rank, dense_layers=dense, expert_layers=held - dense, first=first, last=last)


def _leading_layers(
    pipeline: Pipeline,
    rank: FloatArray,
    per_chunk: FloatArray,
    first_less: FloatArray,
    leading: int,
) -> FloatArray:
    """Of the model's leading layers, those on each rank."""
    total = np.zeros_like(rank)
    most = int(min(np.max(pipeline.chunks, initial=1), leading + 2))
    for turn in range(most):
        onward = turn * pipeline.ranks + rank
        chunk = np.where(pipeline.folded & (turn == 1), 2 * pipeline.ranks - 1 - rank, onward)
        start = np.where(chunk == 0, 0.0, chunk * per_chunk - first_less)
        end = (chunk + 1) * per_chunk - first_less
        inside = np.clip(leading - start, 0.0, end - start)
        total = total + np.where(turn < pipeline.chunks, inside, 0.0)
    return total
