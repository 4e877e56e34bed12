"""One training step: the slowest pipeline rank, the fill and drain, and what is left outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from objectives.analytical.batch import Batch
from objectives.analytical.collectives import Time, Traffic
from objectives.analytical.layer import (
    COMPUTE,
    OFFLOAD,
    Cost,
    Parts,
    Terms,
    edge_cost,
    layer_cost,
    total,
)
from objectives.analytical.messages import message_terms
from objectives.analytical.setup import Setup
from objectives.analytical.sharding import host_optimizer_s, sharding_terms
from objectives.physics.arrays import FloatArray
from objectives.physics.compute import optimizer_s
from objectives.physics.schedules import bubble_s

BUBBLE, OPTIMIZER = "bubble", "optimizer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one rank does per microbatch, as multiples of the parts; arrays of shape (n,).

    Attributes:
        dense: Layers with a plain MLP.
        expert: Layers with experts.
        embedding: Embeddings, 0 or 1.
        head: Heads, more than one with multi-token prediction.
    """

    dense: FloatArray
    expert: FloatArray
    embedding: FloatArray
    head: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of n configs.

    Attributes:
        terms: Seconds by term; communication by collective. They sum to the step time.
        pace_s: Per microbatch of the slowest rank.
    """

    terms: Terms
    pace_s: FloatArray

    @property
    def time_s(self) -> FloatArray:
        """Of the whole step, shape (n,)."""
        return total(self.terms.values())


def loads(setup: Setup, batch: Batch) -> Load:
    """What the representative ranks do, arrays of shape (4, n).

    A multi-token-prediction module is one more layer and one more head on the last stage.
    """
    model, held = setup.transformer, batch.stages
    extra = held.last * float(model.mtp_layers)
    has_experts = model.experts is not None
    return Load(
        dense=held.dense_layers + (0.0 if has_experts else extra),
        expert=held.expert_layers + (extra if has_experts else 0.0),
        embedding=held.first * 1.0,
        head=held.last * (1.0 + model.mtp_layers),
    )


def step(
    setup: Setup, batch: Batch, parts: Parts, planned: Traffic, times: Mapping[str, Time]
) -> Step:
    """Put a step together.

    Args:
        setup: The scenario.
        batch: The configs.
        parts: What computing takes.
        planned: The collectives.
        times: How long they take.
    """
    costs = _costs(setup, batch, parts, planned, times)
    ranks = loads(setup, batch)
    slowest = _slowest(costs, ranks)
    pace = _weighted({name: cost.total_s for name, cost in costs.items()}, slowest)
    weight = _weighted({name: cost.weight_s for name, cost in costs.items()}, slowest)
    terms = _steady_terms(batch, costs, slowest)
    terms[BUBBLE] = _bubble(setup, batch, costs, slowest)
    forward = {name: cost.forward[COMPUTE] for name, cost in costs.items()}
    backward = {name: cost.backward[COMPUTE] + cost.weight_s for name, cost in costs.items()}
    _merge(terms, message_terms(setup, batch, planned, times, pace_s=pace, weight_s=weight))
    outside, inside = rank_parameters(setup, batch, planned, ranks)
    sharded = sharding_terms(
        setup,
        batch,
        planned,
        times,
        outside=np.max(outside, axis=0),
        inside=np.max(inside, axis=0),
        forward_s=_weighted(forward, slowest),
        backward_s=_weighted(backward, slowest),
    )
    _merge(terms, sharded)
    own = np.max(outside / batch.shards + inside / batch.expert_shards, axis=0)
    terms[OPTIMIZER] = optimizer_s(batch.device, own * (1 - batch.optimizer_offload))
    _merge(terms, {OFFLOAD: host_optimizer_s(setup, batch, own)})
    return Step(terms=terms, pace_s=pace)


def rank_parameters(
    setup: Setup, batch: Batch, planned: Traffic, ranks: Load
) -> tuple[FloatArray, FloatArray]:
    """Parameters before sharding that ranks hold outside and inside the experts.

    Args:
        setup: The scenario.
        batch: The configs.
        planned: What a layer has.
        ranks: Arrays of shape (n,) or (4, n).
    """
    model = setup.transformer
    tensor = batch.tensor
    dense = 0.0
    if model.mlp is not None:
        layer = model.attention.parameters + model.mlp.parameters + 2 * model.norm_parameters
        dense = layer / tensor
    mixed = planned.layer_parameters if model.experts is not None else 0.0
    embedding = model.embedding_parameters / tensor
    head = (model.vocabulary * model.hidden + model.norm_parameters) / tensor
    # A module shares the head; it joins two hidden vectors into one.
    one_head = np.minimum(ranks.head, 1.0)
    join = (ranks.head - one_head) * 2 * model.hidden**2 / tensor
    shared = np.where((ranks.embedding > 0) & model.tied, 0.0, head)
    outside = (
        ranks.dense * dense
        + ranks.expert * mixed
        + ranks.embedding * embedding
        + one_head * shared
        + join
    )
    return outside, ranks.expert * planned.expert_layer_parameters


def _costs(
    setup: Setup, batch: Batch, parts: Parts, planned: Traffic, times: Mapping[str, Time]
) -> dict[str, Cost]:
    model = setup.transformer
    costs = {
        "embedding": edge_cost(setup, batch, parts.embedding, times, head=False),
        "head": edge_cost(setup, batch, parts.head, times, head=True),
    }
    for name, work, mlp in (
        ("dense", parts.dense, model.mlp),
        ("expert", parts.expert, model.experts),
    ):
        if work is not None and mlp is not None:
            costs[name] = layer_cost(
                setup,
                batch,
                work,
                mlp,
                kept_bytes=parts.kept[name],
                planned=planned,
                times=times,
            )
    return costs


def _weighted(values: Mapping[str, FloatArray], ranks: Load) -> FloatArray:
    """Sum of the parts' values times how often each is done."""
    return np.sum(
        np.stack([getattr(ranks, name) * value for name, value in values.items()]), axis=0
    )


