"""Scenarios and configs for tests of the analytical backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from autotune import DesignPoint, Evaluation
from objectives.analytical import AnalyticalObjective, analytical
from objectives.baselines import llama3_production
from objectives.cluster import read_cluster
from objectives.knobs import search_space
from objectives.scenario import Workload, design_point, scenario

LLAMA = Workload(global_batch_tokens=2048 * 8192, sequence_length=8192)
DEEPSEEK = Workload(global_batch_tokens=15360 * 4096, sequence_length=4096)

Changes = Mapping[tuple[str, ...], Any]
NOTHING: Changes = MappingProxyType({})


def _changed(cluster: str, changes: Changes) -> dict[str, Any]:
    table = read_cluster(cluster)
    for path, value in changes.items():
        inner = table
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
    return table


def _point(
    name: str, model: str, cluster: str, workload: Workload, changes: Changes
) -> DesignPoint:
    return design_point(name, model=model, cluster=_changed(cluster, changes), workload=workload)


@pytest.fixture(scope="session")
def llama() -> Callable[..., AnalyticalObjective]:
    """Llama 3.1 405B on 16,384 H100, in two buildings or one, with changed links."""

    def make(
        cluster: str = "two-buildings-16k-h100", changes: Changes = NOTHING
    ) -> AnalyticalObjective:
        return analytical(_point("llama", "llama3.1-405b", cluster, LLAMA, changes))

    return make


@pytest.fixture(scope="session")
def deepseek() -> Callable[..., AnalyticalObjective]:
    """DeepSeek-V3 on 2,048 H800 in two buildings, with changed links."""

    def make(changes: Changes = NOTHING) -> AnalyticalObjective:
        cluster = "two-buildings-2k-h800"
        return analytical(_point("deepseek", "deepseek-v3", cluster, DEEPSEEK, changes))

    return make


@pytest.fixture(scope="session")
def baseline() -> dict[str, Any]:
    """Llama 3 405B as Meta trained it."""
    point = _point("llama", "llama3.1-405b", "two-buildings-16k-h100", LLAMA, {})
    return llama3_production(scenario(point))


@pytest.fixture(scope="session")
def samples() -> Callable[..., dict[str, np.ndarray]]:
    """Valid configs of both scenarios, with every number format."""

    def make(model: str, n: int, seed: int) -> dict[str, np.ndarray]:
        point = {
            "llama": ("llama3.1-405b", "two-buildings-16k-h100", LLAMA),
            "deepseek": ("deepseek-v3", "two-buildings-2k-h800", DEEPSEEK),
        }[model]
        made = scenario(_point(model, *point, {}))
        space = search_space(made, same_mathematics=False)
        return dict(space.sample_columns(n, seed=seed))

    return make


@pytest.fixture(scope="session")
def measure(
    llama: Callable[..., AnalyticalObjective], baseline: dict[str, Any]
) -> Callable[..., Evaluation]:
    """The baseline with some knobs and links changed."""

    def run(
        cluster: str = "two-buildings-16k-h100", changes: Changes = NOTHING, **knobs: Any
    ) -> Evaluation:
        result = llama(cluster, changes).evaluate({**baseline, **knobs}, seed=0)
        assert result.ok, result.reason
        return result

    return run
