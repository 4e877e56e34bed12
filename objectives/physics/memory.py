"""Device memory of one rank: weights, gradients, optimizer states, activations and buffers.

Bytes are of one GPU; arrays have shape (n,), or (r, n) where ranks of the pipeline differ.

References:
    Rajbhandari et al., "ZeRO", arXiv 1910.02054, section 3.1 (mixed-precision Adam: 2 bytes of
    weight and 12 of optimizer state a parameter) and section 5 (what sharding divides).
    Narayanan et al., arXiv 2104.04473 (FP32 main gradients: 4 bytes more).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from objectives.physics.arrays import BoolArray, FloatArray, Numbers

WEIGHT_BYTES = 2
OPTIMIZER_BYTES = 12
"""FP32 master weight and Adam's two moments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharding:
    """How n configs divide parameters of one kind over data-parallel ranks; shape (n,).

    Attributes:
        shards: Ranks that each keep one part.
        reshard: Whether gathered weights are freed after each use.
        reduce_often: Whether gradients are reduced, and so divided, after every microbatch.
        gradient_bytes: Per element of the accumulated gradient.
        offloaded: Share of the optimizer states that the host keeps.
    """

    shards: FloatArray
    reshard: BoolArray
    reduce_often: BoolArray
    gradient_bytes: FloatArray
    offloaded: FloatArray


def weight_bytes(sharding: Sharding, parameters: Numbers) -> FloatArray:
    """BF16 weights: all that the rank computes with, or its shard of them.

    Args:
        sharding: Of these parameters.
        parameters: Of the rank, before sharding.
    """
    kept = np.where(sharding.reshard, sharding.shards, 1.0)
    return np.asarray(WEIGHT_BYTES * np.asarray(parameters) / kept)


def gradient_bytes(sharding: Sharding, parameters: Numbers) -> FloatArray:
    """Accumulated gradients: whole until the step's one reduction, or this rank's shard.

    Args:
        sharding: Of these parameters.
        parameters: Of the rank, before sharding.
    """
    kept = np.where(sharding.reduce_often, sharding.shards, 1.0)
    return np.asarray(sharding.gradient_bytes * np.asarray(parameters) / kept)


def optimizer_bytes(sharding: Sharding, parameters: Numbers) -> FloatArray:
    """Master weights and moments of this rank's shard that stay on the device.

    Args:
        sharding: Of these parameters.
        parameters: Of the rank, before sharding.
    """
    own = np.asarray(parameters) / sharding.shards
    return np.asarray(OPTIMIZER_BYTES * own * (1 - sharding.offloaded))


OUTER_BYTES = 8
"""FP32 weights at the last synchronisation, and the outer optimizer's momentum."""


def outer_bytes(sharding: Sharding, parameters: Numbers) -> FloatArray:
    """What local steps between synchronisations keep beside the optimizer, of this rank's shard.

    Args:
        sharding: Of these parameters.
        parameters: Of the rank, before sharding.

    References:
        Douillard et al., "DiLoCo", arXiv 2311.08105, algorithm 1.
    """
    return np.asarray(OUTER_BYTES * np.asarray(parameters) / sharding.shards)


def gathered_bytes(
    sharding: Sharding, layer_parameters: Numbers, *, prefetched: Numbers
) -> FloatArray:
    """Layers that are whole for a moment: gathered weights in use and ahead, fresh gradients.

    Args:
        sharding: Of these parameters.
        layer_parameters: Of one layer on the rank, before sharding.
        prefetched: Layers gathered ahead of the one in use.
    """
    layer = np.asarray(layer_parameters, dtype=np.float64)
    divided = sharding.shards > 1
    weights = np.where(sharding.reshard & divided, (1 + np.asarray(prefetched)) * layer, 0.0)
    fresh = np.where(sharding.reduce_often & divided, 2 * layer, 0.0)
    return np.asarray(WEIGHT_BYTES * weights + sharding.gradient_bytes * fresh)


def logits_bytes(tokens: FloatArray, vocabulary: Numbers, *, kept: Numbers) -> FloatArray:
    """The head's output: BF16 logits of every microbatch kept, and FP32 ones of the loss at work.

    Args:
        tokens: Of a microbatch.
        vocabulary: Columns of the head on this rank.
        kept: Microbatches between their loss and their backward pass.
    """
    elements = tokens * np.asarray(vocabulary)
    return np.asarray(elements * (2 * np.asarray(kept) + 4))
