"""Which tiers of the network a group of ranks spans.

The tiers, from inside out: ranks in one node talk over the node's own links, nodes over the
zone's network, zones over the building's, buildings over the cut between buildings, regions over
the cut between regions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from objectives.physics.arrays import BoolArray, IntArray
from objectives.physics.layout import Group

TIERS = ("node", "zone", "building", "site", "region")
"""By the unit inside of which (the last two: between which) a tier's links run."""

NODE, ZONE, BUILDING, SITE, REGION = range(len(TIERS))


@dataclass(frozen=True, slots=True, kw_only=True)
class TierSizes:
    """GPUs in one unit of each tier; each divides the next.

    Attributes:
        node: GPUs that share a node.
        zone: GPUs that share a zone.
        building: GPUs in a building.
        region: GPUs in a region.
    """

    node: int
    zone: int
    building: int
    region: int

    @classmethod
    def nested(cls, *, node: int, zone: int, building: int, region: int) -> TierSizes:
        """Make units nest, by the largest blocks that never straddle a boundary.

        A building of 8,192 GPUs with zones of 3,072 becomes eight blocks of 1,024: conservative,
        because two blocks of one real zone then count as different zones. For buildings of
        different sizes pass their greatest common divisor.

        Args:
            node: GPUs per node.
            zone: GPUs per zone.
            building: GPUs per building.
            region: GPUs per region. A unit that is larger than the next is cut to it.
        """
        building = math.gcd(min(building, region), region)
        zone = math.gcd(min(zone, building), building)
        node = math.gcd(min(node, zone), zone)
        return cls(node=node, zone=zone, building=building, region=region)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """How a group of ranks spreads over the tiers; the product of the five is its size.

    Attributes:
        in_node: Ranks of the group that share a node, shape (n,).
        nodes: Nodes with ranks of the group that share a zone, shape (n,).
        zones: Zones that share a building, shape (n,).
        buildings: Buildings that share a region, shape (n,).
        regions: Regions, shape (n,).
        aligned: False where a group straddles a boundary unevenly, so that fewer ranks are
            counted as neighbours than some of the groups have (conservative), shape (n,).
    """

    in_node: IntArray
    nodes: IntArray
    zones: IntArray
    buildings: IntArray
    regions: IntArray
    aligned: BoolArray

    @property
    def fanouts(self) -> tuple[IntArray, ...]:
        """Members per tier, in the order of `TIERS`."""
        return (self.in_node, self.nodes, self.zones, self.buildings, self.regions)

    @property
    def size(self) -> IntArray:
        """Ranks in the group, shape (n,)."""
        return self.ranks_within(REGION)

    @property
    def sites(self) -> IntArray:
        """Buildings that the group spans, shape (n,)."""
        return self.buildings * self.regions

    @property
    def crosses_buildings(self) -> BoolArray:
        """Whether the group spans more than one building, shape (n,)."""
        return self.sites > 1

    def ranks_within(self, tier: int) -> IntArray:
        """Ranks that share one unit of a tier: a node, zone, building, region, everything.

        Args:
            tier: Index into `TIERS`; ``SITE`` gives the ranks of one region, ``REGION`` all.
        """
        product = np.ones_like(self.in_node)
        for fanout in self.fanouts[: tier + 1]:
            product = product * fanout
        return product


def span(group: Group, sizes: TierSizes) -> Span:
    """Spread a group over the tiers.

    Ranks along an axis share a unit of G GPUs where their stride s divides G; then the largest
    block of them that no boundary splits has gcd(G / s, size) ranks. Where s does not divide G
    they are counted as strangers, which overstates what crosses.

    Args:
        group: The ranks, as axes with sizes and strides.
        sizes: GPUs per unit of each tier.
    """
    within = []
    aligned = np.ones_like(group.size, dtype=np.bool_)
    for unit in (sizes.node, sizes.zone, sizes.building, sizes.region):
        inside = np.ones_like(group.size)
        for size, stride in zip(group.sizes, group.strides, strict=True):
            block = np.where(unit % stride == 0, np.gcd(np.maximum(unit // stride, 1), size), 1)
            inside = inside * block
            extent = size * stride
            fits = (extent % unit == 0) | (unit % extent == 0)
            aligned &= fits & ((stride % unit == 0) | (unit % stride == 0)) | (size == 1)
        within.append(inside)
    in_node, in_zone, in_building, in_region = within
    return Span(
        in_node=in_node,
        nodes=in_zone // in_node,
        zones=in_building // in_zone,
        buildings=in_region // in_building,
        regions=group.size // in_region,
        aligned=aligned,
    )
