"""How long each part of a transformer computes on one GPU, per microbatch.

Activations are split over the tokens between tensor-parallel products (sequence parallelism), so
that everything a tensor rank does is divided by the tensor degree; only the shapes differ.

References:
    Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", arXiv
    2205.05198, sections 4.2.1 and 4.2.2 (tensor and sequence parallelism).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from objectives.physics import compute
from objectives.physics.arrays import FloatArray, Numbers
from objectives.physics.blocks import Attention, Experts, Mlp
from objectives.physics.compute import Device


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """What of a microbatch one GPU works on.

    Attributes:
        tokens: Of the microbatch on one context-parallel rank, shape (n,).
        sequence_length: Tokens of a whole sequence.
        tensor: Tensor-parallel degree, shape (n,).
        expert: Expert-parallel degree, shape (n,).
        imbalance: Tokens of the busiest expert rank over the mean.
        gradient_bytes: Per element of the accumulated weight gradient, shape (n,).
        quantised: Where operands are quantised before every product (FP8), shape (n,).
    """

    tokens: FloatArray
    sequence_length: int
    tensor: FloatArray
    expert: FloatArray
    imbalance: float
    gradient_bytes: FloatArray
    quantised: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Seconds of one part for one microbatch, arrays of shape (n,).

    Attributes:
        forward_s: All of the forward pass.
        input_grad_s: Backward, what the layer before waits for.
        weight_grad_s: Backward, what only the optimizer waits for.
        elementwise_s: Of the forward pass, what only streams memory.
        core_s: Of the forward pass, attention between its projections.
        up_s: Of the forward pass, low-rank projections back to full width.
    """

    forward_s: FloatArray
    input_grad_s: FloatArray
    weight_grad_s: FloatArray
    elementwise_s: FloatArray
    core_s: FloatArray
    up_s: FloatArray

    @property
    def total_s(self) -> FloatArray:
        """Forward and backward."""
        return self.forward_s + self.input_grad_s + self.weight_grad_s

    def __add__(self, other: Work) -> Work:
        return Work(
            forward_s=self.forward_s + other.forward_s,
            input_grad_s=self.input_grad_s + other.input_grad_s,
            weight_grad_s=self.weight_grad_s + other.weight_grad_s,
            elementwise_s=self.elementwise_s + other.elementwise_s,
            core_s=self.core_s + other.core_s,
            up_s=self.up_s + other.up_s,
        )


def _work(
    *,
    forward_s: FloatArray,
    input_grad_s: FloatArray,
    weight_grad_s: FloatArray | None = None,
    elementwise_s: FloatArray | None = None,
    core_s: FloatArray | None = None,
) -> Work:
    zero = np.zeros_like(forward_s)
    return Work(
        forward_s=forward_s,
        input_grad_s=input_grad_s,
        weight_grad_s=zero if weight_grad_s is None else weight_grad_s,
        elementwise_s=zero if elementwise_s is None else elementwise_s,
        core_s=zero if core_s is None else core_s,
        up_s=zero,
    )


def linear_work(
    device: Device,
    part: Slice,
    *,
    rows: Numbers,
    inner: Numbers,
    columns: Numbers,
    groups: Numbers = 1,
) -> Work:
    """A linear map and its two backward products.

    Y = X W; dX = dY W^T; dW = X^T dY, which is added to the accumulated gradient. In FP8 the
    forward operand and the output's gradient are first quantised, each also transposed.

    Args:
        device: Where it runs.
        part: What the GPU works on.
        rows: Tokens m.
        inner: Inputs k of the matrix.
        columns: Outputs n of the matrix.
        groups: Matrices of this shape in one launch, each with m tokens.
    """
    forward = compute.matmul_s(device, rows=rows, inner=inner, columns=columns, groups=groups)
    data = compute.matmul_s(device, rows=rows, inner=columns, columns=inner, groups=groups)
    weight = compute.matmul_s(
        device,
        rows=inner,
        inner=np.maximum(np.asarray(rows, dtype=np.float64), 1e-9),
        columns=columns,
        groups=groups,
        output_bytes=2 * part.gradient_bytes,
    )
    quantised = part.quantised * np.asarray(rows, dtype=np.float64) * groups
    cast = compute.memory_s(device, 4 * quantised * inner, kernels=part.quantised)
    cast_grad = compute.memory_s(device, 4 * quantised * columns, kernels=part.quantised)
    return _work(
        forward_s=forward + cast,
        input_grad_s=data + cast_grad,
        weight_grad_s=weight,
        elementwise_s=cast,
    )


