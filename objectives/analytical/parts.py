"""What computing the parts of a model takes and keeps; independent of every link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from objectives.analytical.batch import Batch
from objectives.analytical.collectives import Traffic
from objectives.analytical.setup import Setup
from objectives.analytical.terms import Load
from objectives.physics.activations import Keeping, Shape, layer_bytes
from objectives.physics.arrays import FloatArray
from objectives.physics.work import (
    Work,
    attention_work,
    embedding_work,
    experts_work,
    head_work,
    mlp_work,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Compute and activations by part.

    Attributes:
        work: By ``dense`` and ``expert`` layers, ``embedding`` and ``head``, as the model has.
        kept: Bytes of activations that a layer keeps, by ``dense`` and ``expert``.
    """

    work: Mapping[str, Work]
    kept: Mapping[str, FloatArray]


def make_parts(setup: Setup, batch: Batch) -> Parts:
    """Compute times and kept activations of every part.

    Args:
        setup: The scenario.
        batch: The configs.
    """
    model, device, part = setup.transformer, batch.device, batch.part
    shape = activation_shape(setup, batch)
    attention = attention_work(device, part, model.attention)
    work = {
        "embedding": embedding_work(device, part, model.hidden),
        "head": head_work(device, part, hidden=model.hidden, vocabulary=model.vocabulary),
    }
    kept = {}
    if model.mlp is not None:
        work["dense"] = attention + mlp_work(device, part, model.mlp)
        kept["dense"] = layer_bytes(shape, model.attention, model.mlp, Keeping())
    if model.experts is not None:
        work["expert"] = attention + experts_work(device, part, model.experts)
        kept["expert"] = layer_bytes(shape, model.attention, model.experts, Keeping())
    return Parts(work=work, kept=kept)


def activation_shape(setup: Setup, batch: Batch) -> Shape:
    """A microbatch of each config, as the activations of a layer see it."""
    return Shape(
        tokens=batch.part.tokens,
        sequence_length=setup.sequence_length,
        tensor=batch.tensor,
        mode=batch.mode,
        operand_bytes=np.where(batch.fp8, 1.0, 2.0),
        imbalance=setup.calibration.software.expert_imbalance,
    )


def rank_loads(setup: Setup, batch: Batch) -> Load:
    """What the representative ranks do, arrays of shape (4, n).

    A multi-token-prediction module is one more layer and one more head on the last stage.
    """
    model, held = setup.transformer, batch.stages
    extra = held.last * float(model.mtp_layers)
    has_experts = model.experts is not None
    return Load(
        dense=held.dense_layers if has_experts else held.dense_layers + extra,
        expert=held.expert_layers + extra if has_experts else held.expert_layers,
        embedding=held.first.astype(np.float64),
        head=held.last.astype(np.float64) * (1 + model.mtp_layers),
    )


def whole_load(setup: Setup, batch: Batch) -> Load:
    """What all ranks of a pipeline do together, arrays of shape (n,)."""
    model, ones = setup.transformer, np.ones(len(batch))
    extra = float(model.mtp_layers)
    has_experts = model.experts is not None
    return Load(
        dense=ones * (model.dense_layers + (0.0 if has_experts else extra)),
        expert=ones * (model.expert_layers + (extra if has_experts else 0.0)),
        embedding=ones,
        head=ones * (1.0 + extra),
    )


def rank_parameters(
    setup: Setup, batch: Batch, planned: Traffic, ranks: Load
) -> tuple[FloatArray, FloatArray]:
    """Parameters before sharding that ranks hold outside and inside the experts.

    A tied head is a second copy of the embedding where it is on another rank. A multi-token-
    prediction module shares the head and joins two hidden vectors into one.

    Args:
        setup: The scenario.
        batch: The configs.
        planned: What a layer has.
        ranks: Arrays of shape (n,) or (4, n).
    """
    model, tensor = setup.transformer, batch.tensor
    dense = 0.0
    if model.mlp is not None:
        dense = model.attention.parameters + model.mlp.parameters + 2.0 * model.norm_parameters
    head = model.vocabulary * model.hidden + float(model.norm_parameters)
    one_head = np.minimum(ranks.head, 1.0)
    own_head = one_head * np.where((ranks.embedding > 0) & model.tied, 0.0, head)
    edges = ranks.embedding * float(model.embedding_parameters) + own_head
    join = (ranks.head - one_head) * (2.0 * model.hidden**2)
    outside = (ranks.dense * dense + edges + join) / tensor
    if model.experts is not None:
        outside = outside + ranks.expert * planned.layer_parameters
    return outside, ranks.expert * planned.expert_layer_parameters
