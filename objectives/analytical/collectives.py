"""Every collective of a step: what it moves and over which ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from objectives.analytical.batch import Batch
from objectives.analytical.setup import Setup
from objectives.physics import traffic
from objectives.physics.arrays import BoolArray, FloatArray
from objectives.physics.network_constants import network_constants
from objectives.physics.tiers import REGION, SITE, TIERS, Span, span
from objectives.physics.traffic import Demand

GATHER, REDUCE, REPLICATE = "gather", "reduce", "replicate"
"""Weights of one layer gathered, its gradients reduced, and its shards summed over replicas."""

EXPERT = "expert "
EXPERT_GATHER, EXPERT_REDUCE, EXPERT_REPLICATE = (
    EXPERT + GATHER,
    EXPERT + REDUCE,
    EXPERT + REPLICATE,
)
TENSOR, TENSOR_VISITS, CONTEXT = "tensor", "tensor visits", "context"
DISPATCH, COMBINE = "dispatch", "combine"
BORDERS = tuple(f"border {tier}" for tier in TIERS)
SHARDING = (GATHER, REDUCE, REPLICATE, EXPERT_GATHER, EXPERT_REDUCE, EXPERT_REPLICATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """The demands of n configs by name, and what scales them.

    Attributes:
        demands: Of one collective each.
        borders: Stage borders by tier on one way through the pipeline, five arrays.
        inner_ranks: Pipeline ranks between two borders of a tier or wider, five arrays.
        layer_parameters: That `GATHER` and `REDUCE` move, of one layer before sharding.
        expert_layer_parameters: The same of one layer's experts on this rank.
    """

    demands: Mapping[str, Demand]
    borders: tuple[FloatArray, ...]
    inner_ranks: tuple[FloatArray, ...]
    layer_parameters: FloatArray
    expert_layer_parameters: FloatArray


def cut_tier(setup: Setup) -> int | None:
    """The tier of the widest separation; None in one building."""
    if setup.cluster.between_regions is not None:
        return REGION
    return None if setup.cluster.between_buildings is None else SITE


def make_traffic(setup: Setup, batch: Batch) -> Traffic:
    """All demands of n configs.

    Args:
        setup: The scenario.
        batch: The configs.
    """
    spans = _spans(setup, batch)
    activation = 2 * batch.part.tokens * setup.transformer.hidden
    demands = {TENSOR: traffic.hierarchical_gather(spans["tensor"], activation)}
    if np.any(batch.context > 1):
        demands[CONTEXT] = traffic.ring_gather(spans["context"], _key_value_bytes(setup, batch))
    message = activation / np.where(batch.scatter, batch.tensor, 1.0)
    borders = traffic.borders(spans["pipeline"])
    messages = traffic.neighbour_sends(spans["pipeline"], message)
    for name, count, demand in zip(BORDERS, borders, messages, strict=True):
        if np.any(count > 0):
            demands[name] = demand
    layer = _layer_parameters(setup) / batch.tensor
    demands |= _sharding_demands(batch, spans["shard"], spans["replicate"], layer, batch.shards)
    experts = setup.transformer.experts
    local = np.zeros_like(layer)
    if experts is not None:
        local = experts.count * experts.expert.parameters / batch.part.expert / batch.tensor
        demands |= _expert_demands(setup, batch, spans, local)
    pipeline = spans["pipeline"]
    inner = [np.ones(len(batch))]
    inner += [pipeline.ranks_within(tier).astype(np.float64) for tier in range(len(TIERS) - 1)]
    return Traffic(
        demands=demands,
        borders=borders,
        inner_ranks=tuple(inner),
        layer_parameters=layer,
        expert_layer_parameters=local,
    )


def _spans(setup: Setup, batch: Batch) -> dict[str, Span]:
    groups = {
        "tensor": ("tp",),
        "context": ("cp",),
        "pipeline": ("pp",),
        "shard": ("cp", "shard"),
        "replicate": ("replicate",),
    }
    return {
        name: span(batch.layout.group(*dimensions), setup.sizes)
        for name, dimensions in groups.items()
    }


def _key_value_bytes(setup: Setup, batch: Batch) -> FloatArray:
    """Keys and values of a whole microbatch on one tensor rank."""
    attention = setup.transformer.attention
    heads = np.maximum(attention.kv_heads / batch.tensor, 1.0)
    width = heads * (attention.qk_dim + attention.v_dim)
    return np.asarray(2 * batch.part.tokens * batch.context * width)


def _layer_parameters(setup: Setup) -> float:
    """Outside the experts, of a layer as most of them are."""
    parts = setup.transformer
    count = parts.attention.parameters + 2 * parts.norm_parameters
    if parts.experts is not None:
        shared = parts.experts.shared.parameters if parts.experts.shared else 0
        return float(count + shared + parts.experts.router_parameters)
    assert parts.mlp is not None
    return float(count + parts.mlp.parameters)


def _sharding_demands(
    batch: Batch,
    sharded: Span,
    replicated: Span,
    parameters: FloatArray,
    shards: FloatArray,
    prefix: str = "",
) -> dict[str, Demand]:
    """Gather weights, reduce gradients, and sum the shards of replicas, for one layer.

    Trees are for all-reduces only; gathers and reduce-scatters of a tree are rings (NCCL).
    """
    flat = batch.ring | batch.tree
    gradient = batch.sent_gradient_bytes * parameters
    gather = _either(
        flat,
        lambda: traffic.ring_gather(sharded, parameters),
        lambda: traffic.hierarchical_gather(sharded, parameters),
    )
    demands = {
        prefix + GATHER: traffic.scaled(gather, 2.0),
        prefix + REDUCE: traffic.scaled(gather, batch.sent_gradient_bytes),
    }
    if np.any(batch.replicas > 1):
        own = gradient / shards

        def tiered() -> Demand:
            plain = traffic.all_reduce(traffic.hierarchical_gather(replicated, own))
            constants = network_constants()
            switched = traffic.in_switch_all_reduce(plain, replicated, own, constants)
            return traffic.choose(batch.in_switch, switched, plain)

        def one_way() -> Demand:
            ring = traffic.all_reduce(traffic.ring_gather(replicated, own))
            return traffic.choose(batch.tree, traffic.tree_all_reduce(replicated, own), ring)

        demands[prefix + REPLICATE] = _either(flat, one_way, tiered)
    return demands


def _either(condition: BoolArray, yes: Callable[[], Demand], no: Callable[[], Demand]) -> Demand:
    """One demand where the condition holds, the other elsewhere; only what is needed is made."""
    if condition.all():
        return yes()
    return traffic.choose(condition, yes(), no()) if condition.any() else no()


def _expert_demands(
    setup: Setup, batch: Batch, spans: Mapping[str, Span], local: FloatArray
) -> dict[str, Demand]:
    experts = setup.transformer.experts
    assert experts is not None
    group = span(batch.layout.expert_group(), setup.sizes)
    sharded = span(batch.layout.expert_shard_group(), setup.sizes)
    elements = batch.part.tokens * setup.transformer.hidden
    imbalance = setup.calibration.software.expert_imbalance
    visits = elements * experts.per_token * imbalance
    across = elements * min(experts.nodes_per_token, experts.per_token) * imbalance
    # Tokens are dispatched in the precision of the products and combined in BF16 (DeepSeek-V3,
    # arXiv 2412.19437, section 3.3.2).
    sent = np.where(batch.fp8, 1.0, 2.0) / batch.tensor
    returned = 2.0 / batch.tensor
    return {
        TENSOR_VISITS: traffic.hierarchical_gather(spans["tensor"], 2 * visits),
        DISPATCH: traffic.all_to_all(group, visits * sent, across * sent),
        COMBINE: traffic.all_to_all(group, visits * returned, across * returned),
    } | _sharding_demands(batch, sharded, spans["replicate"], local, batch.expert_shards, EXPERT)
