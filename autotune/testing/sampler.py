"""What every sampler must do inside a study, as tests that run on any of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from autotune.metric import Metric
from autotune.objective import Config, ObjectiveFactory, objective
from autotune.space import SearchSpace
from autotune.study import Study, StudySpec, open_study
from autotune.testing.problems import (
    coupled,
    coupled_space,
    failing_first,
    grid,
    grid_space,
)
from autotune.trial import Trial, TrialState


class SamplerContract:
    """Subclass it and override `sampler` with a registered name.

    Attributes:
        n_startup_trials: Random trials before the sampler's own proposals begin; the tests of
            resuming go far past it.
    """

    n_startup_trials: int = 5

    @pytest.fixture
    def sampler(self) -> str:
        """The registered name of the sampler under test."""
        raise NotImplementedError("override the fixture `sampler`")

    def test_only_valid_configs_and_none_twice(self, sampler: str) -> None:
        """Coupled rules hold in every trial, and a deterministic backend is not asked twice."""
        study = self.study(sampler, coupled_space(), coupled)
        study.optimize(40)
        configs = [trial.config for trial in study.trials]
        assert len(configs) == 40
        for config in configs:
            assert study.spec.space.contains(config), study.spec.space.explain(config)
        assert len({study.spec.space.key(config) for config in configs}) == 40

    def test_proposes_after_the_start(self, sampler: str) -> None:
        """Past the start-up the sampler itself proposes, so that the tests above mean it."""
        study = self.study(sampler, coupled_space(), coupled)
        study.optimize(30)
        origins = [trial.origin for trial in study.trials]
        assert "sampler" in origins, f"only {set(origins)}"

    def test_seed_decides(self, sampler: str) -> None:
        """The same seed gives the same configs, another seed others."""
        first, same, other = (
            self.run(self.study(sampler, coupled_space(), coupled, seed=seed), 20)
            for seed in (3, 3, 4)
        )
        assert first == same
        assert first != other

    def test_resumes_as_if_never_stopped(self, sampler: str, tmp_path: Path) -> None:
        """Fifteen, reopened, and fifteen more are the thirty of one go, config for config."""
        whole = self.study(sampler, coupled_space(), coupled)
        halves = tmp_path / "halves.db"
        self.run(self.study(sampler, coupled_space(), coupled, storage=halves), 15)
        resumed = self.study(sampler, coupled_space(), coupled, storage=halves)
        assert len(resumed.trials) == 15
        assert self.run(resumed, 30) == self.run(whole, 30)

    def test_first_evaluations_all_fail(self, sampler: str) -> None:
        """Five failures at the start are counted, and the search goes on."""
        study = self.study(sampler, grid_space(), failing_first(5), metrics=["loss"])
        study.optimize(20)
        states = [trial.state for trial in study.trials]
        assert states == [TrialState.FAILED] * 5 + [TrialState.COMPLETE] * 15
        assert study.best() is not None

    def test_nothing_feasible(self, sampler: str) -> None:
        """Where no config is feasible the budget is spent and nothing is called best."""

        @objective(metrics=["loss"], constraints=["over"], cost_s=1e-5)
        def never(config: Config) -> dict[str, float]:
            return {"loss": config["a"], "over": 1.0 + config["a"]}

        study = self.study(sampler, grid_space(), never, metrics=["loss"])
        study.optimize(20)
        assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * 20
        assert study.best() is None
        assert study.front() == []

    def test_every_evaluation_fails(self, sampler: str) -> None:
        """A backend that never answers ends with the budget, not with an error."""
        study = self.study(sampler, grid_space(), failing_first(100), metrics=["loss"])
        study.optimize(12)
        assert [trial.state for trial in study.trials] == [TrialState.FAILED] * 12

    def test_space_is_exhausted(self, sampler: str) -> None:
        """Thirty-two points give thirty-two distinct trials, then the study says so and ends."""
        study = self.study(sampler, grid_space(), grid, metrics=["loss"])
        outcome = study.optimize(40)
        assert len({study.spec.space.key(trial.config) for trial in study.trials}) == 32
        assert len(study.trials) == 32
        assert "exhausted" in str(outcome)
        best = study.best()
        assert best is not None
        assert best.config == {"a": 0, "b": "p", "c": 1}

    def test_single_values_and_every_kind_of_parameter(self, sampler: str) -> None:
        """Fixed parameters, logarithmic ones, steps, text, numbers and truth values all work."""
        space = SearchSpace(
            {
                "fixed_choice": CategoricalDistribution(["only"]),
                "fixed_int": IntDistribution(3, 3),
                "fixed_float": FloatDistribution(0.5, 0.5),
                "log_int": IntDistribution(1, 1024, log=True),
                "step_int": IntDistribution(0, 100, step=10),
                "float": FloatDistribution(-1.0, 1.0),
                "log_float": FloatDistribution(1e-6, 1.0, log=True),
                "step_float": FloatDistribution(0.0, 1.0, step=0.25),
                "mixed": CategoricalDistribution(["a", 2, 0.5, True, None]),
            }
        )

        @objective(metrics=["loss"], cost_s=1e-5)
        def loss(config: Config) -> dict[str, float]:
            return {"loss": config["float"] ** 2 + config["log_float"] + config["step_int"]}

        study = self.study(sampler, space, loss, metrics=["loss"])
        study.optimize(20)
        assert len(study.trials) == 20
        for trial in study.trials:
            assert space.contains(trial.config), space.explain(trial.config)

    def test_directions_are_obeyed(self, sampler: str) -> None:
        """Maximising a metric and minimising its negative propose the same configs."""

        def make(sign: int) -> ObjectiveFactory:
            metric = Metric(name="loss", direction="minimize" if sign > 0 else "maximize")

            @objective(metrics=[metric], name=f"sign{sign}", cost_s=1e-5)
            def signed(config: Config) -> dict[str, float]:
                return {"loss": sign * (config["tensor"] + config["offload"])}

            return signed

        down, up = (
            self.study(sampler, coupled_space(), make(sign), metrics=["loss"]) for sign in (1, -1)
        )
        assert self.run(down, 20) == self.run(up, 20)
        best_down, best_up = down.best(), up.best()
        assert best_down is not None
        assert best_up is not None
        assert best_down.config == best_up.config

    def study(
        self,
        sampler: str,
        space: SearchSpace,
        factory: ObjectiveFactory,
        *,
        metrics: Sequence[str] = ("time_s", "traffic_byte"),
        storage: str | Path = "memory",
        seed: int = 0,
        **changes: Any,
    ) -> Study:
        """Open a study of a small problem with the sampler under test."""
        spec = StudySpec(
            name="contract",
            space=space,
            objective=factory,
            metrics=tuple(metrics),
            sampler=sampler,
            seed=seed,
            n_trials=30,  # gives a genetic sampler generations that end well before it
            n_startup_trials=self.n_startup_trials,
            **changes,
        )
        return open_study(spec, str(storage))

    def run(self, study: Study, n_trials: int) -> list[Config]:
        """Spend a budget and give the configs in the order of their slots."""
        study.optimize(n_trials)
        return [trial.config for trial in _by_slot(study.trials)]


def _by_slot(trials: Sequence[Trial]) -> list[Trial]:
    return sorted(
        (trial for trial in trials if trial.slot is not None), key=lambda trial: trial.slot or 0
    )
