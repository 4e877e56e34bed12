"""A two-building cluster in plain numbers, for tests of the network physics."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from objectives.physics.fabric import Fabric, make_fabric
from objectives.physics.layout import Layout, parse_layout
from objectives.physics.long_link import LongLinkKnobs
from objectives.physics.tiers import TierSizes

Columns = dict[str, np.ndarray[Any, Any]]


def _column(value: object) -> np.ndarray[Any, Any]:
    return np.atleast_1d(np.asarray(value))


@pytest.fixture(scope="session")
def layout_of() -> Callable[..., Layout]:
    """Llama 3's layout on 16,384 GPUs, or with other values for some of its columns."""

    def make(**changes: object) -> Layout:
        columns: dict[str, object] = {
            "tensor_parallel_degree": 8,
            "context_parallel_degree": 1,
            "pipeline_parallel_degree": 16,
            "data_parallel_shard_degree": 128,
            "data_parallel_replicate_degree": 1,
            "expert_parallel_degree": 1,
            "microbatch_size": 1,
            "virtual_stages_per_rank": 8,
            "dimension_order": "tp-cp-pp-shard-replicate",
        }
        columns.update(changes)
        arrays = dict(
            zip(columns, np.broadcast_arrays(*map(_column, columns.values())), strict=True)
        )
        return parse_layout(arrays, global_batch_sequences=2048)

    return make


@pytest.fixture(scope="session")
def sizes() -> TierSizes:
    return TierSizes.nested(node=8, zone=1024, building=8192, region=16384)


@pytest.fixture(scope="session")
def knobs_of() -> Callable[..., LongLinkKnobs]:
    def make(**changes: object) -> LongLinkKnobs:
        values: dict[str, object] = {
            "transport": "roce_selective_repeat",
            "load_balancing": "spray",
            "congestion_control": "distance_aware",
            "connections": 16,
            "bytes_in_flight": 64 * 2.0**20,
        }
        values.update(changes)
        return LongLinkKnobs(**{name: _column(value) for name, value in values.items()})

    return make


@pytest.fixture(scope="session")
def fabric_of(sizes: TierSizes, knobs_of: Callable[..., LongLinkKnobs]) -> Callable[..., Fabric]:
    """NVLink, 400 Gb/s cards, zones 1:2 oversubscribed, and a cut of 12.8 Tb/s over 10 km."""

    def make(
        *,
        knobs: LongLinkKnobs | None = None,
        building: dict[str, float] | None = None,
        cut: dict[str, Any] | None = None,
    ) -> Fabric:
        tier = {"bandwidth_bytes_per_s": 50e9, "latency_s": 2e-6, "oversubscription": 1.0}
        across = {
            "capacity_bytes_per_s": 1.6e12,
            "latency_s": 49e-6,
            "loss": 1e-6,
            "buffer_bytes": None,
        }
        return make_fabric(
            sizes=sizes,
            node=SimpleNamespace(bandwidth_bytes_per_s=450e9, latency_s=1e-6, oversubscription=1),
            zone=SimpleNamespace(**tier),
            building=SimpleNamespace(**tier | {"oversubscription": 2.0} | (building or {})),
            between_buildings=SimpleNamespace(**across | (cut or {})),
            between_regions=None,
            knobs=knobs or knobs_of(),
        )

    return make
