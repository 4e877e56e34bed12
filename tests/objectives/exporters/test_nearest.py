import pickle
from typing import Any

import pytest
from optuna.distributions import CategoricalDistribution

from autotune import DesignPoint, SearchSpace
from objectives.baselines import llama3_production
from objectives.exporters import megatron, nccl, torchtitan
from objectives.exporters.nearest import nearest_expressible
from objectives.exporters.refusal import Inexpressible
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
    exporter: Any, llama_405b: DesignPoint, space: SearchSpace
) -> None:
    for config in space.sample(5, seed=3):
        moved = nearest_expressible(exporter.export, llama_405b, config, space=space)
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
    moved = nearest_expressible(torchtitan.export, llama_405b, config, space=space)
    assert moved == {**config, "overlap_parameter_gather": True}


def test_a_config_that_is_taken_stays(
    llama_405b: DesignPoint, space: SearchSpace, today: dict[str, Any]
) -> None:
    moved = nearest_expressible(torchtitan.export, llama_405b, today, space=space)
    assert moved == today


def test_a_schedule_moves_to_one_that_the_trainer_has(
    llama_405b: DesignPoint, space: SearchSpace, today: dict[str, Any]
) -> None:
    config = {**today, "pipeline_parallel_schedule": "LoopedBFS"}
    moved = nearest_expressible(megatron.export, llama_405b, config, space=space)
    assert moved == today


def test_no_config_at_all_is_an_error(
    llama_405b: DesignPoint, space: SearchSpace, today: dict[str, Any]
) -> None:
    parameters = {name: CategoricalDistribution([value]) for name, value in today.items()} | {
        "overlap_parameter_gather": CategoricalDistribution([False])
    }
    config = {**today, "overlap_parameter_gather": False}
    with pytest.raises(Inexpressible) as caught:
        nearest_expressible(torchtitan.export, llama_405b, config, space=SearchSpace(parameters))
    (refusal,) = caught.value.refusals
    assert (refusal.knob, refusal.expressible) == ("overlap_parameter_gather", (True,))
    assert pickle.loads(pickle.dumps(caught.value)).refusals == (refusal,)
