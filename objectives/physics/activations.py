"""Bytes of activations that one layer keeps from its forward pass for its backward pass.

References:
    Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", arXiv
    2205.05198, section 4 (what is kept; equations 1 to 4) and section 5 (selective).
    Dao, "FlashAttention-2", arXiv 2307.08691 (output and log-sum-exp instead of scores).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from objectives.physics.arrays import BoolArray, FloatArray, Numbers
from objectives.physics.blocks import Attention, Experts, Mlp

NONE, SELECTIVE, FULL = 0, 1, 2
"""Recompute nothing; what only streams memory, and low-rank projections; whole layers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """What the trainer keeps.

    Attributes:
        norm_inputs: Whether normalisations keep their input too. Without, their backward pass
            works from their output, and nothing holds the residual stream: a stage's input and
            output are freed as soon as they are used, as Llama 3 does (arXiv 2407.21783, section
            3.3.2, memory consumption).
        fused_attention: Whether scores are never written; without, five bytes per score.
        dropout: Whether masks of hidden dropout are kept, one byte an element.
        sequence_parallel: Whether tensor ranks divide the tokens between their products.
    """

    norm_inputs: bool = False
    fused_attention: bool = True
    dropout: bool = False
    sequence_parallel: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What one microbatch is to one GPU; arrays of shape (n,) or numbers.

    Attributes:
        tokens: On one context-parallel rank.
        sequence_length: Tokens of a whole sequence.
        tensor: Tensor-parallel degree.
        mode: `NONE`, `SELECTIVE` or `FULL`.
        operand_bytes: Of an element that only a matrix product reads again: 2, or 1 in FP8.
        imbalance: Tokens of the busiest expert rank over the mean.
    """

    tokens: FloatArray
    sequence_length: int
    tensor: FloatArray
    mode: Numbers
    operand_bytes: Numbers
    imbalance: float = 1.0


def layer_bytes(
    shape: Shape, attention: Attention, mlp: Mlp | Experts, keeping: Keeping
) -> FloatArray:
    """Bytes that one layer keeps per microbatch, shape (n,).

    Args:
        shape: The microbatch and what is recomputed.
        attention: Of the layer.
        mlp: Its other half.
        keeping: What the trainer keeps.
    """
    mode = np.asarray(shape.mode)
    inside = attention_bytes(shape, attention, keeping)
    if isinstance(mlp, Experts):
        inside = inside + experts_bytes(shape, mlp, keeping)
    else:
        inside = inside + mlp_bytes(shape, mlp, keeping)
    return np.where(mode == FULL, layer_input_bytes(shape, attention.hidden, keeping), inside)


def layer_input_bytes(shape: Shape, hidden: int, keeping: Keeping) -> FloatArray:
    """The layer's input alone, from which a fully recomputed layer starts."""
    return np.asarray(2 * hidden * shape.tokens / _split(shape, keeping))


def attention_bytes(shape: Shape, attention: Attention, keeping: Keeping) -> FloatArray:
    """Normalisation, queries, keys, values and output of one layer's attention."""
    selective = np.asarray(shape.mode) == SELECTIVE
    heads = attention.heads / shape.tensor
    kv_heads = np.maximum(attention.kv_heads / shape.tensor, 1.0)
    projected = 2 * (heads * attention.qk_dim + kv_heads * (attention.qk_dim + attention.v_dim))
    latent: Numbers = 0.0
    if attention.latent is not None:
        low = attention.latent
        latent = 2 * (low.query_rank + low.key_value_rank + low.rope_dim) / shape.tensor
        projected = np.where(selective, 0.0, projected)
    if keeping.fused_attention:
        core = 4 * heads
    else:
        core = np.where(selective, 0.0, 5 * heads * shape.sequence_length)
    output = 2 * heads * attention.v_dim
    kept = projected + latent + core + output
    return np.asarray(shape.tokens * kept + _residual_bytes(shape, attention.hidden, keeping))


def mlp_bytes(shape: Shape, mlp: Mlp, keeping: Keeping) -> FloatArray:
    """Normalisation, inputs of the activation function and its output."""
    inner = _mlp_inner_bytes(shape, mlp)
    return shape.tokens * inner + _residual_bytes(shape, mlp.hidden, keeping)


def experts_bytes(shape: Shape, experts: Experts, keeping: Keeping) -> FloatArray:
    """The same for routed and shared experts, with the tokens sorted by expert.

    Each visit keeps the expert's input. Its output is not needed again: the router's scores
    weight what goes into the expert (TorchTitan) or its activation function (Megatron Core).
    """
    hidden = experts.expert.hidden
    visits = shape.tokens * experts.per_token * shape.imbalance
    inputs = shape.operand_bytes * hidden / shape.tensor
    routed = visits * (inputs + _mlp_inner_bytes(shape, experts.expert))
    scores = shape.tokens * 4 * experts.count / shape.tensor
    shared: Numbers = 0.0
    if experts.shared is not None:
        shared = shape.tokens * _mlp_inner_bytes(shape, experts.shared)
    return routed + scores + shared + _residual_bytes(shape, hidden, keeping)


def working_bytes(shape: Shape, attention: Attention, mlp: Mlp | Experts) -> FloatArray:
    """What the backward pass of one layer needs beside what was kept, shape (n,).

    Gradients of the widest tensors, the gathered input of a tensor-parallel product and its
    gathered gradient, and, where the layer was recomputed, all that it then keeps.
    """
    one = mlp.expert if isinstance(mlp, Experts) else mlp
    rows = shape.tokens * (mlp.per_token * shape.imbalance if isinstance(mlp, Experts) else 1)
    wide = 2 * rows * one.width / shape.tensor * (3 if one.gated else 2)
    gathered = np.where(shape.tensor > 1, 2.0, 1.0) * 2 * rows * one.hidden
    whole = Shape(
        tokens=shape.tokens,
        sequence_length=shape.sequence_length,
        tensor=shape.tensor,
        mode=NONE,
        operand_bytes=shape.operand_bytes,
        imbalance=shape.imbalance,
    )
    again: BoolArray = np.asarray(shape.mode) != NONE
    return wide + gathered + np.where(again, layer_bytes(whole, attention, mlp, Keeping()), 0.0)


def _mlp_inner_bytes(shape: Shape, mlp: Mlp) -> FloatArray:
    selective = np.asarray(shape.mode) == SELECTIVE
    inputs = 4.0 if mlp.gated else 2.0
    output = np.where(selective, 0.0, shape.operand_bytes)
    return np.asarray((inputs + output) * mlp.width / shape.tensor)


def _residual_bytes(shape: Shape, hidden: int, keeping: Keeping) -> FloatArray:
    """What a normalisation keeps, and the mask of the dropout before the residual sum."""
    selective = np.asarray(shape.mode) == SELECTIVE
    output = np.asarray(shape.operand_bytes, dtype=np.float64)
    both = np.where(selective, 2.0, 2.0 + output)
    kept = both if keeping.norm_inputs else np.where(selective, 2.0, output)
    mask = 1.0 if keeping.dropout else 0.0
    return np.asarray((kept + mask) * hidden * shape.tokens / _split(shape, keeping))


def _split(shape: Shape, keeping: Keeping) -> FloatArray:
    return np.asarray(shape.tensor if keeping.sequence_parallel else np.ones_like(shape.tensor))
