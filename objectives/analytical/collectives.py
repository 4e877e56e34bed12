"""Every collective of a step: what it moves, over which ranks, and how long it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from objectives.analytical.batch import Batch
from objectives.analytical.setup import Setup
from objectives.physics import traffic
from objectives.physics.arrays import FloatArray, Numbers
from objectives.physics.fabric import Fabric, duration, make_fabric
from objectives.physics.network_constants import network_constants
from objectives.physics.tiers import REGION, SITE, TIERS, Span, span
from objectives.physics.traffic import Demand

GATHER, REDUCE, REPLICATE = "gather", "reduce", "replicate"
EXPERT_GATHER, EXPERT_REDUCE, EXPERT_REPLICATE = (
    "expert gather",
    "expert reduce",
    "expert replicate",
)
TENSOR, TENSOR_VISITS, CONTEXT = "tensor", "tensor visits", "context"
DISPATCH, COMBINE = "dispatch", "combine"
BORDERS = tuple(f"border {tier}" for tier in TIERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Time:
    """How long one collective takes, and on which tiers, arrays of shape (n,) or (5, n).

    Attributes:
        total_s: In all.
        transfer_s: Of the slowest tier alone, without latency.
        share: Of the total by tier, (5, n); sums to 1.
    """

    total_s: FloatArray
    transfer_s: FloatArray
    share: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """The demands of n configs by name, and what scales them.

    Attributes:
        demands: Of one collective each.
        chunks: Pieces of the hierarchical ones, shape (n,); 1 for others.
        borders: Stage borders by tier on one way through the pipeline, five arrays.
        inner_ranks: Pipeline ranks between two borders of a tier or wider, five arrays.
        layer_parameters: That `GATHER` and `REDUCE` move, of one layer before sharding.
        expert_layer_parameters: The same of one layer's experts on this rank.
    """

    demands: Mapping[str, Demand]
    chunks: Mapping[str, Numbers]
    borders: tuple[FloatArray, ...]
    inner_ranks: tuple[FloatArray, ...]
    layer_parameters: FloatArray
    expert_layer_parameters: FloatArray


def fabric_of(setup: Setup, batch: Batch, capacity: Numbers | None = None) -> Fabric:
    """The cluster's links as the configs use them.

    Args:
        setup: The scenario.
        batch: The configs.
        capacity: Of the widest separation's cut in byte/s, shape (n,); its own when not given.
    """
    cluster = setup.cluster
    fabric = make_fabric(
        sizes=setup.sizes,
        node=cluster.node,
        zone=cluster.zone,
        building=cluster.building,
        between_buildings=cluster.between_buildings,
        between_regions=cluster.between_regions,
        knobs=batch.network,
    )
    if capacity is None:
        return fabric
    if fabric.region is not None:
        return replace(fabric, region=replace(fabric.region, capacity_bytes_per_s=capacity))
    assert fabric.site is not None
    return replace(fabric, site=replace(fabric.site, capacity_bytes_per_s=capacity))


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
    spans = {
        name: span(batch.layout.group(*dimensions), setup.sizes)
        for name, dimensions in (
            ("tensor", ("tp",)),
            ("context", ("cp",)),
            ("pipeline", ("pp",)),
            ("shard", ("cp", "shard")),
            ("replicate", ("replicate",)),
        )
    }
    hidden = setup.transformer.hidden
    activation = 2 * batch.part.tokens * hidden
    demands = {
        TENSOR: traffic.hierarchical_gather(spans["tensor"], activation),
        CONTEXT: traffic.ring_gather(spans["context"], _key_value_bytes(setup, batch)),
    }
    scattered = np.where(batch.scatter, batch.tensor, 1.0)
    messages = traffic.neighbour_sends(spans["pipeline"], activation / scattered)
    demands |= dict(zip(BORDERS, messages, strict=True))
    layer = _layer_parameters(setup) / batch.tensor
    demands |= _sharding_demands(batch, spans["shard"], spans["replicate"], layer, batch.shards, "")
    experts = setup.transformer.experts
    local = np.zeros_like(layer)
    if experts is not None:
        local = experts.count * experts.expert.parameters / batch.part.expert / batch.tensor
        demands |= _expert_demands(setup, batch, spans, local)
    pieces = {name: batch.chunks for name in demands if _is_sharding(name)}
    return Traffic(
        demands=demands,
        chunks=pieces,
        borders=traffic.borders(spans["pipeline"]),
        inner_ranks=_inner_ranks(spans["pipeline"]),
        layer_parameters=layer,
        expert_layer_parameters=local,
    )


def durations(
    fabric: Fabric, planned: Traffic, names: tuple[str, ...] | None = None
) -> dict[str, Time]:
    """How long each collective takes.

    Args:
        fabric: The links.
        planned: The demands.
        names: Which; all of them when not given.
    """
    times = {}
    for name in names or tuple(planned.demands):
        got = duration(planned.demands[name], fabric, chunks=planned.chunks.get(name, 1))
        by_tier = np.stack(got.transfer_s) + np.stack(got.latency_s)
        whole = np.sum(by_tier, axis=0)
        busy = whole > 0
        times[name] = Time(
            total_s=got.total_s,
            transfer_s=np.max(np.stack(got.transfer_s), axis=0),
            share=np.where(busy, by_tier / np.where(busy, whole, 1.0), 0.0),
        )
    return times


def _inner_ranks(pipeline: Span) -> tuple[FloatArray, ...]:
    inner = [np.ones(len(pipeline.in_node))]
    inner += [pipeline.ranks_within(tier) * 1.0 for tier in range(len(TIERS) - 1)]
    return tuple(inner)


def _is_sharding(name: str) -> bool:
    return name.removeprefix("expert ") in (GATHER, REDUCE, REPLICATE)


def _key_value_bytes(setup: Setup, batch: Batch) -> FloatArray:
    """Keys and values of a whole microbatch on one tensor rank."""
    attention = setup.transformer.attention
    heads = np.maximum(attention.kv_heads / batch.tensor, 1.0)
    width = heads * (attention.qk_dim + attention.v_dim)
    return 2 * batch.part.tokens * batch.context * width


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
    prefix: str,
) -> dict[str, Demand]:
    """Gather weights, reduce gradients, and sum the shards of replicas, for one layer."""

    def collective(payload: FloatArray) -> Demand:
        return traffic.choose(
            batch.ring | batch.tree,
            traffic.ring_gather(sharded, payload),
            traffic.hierarchical_gather(sharded, payload),
        )

    gradient = batch.sent_gradient_bytes * parameters
    own = gradient / shards
    tiered = traffic.all_reduce(traffic.hierarchical_gather(replicated, own))
    switched = traffic.in_switch_all_reduce(tiered, replicated, own, network_constants())
    summed = traffic.choose(batch.in_switch, switched, tiered)
    flat = traffic.choose(
        batch.tree,
        traffic.tree_all_reduce(replicated, own),
        traffic.all_reduce(traffic.ring_gather(replicated, own)),
    )
    return {
        prefix + GATHER: collective(2 * parameters),
        prefix + REDUCE: collective(gradient),
        prefix + REPLICATE: traffic.choose(batch.ring | batch.tree, flat, summed),
    }


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
    } | _sharding_demands(batch, sharded, spans["replicate"], local, batch.expert_shards, "expert ")