def _slowest(costs: Mapping[str, Cost], ranks: Load) -> Load:
    """The load of the rank that sets the pace, arrays of shape (n,)."""
    seconds = _weighted({name: cost.total_s for name, cost in costs.items()}, ranks)
    worst = np.argmax(seconds, axis=0)[None, :]

    def pick(values: FloatArray) -> FloatArray:
        return np.take_along_axis(values, worst, axis=0)[0]

    return Load(
        dense=pick(ranks.dense),
        expert=pick(ranks.expert),
        embedding=pick(ranks.embedding),
        head=pick(ranks.head),
    )


def _steady_terms(batch: Batch, costs: Mapping[str, Cost], slowest: Load) -> Terms:
    """All microbatches on the slowest rank, by term."""
    terms: Terms = {}
    for name, cost in costs.items():
        times = batch.pipeline.microbatches * getattr(slowest, name)
        _merge(terms, {COMPUTE: times * cost.weight_s})
        for group in (cost.forward, cost.backward):
            _merge(terms, {term: times * seconds for term, seconds in group.items()})
    return terms


def _bubble(setup: Setup, batch: Batch, costs: Mapping[str, Cost], slowest: Load) -> FloatArray:
    """What the slowest rank waits for the others, whose mean decides how fast it fills."""
    model = setup.transformer
    mtp = float(model.mtp_layers)
    ones = np.ones(len(batch))
    everything = Load(
        dense=ones * (model.dense_layers + (0.0 if model.experts else mtp)),
        expert=ones * (model.expert_layers + (mtp if model.experts else 0.0)),
        embedding=ones,
        head=ones * (1.0 + mtp),
    )
    others = np.maximum(batch.pipeline.ranks - 1, 1)

    def mean(values: Mapping[str, FloatArray]) -> FloatArray:
        return (_weighted(values, everything) - _weighted(values, slowest)) / others

    return bubble_s(
        batch.pipeline,
        forward_s=mean({name: cost.forward_s for name, cost in costs.items()}),
        input_grad_s=mean({name: cost.backward_s for name, cost in costs.items()}),
        weight_grad_s=mean({name: cost.weight_s for name, cost in costs.items()}),
    )


def _merge(terms: Terms, more: Mapping[str, FloatArray]) -> None:
    for name, seconds in more.items():
        terms[name] = terms[name] + seconds if name in terms else seconds
