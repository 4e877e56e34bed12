import pickle
from typing import Any

import pytest

from autotune import DesignPoint, SearchSpace
from objectives.baselines import llama3_production
from objectives.exporters import megatron, nccl, torchtitan
from objectives.exporters.job import Inexpressible
from objectives.exporters.nearest import nearest_expressible
from objectives.knobs import search_space
from objectives.scenario import scenario


@pytest.fixture(scope="module")
def space(llama_405b: DesignPoint) -> SearchSpace:
    return search_space(scenario(llama_405b))


@pytest.fixture(scope="module")
def today(llama_405b: DesignPoint) -> dict[str, Any]:
    return llama3_production(scenario(llama_405b))


@pytest.mark.parametrize("exporter", [torchtitan, megatron, nccl])
def test_any_config_ends_as_one_that_is_taken(
    exporter: Any, llama_405b: DesignPoint, space: SearchSpace, today: dict[str, Any]
) -> None:
    for config in space.sample(40, seed=3):
        moved = nearest_expressible(exporter.export, llama_405b, config, space=space, towards=today)
        assert space.contains(moved)
        assert exporter.export(llama_405b, moved)


def test_only_what_is_refused_moves(
    llama_405b: DesignPoint, space: SearchSpace, today: dict[str, Any]
) -> None:
    config = {
        **today,
        "connections_per_pair": 32,
        "activation_checkpoint_mode": "full",
        "overlap_parameter_gather": False,
    }
    moved = nearest_expressible(torchtitan.export, llama_405b, config, space=space, towards=today)
    assert moved == {**config, "overlap_parameter_gather": True}


def test_a_config_that_is_taken_stays(
    llama_405b: DesignPoint, space: SearchSpace, today: dict[str, Any]
) -> None:
    moved = nearest_expressible(torchtitan.export, llama_405b, today, space=space, towards=today)
    assert moved == today


def test_a_goal_that_is_refused_is_an_error(
    llama_405b: DesignPoint, space: SearchSpace, today: dict[str, Any]
) -> None:
    goal = {**today, "overlap_parameter_gather": False}
    with pytest.raises(Inexpressible) as caught:
        nearest_expressible(torchtitan.export, llama_405b, goal, space=space, towards=goal)
    assert list(caught.value.reasons) == ["overlap_parameter_gather"]
    assert pickle.loads(pickle.dumps(caught.value)).reasons == caught.value.reasons
