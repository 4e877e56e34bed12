"""A cluster from the accelerator outward: node, zone, building, region."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One GPU.

    Attributes:
        name: For people.
        memory_bytes: What one process can allocate.
        memory_bandwidth_bytes_per_s: Of that memory.
        peak_flops_per_s: Dense matrix peak by precision (``bf16``, ``fp8``, ``fp4``).
        tdp_w: Power at full load; None where there is no figure.
        price_usd_per_s: Of one accelerator with its share of everything; None where unknown.
    """

    name: str
    memory_bytes: float
    memory_bandwidth_bytes_per_s: float
    peak_flops_per_s: Mapping[str, float]
    tdp_w: float | None = None
    price_usd_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Building:
    """One data-centre building.

    Attributes:
        name: Unique in the cluster.
        region: Buildings of one region are joined by the cut between buildings.
        accelerator: The GPU it is filled with.
        gpus: All of them that the job uses.
        gpus_per_node: In one NVLink domain.
        gpus_per_zone: Under one fabric without oversubscription inside.
    """

    name: str
    region: str
    accelerator: Accelerator
    gpus: int
    gpus_per_node: int
    gpus_per_zone: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The links of one tier inside a building.

    Attributes:
        bandwidth_bytes_per_s: Nominal, per GPU and direction.
        latency_s: One way from GPU to GPU, software included.
        oversubscription: Ratio of what GPUs can send to what the tier carries when all send;
            1 where it carries everything.
        loss: Probability that a packet is lost.
    """

    bandwidth_bytes_per_s: float
    latency_s: float
    oversubscription: float = 1.0
    loss: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What joins two buildings, or two regions.

    Attributes:
        capacity_bytes_per_s: Per direction, shared by everything that crosses.
        distance_m: Between them; where only a latency was given, the fibre of that latency.
        latency_s: One way.
        loss: Probability that a packet is lost.
        buffer_bytes: In the switches at its ends, per direction; None where unknown.
    """

    capacity_bytes_per_s: float
    distance_m: float
    latency_s: float
    loss: float = 0.0
    buffer_bytes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLink:
    """The host behind each GPU, for offloading.

    Attributes:
        bandwidth_bytes_per_s: Between GPU and host, per GPU and direction.
        memory_bytes: Host memory, the share of one GPU.
        memory_bandwidth_bytes_per_s: Of the host memory, the share of one GPU; bounds an
            optimizer that runs on the CPU.
    """

    bandwidth_bytes_per_s: float
    memory_bytes: float
    memory_bandwidth_bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """All buildings and links that one job uses.

    Attributes:
        name: For people.
        buildings: At least one.
        node: Inside a node (NVLink).
        zone: Between the nodes of a zone.
        building: Between the zones of a building.
        between_buildings: Out of each building of a region; None where no region has two.
        between_regions: Out of each region; None where there is one.
        host: None where nothing is known of the hosts, so that nothing can be offloaded.
    """

    name: str
    buildings: tuple[Building, ...]
    node: Link
    zone: Link
    building: Link
    between_buildings: Cut | None
    between_regions: Cut | None
    host: HostLink | None

    @property
    def gpus(self) -> int:
        """All GPUs of the cluster."""
        return sum(building.gpus for building in self.buildings)

    @property
    def regions(self) -> tuple[str, ...]:
        """Names of the regions, in the order of the buildings."""
        return tuple(dict.fromkeys(building.region for building in self.buildings))
