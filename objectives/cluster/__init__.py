"""The machines that a job runs on: accelerators, nodes, zones, buildings, regions and links."""

from __future__ import annotations

from objectives.cluster.cluster import Accelerator, Building, Cluster, Cut, HostLink, Link
from objectives.cluster.loading import (
    accelerator_presets,
    cluster_presets,
    load_cluster,
    parse_cluster,
    read_cluster,
)

__all__ = [
    "Accelerator",
    "Building",
    "Cluster",
    "Cut",
    "HostLink",
    "Link",
    "accelerator_presets",
    "cluster_presets",
    "load_cluster",
    "parse_cluster",
    "read_cluster",
]
