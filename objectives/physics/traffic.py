"""What a collective over several tiers asks of each tier's links.

A `Demand` counts bytes and hops; how long it takes on given links is `objectives.physics.fabric`.
All groups of the layout are taken to run their collective at the same time, so that shared
capacity is counted per GPU. ``S`` is the whole vector in bytes, ``n`` the ranks, ``g`` those in
one node.

References:
    Those of `objectives.physics.collectives`; a ring per tier over what the inner tiers left:
    Cho et al., "BlueConnect", MLSys 2019, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from objectives.physics.arrays import BoolArray, FloatArray, IntArray, Numbers
from objectives.physics.network_constants import NetworkConstants
from objectives.physics.tiers import NODE, SITE, TIERS, ZONE, Span

PerTier = tuple[FloatArray, ...]
"""One array of shape (n,) per tier, in the order of `TIERS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Bytes and hops that one collective puts on each tier, per direction.

    Attributes:
        endpoint_bytes: Sent by the busiest GPU over its link of this tier.
        average_bytes: Leaving one unit of the next inner tier, per GPU of that unit; equal to
            ``endpoint_bytes`` where every GPU of the unit sends, smaller where few do.
        hops: Links of this tier that follow one another on the critical path.
        sequential: Where the tiers' phases wait for each other (hierarchical) rather than
            stream through one another (flat), shape (n,).
    """

    endpoint_bytes: PerTier
    average_bytes: PerTier
    hops: PerTier
    sequential: BoolArray

    @property
    def cut_bytes_per_gpu(self) -> FloatArray:
        """Bytes that leave a building, per GPU of it and per direction, shape (n,)."""
        return self.average_bytes[SITE]


def hierarchical_gather(span: Span, payload_bytes: Numbers) -> Demand:
    """All-gather from outside in, or reduce-scatter from inside out, a ring on each tier.

    The f members of a tier pass (f-1)/f * S/P each, where P ranks share one unit further in:
    every GPU and every network card takes part.

    Args:
        span: Where the group's ranks are.
        payload_bytes: S, shape (n,) or a number.
    """
    endpoint: list[FloatArray] = []
    hops: list[FloatArray] = []
    inner = np.ones_like(span.in_node)
    for fanout in span.fanouts:
        endpoint.append(np.asarray((fanout - 1) / fanout * payload_bytes / inner))
        hops.append(np.asarray(fanout - 1, dtype=np.float64))
        inner = inner * fanout
    return Demand(
        endpoint_bytes=tuple(endpoint),
        average_bytes=tuple(endpoint),
        hops=tuple(hops),
        sequential=np.ones_like(span.in_node, dtype=np.bool_),
    )


def ring_gather(span: Span, payload_bytes: Numbers) -> Demand:
    """All-gather or reduce-scatter as rings through all ranks, neighbours next to each other.

    Each rank passes V = (n-1)/n S. With g ranks in a node there are g rings, one for each of
    their network cards, so a card carries V/g. Only the edge nodes of a zone or building cross
    its border, V in all per group and direction. A part travels n-1 of the n edges once; of
    the longest ones it meets all.

    Args:
        span: Where the group's ranks are.
        payload_bytes: S, shape (n,) or a number.
    """
    return _flat(span, (span.size - 1) / span.size * payload_bytes, _ring_hops(span))


def tree_all_reduce(span: Span, payload_bytes: Numbers) -> Demand:
    """All-reduce over two complementary binary trees of nodes, a chain inside each node.

    A rank passes 2 S. Each tree crosses a border on two edges, half the vector up and half down
    on each, so that 2 S leave a unit per group. Up and down take 2 log2 hops per tier.

    Args:
        span: Where the group's ranks are.
        payload_bytes: S, shape (n,) or a number.
    """
    hops: list[FloatArray] = [np.asarray(2.0 * (span.in_node - 1), dtype=np.float64)]
    for tier, fanout in enumerate(span.fanouts[ZONE:], start=ZONE):
        # A subtree that starts beyond a site border comes back over it to its parent.
        back = np.where((fanout > 1) & (tier >= SITE), 1.0, 0.0)
        hops.append(2 * (np.ceil(np.log2(fanout)) + back))
    moved = np.where(span.size > 1, 2.0, 0.0) * payload_bytes
    return _flat(span, moved, tuple(hops))


def all_reduce(gather: Demand) -> Demand:
    """A reduce-scatter and an all-gather of the same vector, one after the other.

    Args:
        gather: Either of the two.
    """
    return scaled(gather, 2.0, hops=2.0)


def in_switch_all_reduce(
    demand: Demand, span: Span, payload_bytes: Numbers, constants: NetworkConstants
) -> Demand:
    """Replace the node's part of an all-reduce by one inside the NVLink switch, where that helps.

    Each GPU sends (1 + 1/g) S instead of 2 (g-1)/g S: fewer bytes from four GPUs on, at a rate
    of its own, which is folded into the bytes. An all-gather or reduce-scatter gains no bytes,
    so it stays a ring.

    Args:
        demand: An all-reduce.
        span: Where its ranks are.
        payload_bytes: S.
        constants: Of the network model.
    """
    g = span.in_node
    slower = constants.node_link_efficiency / constants.switch_reduction_efficiency
    switched = np.asarray((1 + 1 / g) * payload_bytes * slower)
    helps = (g > 1) & (switched < demand.endpoint_bytes[NODE])
    bytes_ = np.where(helps, switched, demand.endpoint_bytes[NODE])
    most = np.minimum(demand.hops[NODE], constants.switch_reduction_steps)
    hops = np.where(helps, most, demand.hops[NODE])
    return Demand(
        endpoint_bytes=(bytes_, *demand.endpoint_bytes[ZONE:]),
        average_bytes=(bytes_, *demand.average_bytes[ZONE:]),
        hops=(hops, *demand.hops[ZONE:]),
        sequential=demand.sequential,
    )


def all_to_all(
    span: Span, payload_bytes: Numbers, network_payload_bytes: Numbers | None = None
) -> Demand:
    """Every rank sends an equal part of its payload to every rank, all at once.

    Args:
        span: Where the group's ranks are.
        payload_bytes: What one rank sends in all, its own part included.
        network_payload_bytes: The same for what leaves the node, where tokens for several
            experts of one node travel only once; ``payload_bytes`` when not given.
    """
    network = payload_bytes if network_payload_bytes is None else network_payload_bytes
    size = span.size
    outside: list[FloatArray] = [np.asarray((span.in_node - 1) / size * payload_bytes)]
    for tier in range(ZONE, len(TIERS)):
        outside.append(np.asarray((size - span.ranks_within(tier - 1)) / size * network))
    hops = tuple(np.where(fanout > 1, 1.0, 0.0) for fanout in span.fanouts)
    return Demand(
        endpoint_bytes=tuple(outside),
        average_bytes=tuple(outside),
        hops=hops,
        sequential=np.zeros_like(size, dtype=np.bool_),
    )


def neighbour_sends(span: Span, payload_bytes: Numbers) -> tuple[Demand, ...]:
    """Each rank of a pipeline sends one message to the next, seen from each tier of border.

    Args:
        span: Where the pipeline's ranks are.
        payload_bytes: What one GPU sends to the next stage.

    Returns:
        One demand per tier: the message over a border of that tier, zero where the pipeline has
        none there.
    """
    return tuple(_send(span, payload_bytes, tier) for tier in range(len(TIERS)))


def borders(span: Span) -> PerTier:
    """Neighbouring pairs of a chain through all ranks, by the tier of the link between them.

    Args:
        span: Where the chain's ranks are.

    Returns:
        Counts that sum to the ranks less one.
    """
    units = [span.size // span.ranks_within(tier) for tier in range(len(TIERS))]
    counts = [span.size - units[NODE]]
    counts += [units[tier - 1] - units[tier] for tier in range(ZONE, len(TIERS))]
    return tuple(np.asarray(count, dtype=np.float64) for count in counts)


def scaled(demand: Demand, factor: Numbers, *, hops: Numbers = 1.0) -> Demand:
    """The same collective with more or fewer bytes and hops.

    Args:
        demand: What to scale.
        factor: For all bytes.
        hops: For all hops.
    """
    return Demand(
        endpoint_bytes=tuple(np.asarray(b * factor) for b in demand.endpoint_bytes),
        average_bytes=tuple(np.asarray(b * factor) for b in demand.average_bytes),
        hops=tuple(np.asarray(h * hops) for h in demand.hops),
        sequential=demand.sequential,
    )


def choose(condition: BoolArray, yes: Demand, no: Demand) -> Demand:
    """One demand where the condition holds, the other elsewhere.

    Args:
        condition: Shape (n,).
        yes: Taken where it holds.
        no: Taken where it does not.
    """

    def pick(a: PerTier, b: PerTier) -> PerTier:
        return tuple(np.where(condition, x, y) for x, y in zip(a, b, strict=True))

    return Demand(
        endpoint_bytes=pick(yes.endpoint_bytes, no.endpoint_bytes),
        average_bytes=pick(yes.average_bytes, no.average_bytes),
        hops=pick(yes.hops, no.hops),
        sequential=np.where(condition, yes.sequential, no.sequential),
    )


def _flat(span: Span, moved_bytes: FloatArray, hops: PerTier) -> Demand:
    """Rings or trees that stream through all ranks, as many as the group has cards in a node."""
    endpoint: list[FloatArray] = [np.where(span.in_node > 1, moved_bytes, 0.0)]
    average = [endpoint[0]]
    for tier in range(ZONE, len(TIERS)):
        crosses = span.size > span.ranks_within(tier - 1)
        endpoint.append(np.where(crosses, moved_bytes / span.in_node, 0.0))
        average.append(np.where(crosses, moved_bytes / span.ranks_within(tier - 1), 0.0))
    return Demand(
        endpoint_bytes=tuple(endpoint),
        average_bytes=tuple(average),
        hops=hops,
        sequential=np.zeros_like(span.in_node, dtype=np.bool_),
    )


def _ring_hops(span: Span) -> PerTier:
    """Edges by tier of the closed ring, less one of the shortest."""
    counts = list(borders(span))
    several = span.size > 1
    outermost = np.zeros_like(span.size)
    for tier, fanout in enumerate(span.fanouts):
        outermost = np.where(fanout > 1, tier, outermost)
    innermost = np.zeros_like(span.size)
    for tier in reversed(range(len(TIERS))):
        innermost = np.where(span.fanouts[tier] > 1, tier, innermost)
    for tier in range(len(TIERS)):
        closing = np.where(several & (outermost == tier), 1.0, 0.0)
        skipped = np.where(several & (innermost == tier), 1.0, 0.0)
        counts[tier] = counts[tier] + closing - skipped
    return tuple(counts)


def _send(span: Span, payload_bytes: Numbers, tier: int) -> Demand:
    """One message over a border of the given tier, on all of the border's ranks at once."""
    zeros = np.zeros_like(span.size, dtype=np.float64)
    there = np.where(span.fanouts[tier] > 1, 1.0, 0.0)
    inner: IntArray = span.ranks_within(tier - 1) if tier else np.ones_like(span.size)
    endpoint = [zeros] * len(TIERS)
    average = [zeros] * len(TIERS)
    hops = [zeros] * len(TIERS)
    endpoint[tier] = there * payload_bytes
    average[tier] = there * payload_bytes / inner
    hops[tier] = there
    return Demand(
        endpoint_bytes=tuple(endpoint),
        average_bytes=tuple(average),
        hops=tuple(hops),
        sequential=np.zeros_like(span.size, dtype=np.bool_),
    )