def streaming_work(
    device: Device, *, forward_bytes: Numbers, backward_bytes: Numbers, kernels: int
) -> Work:
    """Kernels that only stream memory, as many backward as forward.

    Args:
        device: Where they run.
        forward_bytes: Read and written forward.
        backward_bytes: Read and written backward.
        kernels: Launches forward.
    """
    forward = compute.memory_s(device, forward_bytes, kernels=kernels)
    backward = compute.memory_s(device, backward_bytes, kernels=kernels)
    return _work(forward_s=forward, input_grad_s=backward, elementwise_s=forward)


def norm_work(device: Device, part: Slice, hidden: int) -> Work:
    """One normalisation with the residual sum before it, on this rank's share of the tokens.

    Forward the sum reads two vectors and writes one, and the normalisation reads one and writes
    one; backward it reads two and writes one, and the sum of the two branches' gradients again.
    """
    elements = part.tokens / part.tensor * hidden
    return streaming_work(
        device, forward_bytes=10 * elements, backward_bytes=12 * elements, kernels=2
    )


def attention_work(device: Device, part: Slice, attention: Attention) -> Work:
    """Normalisation, projections, rotary positions and causal attention of one layer."""
    tp, tokens = part.tensor, part.tokens
    heads = attention.heads / tp
    projections = (
        _full_projections(device, part, attention)
        if attention.latent is None
        else _latent_projections(device, part, attention)
    )
    output = linear_work(
        device, part, rows=tokens, inner=heads * attention.v_dim, columns=attention.hidden
    )
    # Queries and keys are read and written once each way.
    rotated = 4 * tokens * attention.qk_dim * (heads + np.maximum(attention.kv_heads / tp, 1.0))
    rotary = streaming_work(device, forward_bytes=rotated, backward_bytes=rotated, kernels=1)
    core = _core_work(device, part, attention)
    return norm_work(device, part, attention.hidden) + projections + rotary + core + output


def _core_work(device: Device, part: Slice, attention: Attention) -> Work:
    flops = compute.attention_flops(
        queries=part.tokens,
        keys=part.sequence_length,
        heads=attention.heads / part.tensor,
        qk_dim=attention.qk_dim,
        v_dim=attention.v_dim,
    )
    forward = compute.attention_forward_s(device, flops)
    return _work(
        forward_s=forward,
        input_grad_s=compute.attention_backward_s(device, flops),
        core_s=forward,
    )


def _full_projections(device: Device, part: Slice, attention: Attention) -> Work:
    """Queries, keys and values in one product; keys and values of one head are not split."""
    heads = attention.heads / part.tensor
    kv_heads = np.maximum(attention.kv_heads / part.tensor, 1.0)
    columns = heads * attention.qk_dim + kv_heads * (attention.qk_dim + attention.v_dim)
    return linear_work(device, part, rows=part.tokens, inner=attention.hidden, columns=columns)


