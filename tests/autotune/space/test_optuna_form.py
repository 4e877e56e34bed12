from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from autotune import Compound, Condition, InvalidInput, Product, SearchSpace


@pytest.fixture(scope="module")
def space() -> SearchSpace:
    degrees = CategoricalDistribution((1, 2, 4, 8))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna warns of the tuples that this is about
        mesh = CategoricalDistribution(((8, 1), (4, 2), "none"))
    return SearchSpace(
        {
            "tp": degrees,
            "pp": degrees,
            "dp": IntDistribution(1, 8),
            "mesh": mesh,
            "schedule": CategoricalDistribution(("1F1B", "Interleaved1F1B")),
            "virtual": IntDistribution(1, 4),
            "overlap": CategoricalDistribution((True, False)),
            "offload": FloatDistribution(0, 1, step=0.25),
            "rate": FloatDistribution(1e-3, 1.0, log=True),
            "fixed": CategoricalDistribution(("bf16",)),
        },
        constraints=[Product(name="world", factors=("tp", "pp", "dp"), equals=16)],
        conditions=[
            Condition(
                parameter="virtual", active_when={"schedule": ("Interleaved1F1B",)}, otherwise=1
            )
        ],
        compounds=[
            Compound(name="layout", parameters=("tp", "pp"), choices=((8, 1), (4, 2), (1, 8)))
        ],
    )


def test_optuna_sees_primitive_choices_only(space: SearchSpace) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        distributions = space.optuna_distributions()
    assert list(distributions) == sorted(distributions)
    assert "tp" not in distributions
    assert distributions["layout"] == CategoricalDistribution(
        ('{"pp":1,"tp":8}', '{"pp":2,"tp":4}', '{"pp":8,"tp":1}')
    )
    assert distributions["mesh"] == CategoricalDistribution(("[8,1]", "[4,2]", "none"))
    assert distributions["dp"] == space.parameters["dp"]


@pytest.fixture(params=["memory", "sqlite", "journal"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Gives a function that opens the same storage again."""
    if request.param == "memory":
        memory = optuna.storages.InMemoryStorage()
        return lambda: memory
    if request.param == "sqlite":
        return lambda: optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'study.db'}")
    backend = optuna.storages.journal.JournalFileBackend
    return lambda: optuna.storages.JournalStorage(backend(str(tmp_path / "journal.log")))


def test_every_value_comes_back_from_every_storage(space: SearchSpace, storage: Any) -> None:
    distributions = space.optuna_distributions()
    configs = space.sample(6, seed=0)
    study = optuna.create_study(storage=storage(), study_name="s")
    for i, config in enumerate(configs):
        study.enqueue_trial(space.to_optuna(config))
        trial = study.ask(distributions)
        assert space.from_optuna(trial.params) == config
        study.tell(trial, float(i))
    again = optuna.load_study(
        storage=storage(),
        study_name="s",
        sampler=optuna.samplers.TPESampler(seed=0, n_startup_trials=2, multivariate=True),
    )
    assert [space.from_optuna(trial.params) for trial in again.trials] == configs
    for value in range(4):
        trial = again.ask(distributions)
        proposed = space.from_optuna(trial.params)
        assert space.contains(space.project(proposed))
        again.tell(trial, float(value))


def test_a_compound_choice_survives_close_reopen_ask(tmp_path: Path) -> None:
    degrees = IntDistribution(1, 8)
    space = SearchSpace(
        {"tp": degrees, "pp": degrees},
        compounds=[Compound(name="layout", parameters=("tp", "pp"), choices=((8, 1), (4, 2)))],
    )
    url = f"sqlite:///{tmp_path / 'study.db'}"
    study = optuna.create_study(storage=url, study_name="s")
    study.enqueue_trial(space.to_optuna({"tp": 8, "pp": 1}))
    study.tell(study.ask(space.optuna_distributions()), 1.0)
    again = optuna.load_study(storage=url, study_name="s")
    assert space.from_optuna(again.trials[0].params) == {"tp": 8, "pp": 1}
    assert space.contains(space.from_optuna(again.ask(space.optuna_distributions()).params))


def test_refuses_what_is_no_trial_of_this_space(space: SearchSpace) -> None:
    params = space.to_optuna(space.sample(1, seed=0)[0])
    params["layout"] = '{"pp":3,"tp":5}'
    params["typo"] = 1
    del params["dp"]
    with pytest.raises(InvalidInput) as caught:
        space.from_optuna(params)
    assert {problem.path for problem in caught.value.problems} == {"layout", "typo", "dp"}
    with pytest.raises(InvalidInput, match="world"):
        space.to_optuna(space.sample(1, seed=0)[0] | {"dp": 3})
