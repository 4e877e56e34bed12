"""The links of every tier, and how long a collective takes on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from objectives.physics.arrays import FloatArray, Numbers
from objectives.physics.collectives import stepped_s
from objectives.physics.long_link import LongLink, LongLinkKnobs, share
from objectives.physics.network_constants import NetworkConstants, network_constants
from objectives.physics.tiers import BUILDING, NODE, REGION, SITE, TIERS, ZONE, Span, TierSizes
from objectives.physics.traffic import Demand, PerTier, neighbour_sends


class LinkFigures(Protocol):
    """What a cluster says of the links of one tier."""

    @property
    def bandwidth_bytes_per_s(self) -> float: ...  # noqa: D102
    @property
    def latency_s(self) -> float: ...  # noqa: D102
    @property
    def oversubscription(self) -> float: ...  # noqa: D102


class CutFigures(Protocol):
    """What a cluster says of a cut between buildings or regions."""

    @property
    def capacity_bytes_per_s(self) -> float: ...  # noqa: D102
    @property
    def latency_s(self) -> float: ...  # noqa: D102
    @property
    def loss(self) -> float: ...  # noqa: D102
    @property
    def buffer_bytes(self) -> float | None: ...  # noqa: D102


@dataclass(frozen=True, slots=True, kw_only=True)
class TierLink:
    """Links inside one tier, at the rates that collectives reach.

    Attributes:
        bandwidth_bytes_per_s: Per GPU and direction, for a GPU that sends alone.
        shared_bytes_per_s: Per GPU and direction when all send out of their unit at once.
        latency_s: Per hop, software included.
        ramp_s: What a collective of several steps loses until it runs at the full rate; at most
            as long as its transfer.
    """

    bandwidth_bytes_per_s: Numbers
    shared_bytes_per_s: Numbers
    latency_s: Numbers
    ramp_s: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """All links of a cluster as the n configs use them.

    Attributes:
        sizes: GPUs per unit of each tier.
        links: Inside a node, a zone and a building, in the order of `TIERS`.
        site: The cut between buildings; None where there is one building.
        region: The cut between regions; None where there is one region.
        knobs: How the configs use the cuts.
        constants: Of the network model.
    """

    sizes: TierSizes
    links: tuple[TierLink, TierLink, TierLink]
    site: LongLink | None
    region: LongLink | None
    knobs: LongLinkKnobs
    constants: NetworkConstants


@dataclass(frozen=True, slots=True, kw_only=True)
class Duration:
    """How long one collective takes, and where.

    Attributes:
        transfer_s: By tier, as if the tiers worked one after another, arrays of shape (n,).
        latency_s: By tier, arrays of shape (n,).
        total_s: With the tiers' phases streaming or waiting as they do, shape (n,).
    """

    transfer_s: tuple[FloatArray, ...]
    latency_s: tuple[FloatArray, ...]
    total_s: FloatArray


def make_fabric(
    *,
    sizes: TierSizes,
    node: LinkFigures,
    zone: LinkFigures,
    building: LinkFigures,
    between_buildings: CutFigures | None,
    between_regions: CutFigures | None,
    knobs: LongLinkKnobs,
    constants: NetworkConstants | None = None,
) -> Fabric:
    """Turn a cluster's nominal figures into the rates that collectives reach.

    Args:
        sizes: GPUs per unit of each tier.
        node: Links inside a node.
        zone: Links between the nodes of a zone, per GPU.
        building: Links between the zones of a building, per GPU.
        between_buildings: The cut out of one building.
        between_regions: The cut out of one region.
        knobs: How the configs use the cuts.
        constants: Of the network model; the shipped ones when not given.
    """
    known = constants or network_constants()
    network = known.network_link_efficiency
    return Fabric(
        sizes=sizes,
        links=(
            _tier_link(node, known.node_link_efficiency, known.node_ramp_s, known),
            _tier_link(zone, network, known.network_ramp_s, known),
            _tier_link(building, network, known.network_ramp_s, known),
        ),
        site=_long_link(between_buildings, sizes.building, known),
        region=_long_link(between_regions, sizes.region, known),
        knobs=knobs,
        constants=known,
    )


def duration(demand: Demand, fabric: Fabric, *, chunks: Numbers = 1) -> Duration:
    """Seconds that a collective takes when all groups of the layout run it at once.

    Flat algorithms stream through all tiers: the slowest decides. Hierarchical ones go tier by
    tier; cut into c chunks, one tier works on a chunk while the next has the one before, so
    that the slowest tier takes its whole time and the others 1/c of theirs. The tiers outside
    the node share each GPU's network card. Every chunk pays the short hops of the tier it
    waits for again; propagation over a cut is paid once, since chunks follow one another.

    Args:
        demand: What the collective asks.
        fabric: The links.
        chunks: c, at least 1; 1 waits for each phase to end.
    """
    figures = [_tier_seconds(demand, fabric, tier) for tier in range(len(TIERS))]
    transfer = tuple(seconds for seconds, _ in figures)
    latency = tuple(seconds for _, seconds in figures)
    ramps = [np.asarray(link.ramp_s, dtype=np.float64) for link in fabric.links]
    ramps += [np.zeros(1), np.zeros(1)]
    channels = fabric.constants.collective_channels
    flat = _steps_s(
        np.max(np.stack(transfer), axis=0),
        np.sum(np.stack(latency), axis=0),
        np.sum(np.stack(demand.hops), axis=0),
        np.where(demand.endpoint_bytes[ZONE] > 0, ramps[ZONE], ramps[NODE]),
        channels,
    )
    phases = [
        _steps_s(t / chunks, a, r, ramp, channels)
        for t, a, r, ramp in zip(transfer, latency, demand.hops, ramps, strict=True)
    ]
    further = (np.asarray(chunks, dtype=np.float64) - 1) * _slowest(
        demand, fabric, phases, transfer, chunks
    )
    phased = np.sum(np.stack(phases), axis=0) + further
    return Duration(
        transfer_s=transfer,
        latency_s=latency,
        total_s=np.where(demand.sequential, phased, flat),
    )


def neighbour_seconds(span: Span, payload_bytes: Numbers, fabric: Fabric) -> PerTier:
    """Seconds of one message to the next rank of a pipeline, over a border of each tier.

    All pipelines send over the same border at once. `traffic.borders` says how many borders of
    each tier a pipeline has.

    Args:
        span: Where the pipeline's ranks are.
        payload_bytes: What one GPU sends to the next stage.
        fabric: The links.

    Returns:
        Arrays of shape (n,), one per tier; zero where the pipeline has no such border.
    """
    sends = neighbour_sends(span, payload_bytes)
    return tuple(duration(demand, fabric).total_s for demand in sends)


def cut_bytes(demand: Demand, fabric: Fabric) -> FloatArray:
    """Bytes that leave one building per direction, all groups together, shape (n,).

    Args:
        demand: Of one collective of one group.
        fabric: Where it runs.
    """
    return np.asarray(demand.average_bytes[SITE] * fabric.sizes.building, dtype=np.float64)


def _tier_seconds(demand: Demand, fabric: Fabric, tier: int) -> tuple[FloatArray, FloatArray]:
    """Transfer and latency of one tier."""
    endpoint = demand.endpoint_bytes[tier]
    average = demand.average_bytes[tier]
    hops = demand.hops[tier]
    cut = {SITE: fabric.site, REGION: fabric.region}.get(tier)
    if cut is None:
        # A cluster without such a cut has no groups that cross one; never let them cross free.
        link = fabric.links[min(tier, BUILDING)]
        seconds = np.maximum(
            endpoint / link.bandwidth_bytes_per_s, average / link.shared_bytes_per_s
        )
        return np.asarray(seconds), np.asarray(hops * link.latency_s)
    crosses = endpoint > 0
    if not crosses.any():
        return np.zeros_like(endpoint), np.zeros_like(endpoint)
    senders = np.where(crosses, average / np.where(crosses, endpoint, 1.0), 0.0) * cut.gpus
    got = share(
        cut,
        fabric.knobs,
        fabric.constants,
        senders=senders,
        message_bytes=endpoint,
        card_bytes_per_s=fabric.links[ZONE].bandwidth_bytes_per_s,
    )
    per_hop = np.asarray(cut.latency_s, dtype=np.float64) + fabric.constants.step_overhead_s
    delay = np.where(crosses, got.delay_s, 0.0)
    return endpoint / got.rate_bytes_per_s, np.asarray(hops * per_hop + delay)


def _steps_s(
    transfer: FloatArray, latency: FloatArray, steps: FloatArray, ramp: FloatArray, channels: float
) -> FloatArray:
    """One phase: its steps, and the ramp where there are several."""
    seconds = stepped_s(transfer_s=transfer, latency_s=latency, steps=steps, channels=channels)
    several = 1 - 1 / np.maximum(steps, 1.0)
    return np.asarray(seconds + several * np.minimum(ramp, transfer))


def _slowest(
    demand: Demand,
    fabric: Fabric,
    phases: list[FloatArray],
    transfer: tuple[FloatArray, ...],
    chunks: Numbers,
) -> FloatArray:
    """What each further chunk adds: the stage that holds the others up."""
    stages = phases[:SITE]
    for tier in (SITE, REGION):
        launch = np.where(transfer[tier] > 0, fabric.constants.step_overhead_s, 0.0)
        stages.append(transfer[tier] / chunks + launch)
    card = fabric.links[ZONE].bandwidth_bytes_per_s
    stages.append(np.sum(np.stack(demand.endpoint_bytes[ZONE:]), axis=0) / card / chunks)
    return np.asarray(np.max(np.stack(stages), axis=0))


def _tier_link(
    figures: LinkFigures, efficiency: float, ramp_s: float, constants: NetworkConstants
) -> TierLink:
    rate = figures.bandwidth_bytes_per_s * efficiency
    return TierLink(
        bandwidth_bytes_per_s=rate,
        shared_bytes_per_s=rate / figures.oversubscription,
        latency_s=figures.latency_s + constants.step_overhead_s,
        ramp_s=ramp_s,
    )


def _long_link(
    figures: CutFigures | None, gpus: int, constants: NetworkConstants
) -> LongLink | None:
    if figures is None:
        return None
    buffer = figures.buffer_bytes
    return LongLink(
        capacity_bytes_per_s=figures.capacity_bytes_per_s,
        latency_s=figures.latency_s,
        loss=figures.loss,
        buffer_bytes=constants.default_buffer_bytes if buffer is None else buffer,
        gpus=gpus,
    )