def _latent_projections(device: Device, part: Slice, attention: Attention) -> Work:
    """Down on this rank's share of the tokens, with all of the matrix; up on its heads."""
    latent = attention.latent
    assert latent is not None
    share, heads = part.tokens / part.tensor, attention.heads / part.tensor
    down = linear_work(
        device,
        part,
        rows=share,
        inner=attention.hidden,
        columns=latent.query_rank + latent.key_value_rank + latent.rope_dim,
    )
    query_inner = latent.query_rank or attention.hidden
    nope = attention.qk_dim - latent.rope_dim
    up = linear_work(
        device, part, rows=part.tokens, inner=query_inner, columns=heads * attention.qk_dim
    ) + linear_work(
        device,
        part,
        rows=part.tokens,
        inner=latent.key_value_rank,
        columns=heads * (nope + attention.v_dim),
    )
    both = down + up
    return Work(
        forward_s=both.forward_s,
        input_grad_s=both.input_grad_s,
        weight_grad_s=both.weight_grad_s,
        elementwise_s=both.elementwise_s,
        core_s=both.core_s,
        up_s=up.forward_s - up.elementwise_s,
    )


def mlp_work(device: Device, part: Slice, mlp: Mlp) -> Work:
    """Normalisation and MLP of one dense layer."""
    return norm_work(device, part, mlp.hidden) + _mlp_products(
        device, part, mlp, rows=part.tokens, split=part.tensor
    )


def _mlp_products(
    device: Device,
    part: Slice,
    mlp: Mlp,
    *,
    rows: FloatArray,
    split: FloatArray,
    groups: Numbers = 1,
) -> Work:
    width = mlp.width / split
    inputs = 2 if mlp.gated else 1
    up = linear_work(
        device, part, rows=rows, inner=mlp.hidden, columns=inputs * width, groups=groups
    )
    down = linear_work(device, part, rows=rows, inner=width, columns=mlp.hidden, groups=groups)
    elements = rows * groups * width
    # Forward reads the inputs and writes the product; backward also reads the product's gradient
    # and writes the inputs' gradients.
    activation = streaming_work(
        device,
        forward_bytes=2 * (inputs + 1) * elements,
        backward_bytes=2 * (2 * inputs + 1) * elements,
        kernels=1,
    )
    return up + activation + down


def experts_work(device: Device, part: Slice, experts: Experts) -> Work:
    """Normalisation, router, routed and shared experts of one layer.

    Every expert rank gets as many tokens as it routes out, times the imbalance. Each of its
    experts' matrices is split over the tensor ranks.
    """
    share = part.tokens / part.tensor
    hidden = experts.expert.hidden
    router = linear_work(device, part, rows=share, inner=hidden, columns=experts.count)
    visits = part.tokens * experts.per_token * part.imbalance
    local = experts.count / part.expert
    routed = _mlp_products(
        device, part, experts.expert, rows=visits / local, split=part.tensor, groups=local
    )
    # Dispatch and combine each read and write every visit, at its sender and at its expert.
    sorted_bytes = 4 * 4 * visits / part.tensor * hidden
    sorting = streaming_work(
        device, forward_bytes=sorted_bytes, backward_bytes=sorted_bytes, kernels=4
    )
    work = norm_work(device, part, hidden) + router + sorting + routed
    if experts.shared is not None:
        work = work + _mlp_products(
            device, part, experts.shared, rows=part.tokens, split=part.tensor
        )
    return work


def embedding_work(device: Device, part: Slice, hidden: int) -> Work:
    """Looking tokens up, and adding their gradients to the rows' accumulated ones."""
    elements = part.tokens / part.tensor * hidden
    added = (2 + 2 * part.gradient_bytes) * elements
    return streaming_work(device, forward_bytes=4 * elements, backward_bytes=added, kernels=1)


def head_work(device: Device, part: Slice, *, hidden: int, vocabulary: int) -> Work:
    """Last normalisation, output matrix over the vocabulary, and cross-entropy on its slice.

    The loss reads BF16 logits three times forward (maximum, sum, target) and writes their
    gradient in place backward.
    """
    columns = vocabulary / part.tensor
    logits = linear_work(device, part, rows=part.tokens, inner=hidden, columns=columns)
    elements = part.tokens * columns
    loss = streaming_work(
        device, forward_bytes=6 * elements, backward_bytes=4 * elements, kernels=3
    )
    return norm_work(device, part, hidden) + logits + loss
