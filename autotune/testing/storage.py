"""What every storage must keep, as tests that run on any of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from autotune.errors import StudyMismatch, UnknownName
from autotune.evaluation import Evaluation, FailureKind
from autotune.objective import Config, ObjectiveFactory, objective
from autotune.space import Compound, SearchSpace
from autotune.storage import Storage
from autotune.store import StudyStore
from autotune.study import StudySpec, list_studies, open_study, read_study
from autotune.testing.problems import coupled, coupled_space, failing_first, grid, grid_space
from autotune.trial import Origin, Trial, TrialState

_N_WORKERS = 4


class StorageContract:
    """Subclass it and override `storage` with an empty one; each test opens it several times."""

    @pytest.fixture
    def storage(self) -> str | Path | Storage:
        """What `open_study` takes; an opened storage where nothing outlives it."""
        raise NotImplementedError("override the fixture `storage`")

    def test_trials_survive(self, storage: str | Path | Storage) -> None:
        """Configs, results, times and notes are the same after opening again."""
        study = open_study(_spec(), storage)
        study.optimize(12)
        before = study.trials
        assert len(before) == 12
        assert open_study(_spec(), storage).trials == before
        assert list(read_study(storage, "contract").trials) == before

    def test_values_of_every_type_survive(self, storage: str | Path | Storage) -> None:
        """Compounds, lists, truth values, nothing, and numbers of every kind come back equal."""
        study = open_study(_typed_spec(), storage)
        study.optimize(8)
        again = open_study(_typed_spec(), storage)
        assert again.trials == study.trials
        for trial in again.trials:
            assert again.spec.space.contains(trial.config), again.spec.space.explain(trial.config)
            assert type(trial.config["flag"]) is bool
            assert type(trial.config["count"]) is int
            assert type(trial.config["share"]) is float

    def test_attributes_of_any_type_are_kept(self, storage: str | Path | Storage) -> None:
        """NumPy numbers, paths, enumerations and times are stored as what JSON has for them."""

        class Kind(Enum):
            A = "a"

        rich = {
            "integer": np.int64(3),
            "array": np.array([1.5, 2.5]),
            "path": PurePosixPath("a/b"),
            "kind": Kind.A,
            "when": datetime(2024, 1, 2, tzinfo=UTC),
            "odd": object,
        }

        @objective(metrics=["loss"], name="rich", cost_s=1e-5)
        def measured(config: Config) -> Evaluation:
            return Evaluation(metrics={"loss": 1.0}, breakdown={"work": 1.0}, attributes=rich)

        open_study(_grid_spec(objective=measured), storage).optimize(1)
        trial = open_study(_grid_spec(objective=measured), storage).trials[0]
        assert trial.state is TrialState.COMPLETE
        assert trial.evaluation is not None
        assert trial.evaluation.breakdown == {"work": 1.0}
        kept = trial.evaluation.attributes
        assert (kept["integer"], kept["array"], kept["path"]) == (3, [1.5, 2.5], "a/b")
        assert (kept["kind"], kept["when"]) == ("a", "2024-01-02T00:00:00+00:00")
        assert "object" in kept["odd"]

    def test_failures_survive(self, storage: str | Path | Storage) -> None:
        """A failed trial keeps its kind and reason and counts in the budget."""
        spec = _grid_spec(objective=failing_first(2))
        open_study(spec, storage).optimize(4)
        again = open_study(spec, storage)
        assert [trial.state for trial in again.trials] == [TrialState.FAILED] * 2 + [
            TrialState.COMPLETE
        ] * 2
        result = again.trials[0].evaluation
        assert result is not None
        assert result.failure_kind is FailureKind.OOM
        assert result.reason == "evaluation 1 of 2 that fail"

    def test_resumes_as_if_never_stopped(self, storage: str | Path | Storage) -> None:
        """Eight, opened again, and eight more are the sixteen of one go."""
        whole = open_study(_spec(), "memory")
        whole.optimize(16)
        open_study(_spec(), storage).optimize(8)
        resumed = open_study(_spec(), storage)
        assert resumed.optimize(16).new_trials == 8
        assert _configs(resumed.trials) == _configs(whole.trials)

    def test_a_spent_budget_is_spent(self, storage: str | Path | Storage) -> None:
        """The same budget again measures nothing; the largest one is remembered."""
        open_study(_spec(n_trials=6), storage).optimize(9)
        again = open_study(_spec(n_trials=6), storage)
        assert again.optimize(9).new_trials == 0
        assert again.optimize().n_trials == 9

    def test_the_queue_survives(self, storage: str | Path | Storage) -> None:
        """A config enqueued by one opening is measured by the next."""
        config = coupled_space().sample(1, seed=99)[0]
        open_study(_spec(), storage).enqueue(config, label="by hand")
        study = open_study(_spec(), storage)
        study.optimize(3)
        asked = [trial for trial in study.trials if trial.origin is Origin.ENQUEUED]
        assert [(trial.config, trial.label) for trial in asked] == [(config, "by hand")]

    def test_studies_are_kept_apart(self, storage: str | Path | Storage) -> None:
        """Two studies of one storage have their own trials, budgets and names."""
        first, second = open_study(_spec(), storage), open_study(_grid_spec(), storage)
        first.optimize(3)
        second.optimize(2)
        assert len(open_study(_spec(), storage).trials) == 3
        assert len(open_study(_grid_spec(), storage).trials) == 2
        assert [record.name for record in list_studies(storage)] == ["contract", "grid"]
        store = StudyStore(storage)
        assert [summary.counts[TrialState.COMPLETE] for summary in store.studies()] == [3, 2]
        with pytest.raises(UnknownName, match="grid"):
            read_study(storage, "no such study")

    def test_another_definition_is_refused(self, storage: str | Path | Storage) -> None:
        """The same name with another space, sampler or seed is an error; nothing changes."""
        open_study(_spec(), storage).optimize(2)
        changes: list[dict[str, Any]] = [
            {"space": _without_offload(), "objective": coupled},
            {"sampler": "random"},
            {"seed": 1},
        ]
        for change in changes:
            with pytest.raises(StudyMismatch):
                open_study(_spec(**change), storage)
        assert len(open_study(_spec(), storage).trials) == 2

    def test_optunas_tools_read_it(self, storage: str | Path | Storage) -> None:
        """Optuna sees the same values and constraints, and calls nothing infeasible best."""
        study = open_study(_spec(), storage)
        study.optimize(12)
        seen = study.optuna_study
        assert isinstance(seen, optuna.Study)
        by_number = {trial.number: trial for trial in study.trials}
        assert len(seen.trials) == 12
        for each in seen.trials:
            ours = by_number[each.number]
            assert ours.evaluation is not None
            assert study.spec.space.from_optuna(each.params) == ours.config
            assert dict(zip(study.spec.metrics, each.values, strict=True)) == pytest.approx(
                ours.evaluation.metrics
            )
            assert each.system_attrs["constraints"] == list(ours.evaluation.constraints.values())
        assert any(not trial.feasible for trial in study.trials), "the test needs infeasible ones"
        assert {each.number for each in seen.best_trials} == {t.number for t in study.front()}

    def test_workers_share_the_budget(self, storage: str | Path | Storage) -> None:
        """Workers at once spend one budget: no slot twice, no config twice, none too many."""
        open_study(_spec(), storage)

        def work(_: int) -> int:
            return open_study(_spec(), storage).optimize(20).new_trials

        with ThreadPoolExecutor(_N_WORKERS) as pool:
            done = sum(pool.map(work, range(_N_WORKERS)))
        study = open_study(_spec(), storage)
        assert done == 20
        assert Counter(trial.state for trial in study.trials) == {TrialState.COMPLETE: 20}
        assert sorted(trial.slot for trial in study.trials if trial.slot is not None) == list(
            range(20)
        )
        assert len({study.spec.space.key(trial.config) for trial in study.trials}) == 20
        assert study.optimize(20).new_trials == 0


def _spec(**changes: Any) -> StudySpec:
    fields: dict[str, Any] = {
        "name": "contract",
        "space": coupled_space(),
        "objective": coupled,
        "metrics": ("time_s", "traffic_byte"),
        "n_trials": 30,
        "n_startup_trials": 5,
    }
    return StudySpec(**(fields | changes))


def _grid_spec(objective: ObjectiveFactory = grid) -> StudySpec:
    return StudySpec(name="grid", space=grid_space(), objective=objective, metrics=("loss",))


def _typed_spec() -> StudySpec:
    space = SearchSpace(
        {
            "shape": CategoricalDistribution(["[8, 1]", "[4, 2]"]),
            "mixed": CategoricalDistribution(["a", 2, 0.5, None]),
            "flag": CategoricalDistribution([False, True]),
            "count": IntDistribution(1, 1_000_000, log=True),
            "share": FloatDistribution(0.0, 1.0),
            "tensor": CategoricalDistribution([1, 4, 8]),
            "pipeline": CategoricalDistribution([1, 2, 8]),
        },
        compounds=[
            Compound(
                name="layout",
                parameters=("tensor", "pipeline"),
                choices=((8, 1), (4, 2), (1, 8)),
            )
        ],
    )

    @objective(metrics=["loss"], name="typed", cost_s=1e-5)
    def loss(config: Config) -> dict[str, float]:
        return {"loss": config["share"] * config["tensor"] + config["flag"]}

    return StudySpec(
        name="typed", space=space, objective=loss, metrics=("loss",), n_startup_trials=3
    )


def _without_offload() -> SearchSpace:
    whole = coupled_space()
    parameters = {**whole.parameters, "offload": FloatDistribution(0.0, 0.5)}
    return SearchSpace(
        parameters,
        constraints=whole.constraints,
        conditions=whole.conditions,
        compounds=whole.compounds,
    )


def _configs(trials: Sequence[Trial]) -> list[Config]:
    return [trial.config for trial in trials]
