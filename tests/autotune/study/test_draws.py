"""Draws of the start: half of them uniform, half near what runs today."""

from __future__ import annotations

from optuna.distributions import CategoricalDistribution

from autotune import Config, Origin, Product, SearchSpace, StudySpec, objective, open_study

CHOICES = (1, 2, 4, 8, 16, 32)
BASELINE = {"a": 2, "b": 4, "c": 8, "d": 1, "e": 1, "f": 1}


@objective(metrics=["loss"])
def loss(config: Config) -> dict[str, float]:
    return {"loss": float(sum(abs(config[name] - BASELINE[name]) for name in BASELINE))}


def started(baselines: dict[str, Config]) -> list[Config]:
    spec = StudySpec(
        name="draws",
        space=SearchSpace(
            {name: CategoricalDistribution(CHOICES) for name in BASELINE},
            constraints=[Product(name="world", factors=("a", "b", "c"), equals=64)],
        ),
        objective=loss,
        metrics=["loss"],
        baselines=baselines,
        n_startup_trials=30,
        n_trials=31,
    )
    study = open_study(spec, "memory")
    study.optimize()
    return [trial.config for trial in study.trials if trial.origin is Origin.STARTUP]


def shared(config: Config) -> int:
    return sum(config[name] == value for name, value in BASELINE.items())


def test_half_of_the_draws_keep_most_of_a_baseline() -> None:
    near = started({"today": BASELINE})
    assert sum(shared(config) >= 3 for config in near) >= len(near) // 3
    assert sum(shared(config) >= 3 for config in started({})) < len(near) // 3


def test_draws_beside_a_baseline_are_valid_and_distinct() -> None:
    near = started({"today": BASELINE})
    assert all(config["a"] * config["b"] * config["c"] == 64 for config in near)
    assert len({tuple(config.values()) for config in near}) == len(near)
