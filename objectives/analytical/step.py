"""One training step: the slowest pipeline rank, the fill and drain, and what is left outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from objectives.analytical.batch import Batch
from objectives.analytical.collectives import Traffic
from objectives.analytical.layer import edge_cost, layer_cost
from objectives.analytical.messages import message_terms
from objectives.analytical.parts import Parts, rank_loads, rank_parameters, whole_load
from objectives.analytical.setup import Setup
from objectives.analytical.sharding import host_optimizer_s, sharding_terms
from objectives.analytical.terms import (
    BUBBLE,
    OFFLOAD,
    OPTIMIZER,
    SLOWDOWN,
    Cost,
    Load,
    Terms,
    merge,
    total,
)
from objectives.analytical.times import Times
from objectives.physics.arrays import FloatArray
from objectives.physics.compute import optimizer_s
from objectives.physics.schedules import bubble_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """All microbatches on the rank that sets the pace; arrays of shape (n,).

    Attributes:
        terms: Seconds per step by term, with the idle time of the pipeline and the optimizer.
        pace_s: Per microbatch.
        weight_s: Of that, weight gradients.
        forward_s: Of a microbatch, the forward pass.
        backward_s: Of a microbatch, the backward pass.
        outside: Parameters of the fullest rank outside the experts, before sharding.
        inside: The same inside the experts.
    """

    terms: Terms
    pace_s: FloatArray
    weight_s: FloatArray
    forward_s: FloatArray
    backward_s: FloatArray
    outside: FloatArray
    inside: FloatArray


def steady(setup: Setup, batch: Batch, parts: Parts, planned: Traffic, times: Times) -> Steady:
    """The part of a step that repeats with every microbatch.

    Args:
        setup: The scenario.
        batch: The configs.
        parts: What computing takes.
        planned: The collectives.
        times: How long they take.
    """
    costs = _costs(setup, batch, parts, planned, times)
    ranks = rank_loads(setup, batch)
    forward = {name: total(cost.forward.values()) for name, cost in costs.items()}
    backward = {name: total(cost.backward.values()) for name, cost in costs.items()}
    weight = {name: total(cost.weight.values()) for name, cost in costs.items()}
    passes = {name: forward[name] + backward[name] + weight[name] for name in costs}
    slowest = _slowest(ranks.weigh(passes), ranks)
    terms = _by_term(batch, costs, slowest)
    terms[BUBBLE] = _bubble(setup, batch, slowest, forward, backward, weight)
    outside, inside = rank_parameters(setup, batch, planned, ranks)
    own = np.max(outside / batch.shards + inside / batch.expert_shards, axis=0)
    terms[OPTIMIZER] = optimizer_s(batch.device, own * (1 - batch.optimizer_offload))
    merge(terms, {OFFLOAD: host_optimizer_s(setup, batch, own)})
    return Steady(
        terms=terms,
        pace_s=slowest.weigh(passes),
        weight_s=slowest.weigh(weight),
        forward_s=slowest.weigh(forward),
        backward_s=slowest.weigh(backward) + slowest.weigh(weight),
        outside=np.max(outside, axis=0),
        inside=np.max(inside, axis=0),
    )


def edges(setup: Setup, batch: Batch, planned: Traffic, times: Times, core: Steady) -> Terms:
    """What comes on top of the steady part: messages between stages, and data parallelism.

    Args:
        setup: The scenario.
        batch: The configs.
        planned: The collectives.
        times: How long they take.
        core: The steady part.
    """
    pipeline = batch.pipeline
    half = pipeline.ranks / 2 / pipeline.chunks
    terms = message_terms(
        setup,
        batch,
        planned,
        times,
        pace_s=core.pace_s,
        weight_s=core.weight_s,
        bubble_s=core.terms[BUBBLE],
        fill_s=half * (core.pace_s - core.weight_s),
    )
    # Passes that wait for messages leave more time to hide in.
    waits = total(terms.values()) - terms[SLOWDOWN]
    longer = 1 + waits / (pipeline.microbatches * core.pace_s)
    sharded = sharding_terms(
        setup,
        batch,
        planned,
        times,
        outside=core.outside,
        inside=core.inside,
        forward_s=core.forward_s * longer,
        backward_s=core.backward_s * longer,
    )
    merge(terms, sharded)
    return terms


def _costs(
    setup: Setup, batch: Batch, parts: Parts, planned: Traffic, times: Times
) -> dict[str, Cost]:
    model, work = setup.transformer, parts.work
    costs = {
        "embedding": edge_cost(setup, work["embedding"], times, head=False),
        "head": edge_cost(setup, work["head"], times, head=True),
    }
    for name, mlp in (("dense", model.mlp), ("expert", model.experts)):
        if mlp is not None:
            costs[name] = layer_cost(
                setup,
                batch,
                work[name],
                mlp,
                kept_bytes=parts.kept[name],
                planned=planned,
                times=times,
            )
    return costs


def _slowest(seconds: FloatArray, ranks: Load) -> Load:
    """The load of the rank that sets the pace, arrays of shape (n,)."""
    worst = np.argmax(seconds, axis=0), np.arange(seconds.shape[1])
    return Load(
        dense=ranks.dense[worst],
        expert=ranks.expert[worst],
        embedding=ranks.embedding[worst],
        head=ranks.head[worst],
    )


def _by_term(batch: Batch, costs: Mapping[str, Cost], slowest: Load) -> Terms:
    """All microbatches on the slowest rank, by term."""
    terms: Terms = {}
    for name, cost in costs.items():
        times = batch.pipeline.microbatches * getattr(slowest, name)
        for group in (cost.forward, cost.backward, cost.weight):
            merge(terms, {term: times * seconds for term, seconds in group.items()})
    return terms


def _bubble(
    setup: Setup,
    batch: Batch,
    slowest: Load,
    forward: Mapping[str, FloatArray],
    backward: Mapping[str, FloatArray],
    weight: Mapping[str, FloatArray],
) -> FloatArray:
    """What the slowest rank waits for the others, whose mean decides how fast it fills."""
    everything = whole_load(setup, batch)
    others = np.maximum(batch.pipeline.ranks - 1, 1)

    def mean(values: Mapping[str, FloatArray]) -> FloatArray:
        return (everything.weigh(values) - slowest.weigh(values)) / others

    return bubble_s(
        batch.pipeline,
        forward_s=mean(forward),
        input_grad_s=mean(backward),
        weight_grad_s=mean(weight),
    )
