"""The objective contract over every backend that ships."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from autotune import Config, DesignPoint, SearchSpace
from autotune.objective import ObjectiveFactory
from autotune.plugins import load
from autotune.testing import ObjectiveContract
from autotune.testing.problems import coupled, coupled_space, grid_space
from objectives.cluster import read_cluster
from objectives.command import command_objective
from objectives.knobs import search_space
from objectives.scenario import Workload, design_point, scenario
from studies import binh_korn


class TestBinhKorn(ObjectiveContract):
    @pytest.fixture
    def factory(self) -> ObjectiveFactory:
        return binh_korn.binh_korn

    @pytest.fixture
    def space(self) -> SearchSpace:
        return binh_korn.space()

    @pytest.fixture
    def infeasible(self) -> Sequence[Config]:
        return [{"x": 0.0, "y": 3.0}]


class TestCoupled(ObjectiveContract):
    @pytest.fixture
    def factory(self) -> ObjectiveFactory:
        return coupled

    @pytest.fixture
    def space(self) -> SearchSpace:
        return coupled_space()


class TestCommand(ObjectiveContract):
    """A program of one line, told the config in a file."""

    num_configs = 3

    @pytest.fixture
    def factory(self) -> ObjectiveFactory:
        program = (
            "import json, sys; c = json.load(open(sys.argv[1])); "
            "print(json.dumps({'loss': c['a'] + c['c'], 'over': c['a'] - 2}))"
        )
        return command_objective(
            {
                "argv": ["{python}", "-I", "-S", "-c", program, "{config_file}"],
                "metric": {"loss": {}},
                "constraint": {"over": {"at_most": 0}},
                "deterministic": True,
                "timeout": "20 s",
            }
        )

    @pytest.fixture
    def space(self) -> SearchSpace:
        return grid_space()


def small_cluster() -> dict[str, Any]:
    """The preset of two different buildings with the second made like the first."""
    cluster = read_cluster("mixed-48")
    first, second = cluster["building"]
    cluster["building"] = [first, {**first, "name": second["name"], "region": second["region"]}]
    return cluster


SCENARIOS: dict[str, tuple[str, str | dict[str, Any], int, int, dict[str, Any]]] = {
    # The shipped studies' own, and small ones: dense and mixture of experts, one building and
    # two, eight accelerators in a node and four.
    "flagship": ("llama3.1-405b", "two-buildings-16k-h100", 8192, 2048, {}),
    "one building": ("llama3.1-405b", "one-building-16k-h100", 8192, 2048, {}),
    "deepseek": ("deepseek-v3", "two-buildings-2k-h800", 4096, 15360, {"precision": "fp8"}),
    "small": ("llama3-8b", small_cluster(), 8192, 64, {}),
    "other mathematics": (
        "mixtral-8x22b",
        "two-buildings-2k-h800",
        4096,
        2048,
        {"same_mathematics": False},
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
class TestAnalytical(ObjectiveContract):
    num_configs = 5
    breakdown_sums_to = "step_time_s"

    @pytest.fixture
    def factory(self) -> ObjectiveFactory:
        made: ObjectiveFactory = load("autotune.objectives", "analytical")
        return made

    @pytest.fixture
    def design_point(self, name: str) -> DesignPoint:
        model, cluster, sequence_length, sequences, _ = SCENARIOS[name]
        workload = Workload(
            global_batch_tokens=sequence_length * sequences, sequence_length=sequence_length
        )
        return design_point(name, model=model, cluster=cluster, workload=workload)

    @pytest.fixture
    def space(self, name: str, design_point: DesignPoint) -> SearchSpace:
        return search_space(scenario(design_point), **SCENARIOS[name][-1])


def test_what_the_analytical_model_lacks_is_refused_by_name() -> None:
    """Two kinds of accelerator: an answer that names the place, for each config and for many."""
    workload = Workload(global_batch_tokens=48 * 8192, sequence_length=8192)
    point = design_point("mixed", model="llama3-8b", cluster="mixed-48", workload=workload)
    objective = load("autotune.objectives", "analytical")(point)
    columns = search_space(scenario(point)).sample_columns(16, seed=0)
    batch = objective.evaluate_batch(columns)
    assert not batch.ok.any()
    assert all("cluster.building" in batch.reasons[i] for i in range(16))
