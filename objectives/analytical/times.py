"""How long the collectives of a step take, all of them in a few vectorised calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from objectives.analytical.batch import Batch
from objectives.analytical.collectives import SHARDING, Traffic
from objectives.analytical.setup import Setup
from objectives.physics.arrays import BoolArray, FloatArray, IntArray
from objectives.physics.fabric import Duration, Fabric, duration, make_fabric
from objectives.physics.long_link import LongLink, LongLinkKnobs
from objectives.physics.tiers import REGION, SITE, TIERS
from objectives.physics.traffic import Demand


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Collectives that send something, one entry per config and collective that does.

    Attributes:
        which: Number of the collective, shape (k,).
        row: Number of the config, shape (k,).
        demand: Arrays of shape (k,).
        chunks: Pieces that each is cut into, shape (k,).
        fabric: The links, with the knobs of each entry.
    """

    which: IntArray
    row: IntArray
    demand: Demand
    chunks: FloatArray
    fabric: Fabric


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All collectives of n configs, ready to be timed.

    Attributes:
        names: Of the collectives.
        size: n.
        inside: Those that stay within a building.
        crossing: Those that cross a cut.
        average_bytes: Leaving one unit of each tier per GPU and collective, shape (5, d, n).
    """

    names: tuple[str, ...]
    size: int
    inside: Pairs
    crossing: Pairs
    average_bytes: FloatArray

    def index(self, name: str) -> int:
        """Number of a collective, -1 where no config has it."""
        return self.names.index(name) if name in self.names else -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Seconds of every collective.

    Attributes:
        names: Of the collectives.
        total_s: Shape (d + 1, n); the last row is zero, for collectives that no config has.
        transfer_s: Of the slowest tier alone, without latency, shape (d + 1, n).
    """

    names: tuple[str, ...]
    total_s: FloatArray
    transfer_s: FloatArray

    def total(self, name: str) -> FloatArray:
        """Of one collective in all, shape (n,)."""
        return np.asarray(self.total_s[self._row(name)])

    def transfer(self, name: str) -> FloatArray:
        """Of one collective's slowest tier, shape (n,)."""
        return np.asarray(self.transfer_s[self._row(name)])

    def _row(self, name: str) -> int:
        return self.names.index(name) if name in self.names else -1


def make_plan(setup: Setup, batch: Batch, planned: Traffic) -> Plan:
    """Sort the collectives of n configs by whether they cross a cut.

    Args:
        setup: The scenario.
        batch: The configs.
        planned: Their demands.
    """
    names = tuple(planned.demands)
    demands = tuple(planned.demands.values())
    endpoint = np.stack([np.stack(demand.endpoint_bytes) for demand in demands], axis=1)
    average = np.stack([np.stack(demand.average_bytes) for demand in demands], axis=1)
    hops = np.stack([np.stack(demand.hops) for demand in demands], axis=1)
    sequential = np.stack([demand.sequential for demand in demands])
    pieces = [batch.chunks if name in SHARDING else np.ones(len(batch)) for name in names]
    crosses = (endpoint[SITE] > 0) | (endpoint[REGION] > 0)
    sends = np.any(endpoint > 0, axis=0)
    fabric = _fabric(setup, batch)

    def pairs(mask: BoolArray) -> Pairs:
        which, row = np.nonzero(mask)
        demand = Demand(
            endpoint_bytes=tuple(endpoint[:, which, row]),
            average_bytes=tuple(average[:, which, row]),
            hops=tuple(hops[:, which, row]),
            sequential=sequential[which, row],
        )
        knobs = _taken(batch.network, row)
        chunks = np.stack(pieces)[which, row]
        return Pairs(
            which=which, row=row, demand=demand, chunks=chunks, fabric=replace(fabric, knobs=knobs)
        )

    return Plan(
        names=names,
        size=len(batch),
        inside=pairs(sends & ~crosses),
        crossing=pairs(crosses),
        average_bytes=average,
    )


def make_times(plan: Plan) -> tuple[Times, Mapping[str, FloatArray]]:
    """Time all collectives over the cluster's own links.

    Args:
        plan: The collectives.

    Returns:
        The times, and by collective the share of each tier in them, arrays of shape (5, n) that
        sum to 1.
    """
    shape = (len(plan.names) + 1, plan.size)
    total, transfer = np.zeros(shape), np.zeros(shape)
    tiers = np.zeros((len(TIERS), *shape))
    for pairs in (plan.inside, plan.crossing):
        if len(pairs.row):
            got = duration(pairs.demand, pairs.fabric, chunks=pairs.chunks)
            at = pairs.which, pairs.row
            total[at] = got.total_s
            transfer[at] = np.max(np.stack(got.transfer_s), axis=0)
            tiers[:, *at] = np.stack(got.transfer_s) + np.stack(got.latency_s)
    whole = np.sum(tiers, axis=0)
    shares = tiers / np.where(whole > 0, whole, 1.0)
    shares[0] += whole == 0
    by_name = {name: shares[:, i] for i, name in enumerate(plan.names)}
    return Times(names=plan.names, total_s=total, transfer_s=transfer), by_name


def with_capacity(times: Times, plan: Plan, tier: int, capacity: FloatArray) -> Times:
    """The same with another capacity of the widest cut; only what crosses is timed anew.

    Args:
        times: Over any cut.
        plan: The collectives.
        tier: `SITE` or `REGION`, whichever is the widest.
        capacity: In byte/s, shape (n,).
    """
    pairs = plan.crossing
    wide = _capacity(pairs.fabric, tier, capacity[pairs.row])
    got: Duration = duration(pairs.demand, wide, chunks=pairs.chunks)
    total, transfer = times.total_s.copy(), times.transfer_s.copy()
    total[pairs.which, pairs.row] = got.total_s
    transfer[pairs.which, pairs.row] = np.max(np.stack(got.transfer_s), axis=0)
    return Times(names=times.names, total_s=total, transfer_s=transfer)


def _fabric(setup: Setup, batch: Batch) -> Fabric:
    cluster = setup.cluster
    return make_fabric(
        sizes=setup.sizes,
        node=cluster.node,
        zone=cluster.zone,
        building=cluster.building,
        between_buildings=cluster.between_buildings,
        between_regions=cluster.between_regions,
        knobs=batch.network,
    )


def _capacity(fabric: Fabric, tier: int, capacity: FloatArray) -> Fabric:
    link: LongLink | None = fabric.region if tier == REGION else fabric.site
    assert link is not None
    other = replace(link, capacity_bytes_per_s=capacity)
    return replace(fabric, region=other) if tier == REGION else replace(fabric, site=other)


def _taken(knobs: LongLinkKnobs, row: NDArray[np.int64]) -> LongLinkKnobs:
    return LongLinkKnobs(
        transport=knobs.transport[row],
        load_balancing=knobs.load_balancing[row],
        congestion_control=knobs.congestion_control[row],
        connections=knobs.connections[row],
        bytes_in_flight=knobs.bytes_in_flight[row],
    )
