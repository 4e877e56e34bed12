from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from autotune import (
    Config,
    Origin,
    Product,
    SearchSpace,
    StudySpec,
    UnknownName,
    Unsupported,
    objective,
    open_study,
)
from autotune.samplers import (
    SAMPLER_NAMES,
    Fate,
    Observation,
    derived_seed,
    make_sampler,
    population_for,
)

SPACE = SearchSpace(
    {
        "a": IntDistribution(0, 15),
        "b": IntDistribution(0, 15),
        "mode": CategoricalDistribution(["none", "some", "full"]),
        "x": FloatDistribution(0.0, 1.0),
        "fixed": CategoricalDistribution(["only"]),
    }
)


def observed(number: int, fate: Fate = Fate.MEASURED, **more: Any) -> Observation:
    config = SPACE.sample(1, seed=number)[0]
    if fate is Fate.MEASURED:
        more.setdefault("losses", (float(config["a"]), float(config["b"])))
        more.setdefault("constraints", (config["a"] - 12.0,))
    return Observation(number=number, config=config, fate=fate, **more)


def test_a_wrong_name_lists_the_right_ones() -> None:
    with pytest.raises(UnknownName, match="gp, nsga2, qmc, random, tpe"):
        make_sampler("bayes", space=SPACE, seed=0)


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is installed")
def test_a_missing_package_names_its_extra() -> None:
    with pytest.raises(Unsupported, match=r"scale-across-autotune\[gp\]"):
        make_sampler("gp", space=SPACE, seed=0)


@pytest.mark.parametrize("name", sorted(set(SAMPLER_NAMES) - {"gp"}))
def test_a_suggestion_depends_on_past_slot_and_seed_only(name: str) -> None:
    past = [observed(i) for i in range(12)]

    def suggest(seed: int, slot: int) -> Any:
        sampler = make_sampler(name, space=SPACE, seed=seed, population_size=6)
        return sampler.suggest(past, slot=slot, number=slot)

    used = make_sampler(name, space=SPACE, seed=1, population_size=6)
    used.suggest(past[:7], slot=7, number=7)
    assert suggest(1, 12) == suggest(1, 12) == used.suggest(past, slot=12, number=12)
    if name != "random":
        assert suggest(1, 12) != suggest(1, 13)
        assert suggest(1, 12) != suggest(2, 12)


@pytest.mark.parametrize("name", ["tpe", "nsga2"])
def test_any_mixture_of_fates_is_understood(name: str) -> None:
    sampler = make_sampler(name, space=SPACE, seed=0, population_size=4)
    fates = [Fate.FAILED, Fate.RUNNING, Fate.MEASURED]
    past: list[Observation] = []
    for number in range(30):
        suggestion = sampler.suggest(past, slot=number, number=number)
        assert suggestion.config is None or SPACE.contains(suggestion.config)
        fate = Fate.FAILED if number < 6 else fates[number % 3]
        past.append(observed(number, fate, state=suggestion.state))


def test_nothing_is_suggested_where_nothing_is_known() -> None:
    sampler = make_sampler("tpe", space=SPACE, seed=0)
    assert sampler.suggest([], slot=0, number=0).config is None
    assert sampler.suggest([observed(0, Fate.RUNNING)], slot=1, number=1).config is None


def test_running_configs_are_avoided() -> None:
    """Eight workers at once do not all get the config that looks best."""
    sampler = make_sampler("tpe", space=SPACE, seed=0)
    past = [observed(i) for i in range(20)]
    for number in range(20, 28):
        config = sampler.suggest(past, slot=number, number=number).config
        assert config is not None
        past.append(Observation(number=number, config=config, fate=Fate.RUNNING))
    assert len({SPACE.key(each.config) for each in past[20:]}) == 8


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("name", ["tpe", "nsga2"])
def test_failures_teach(name: str, several: bool) -> None:
    """59 % of the space fails, without a number that says how badly; later on much less does."""
    metrics = ["loss", "other"] if several else ["loss"]

    def lacks_memory(config: Config) -> bool:
        room = {"none": 12, "some": 5, "full": 0}[config["mode"]]
        return bool(config["a"] + 2 * config["b"] + room > 25)

    @objective(metrics=metrics, name="fails")
    def fails(config: Config) -> dict[str, float]:
        if lacks_memory(config):
            raise MemoryError
        values = {"loss": abs(config["a"] - 9) - config["b"], "other": config["x"] - 0.5}
        return {metric: values[metric] for metric in metrics}

    assert np.mean([lacks_memory(c) for c in SPACE.sample(4000, seed=0)]) == pytest.approx(
        0.59, abs=0.02
    )
    late = []
    for seed in range(2):
        spec = StudySpec(
            name="fails", space=SPACE, objective=fails, metrics=metrics, sampler=name, seed=seed
        )
        study = open_study(spec, "memory")
        study.optimize(60)
        late += [trial.state == "failed" for trial in study.trials[30:]]
    assert np.mean(late) < 0.6 * 0.59


def test_a_sobol_sequence_covers_every_dimension() -> None:
    sampler = make_sampler("qmc", space=SPACE, seed=3)
    configs = [sampler.suggest([], slot=slot, number=slot).config for slot in range(16)]
    assert all(config is not None and SPACE.contains(config) for config in configs)
    taken = [config for config in configs if config is not None]
    assert {config["a"] for config in taken} == set(range(16))
    assert {config["b"] for config in taken} == set(range(16))
    assert {int(16 * config["x"]) for config in taken} == set(range(16))


def test_a_sobol_sequence_reaches_both_ends() -> None:
    space = SearchSpace(
        {
            "log": IntDistribution(1, 4, log=True),
            "step": IntDistribution(0, 9, step=3),
            "float": FloatDistribution(0.0, 1.0, step=0.25),
            "log_float": FloatDistribution(1e-3, 1.0, log=True),
        }
    )
    sampler = make_sampler("qmc", space=space, seed=0)
    configs = [sampler.suggest([], slot=s, number=s).config or {} for s in range(64)]
    assert all(space.contains(config) for config in configs)
    assert {config["log"] for config in configs} == {1, 2, 3, 4}
    assert {config["step"] for config in configs} == {0, 3, 6, 9}
    assert {config["float"] for config in configs} == {0.0, 0.25, 0.5, 0.75, 1.0}


def test_suggestions_may_break_rules_and_are_repaired() -> None:
    space = SearchSpace(
        {name: CategoricalDistribution([1, 2, 4, 8]) for name in ("tp", "pp", "dp")},
        constraints=[Product(name="world", factors=("tp", "pp", "dp"), equals=64)],
    )

    @objective(metrics=["loss"], name="product")
    def loss(config: Config) -> dict[str, float]:
        return {"loss": config["tp"]}

    spec = StudySpec(
        name="s", space=space, objective=loss, metrics=["loss"], n_startup_trials=2, sampler="qmc"
    )
    study = open_study(spec, "memory")
    study.optimize(20)
    assert len(study.trials) == space.count()
    repaired = [trial for trial in study.trials if "repaired" in trial.attributes]
    assert repaired
    assert {trial.origin for trial in repaired} == {Origin.SAMPLER}


def test_populations_leave_generations() -> None:
    assert [population_for(n) for n in (10, 30, 100, 1000)] == [6, 6, 20, 50]


def test_derived_seeds_are_unrelated() -> None:
    seeds = {derived_seed(a, b) for a in range(30) for b in range(30)}
    assert len(seeds) == 900
