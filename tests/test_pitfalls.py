"""What users of such tools complain about elsewhere, each with the smallest input that shows it.

Each test is named after the kind of fault and cites where it was reported. Kinds that are tested
elsewhere are listed in `ELSEWHERE`.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
)
from sqlalchemy import insert

from autotune import (
    BatchObjective,
    Config,
    Evaluation,
    FailureKind,
    InvalidInput,
    Origin,
    Report,
    SearchSpace,
    Study,
    StudyMismatch,
    StudySpec,
    TrialState,
    objective,
    open_study,
)
from autotune.objective import ObjectiveFactory
from autotune.plugins import load
from autotune.storage import Storage, open_storage, schema
from autotune.storage.reader import read_trials
from autotune.storage.rows import CONSTRAINTS_KEY, TRIAL_KEY, dumps
from autotune.store import StudyStore
from autotune.study.packing import pack_config, pack_evaluation
from autotune.testing.problems import coupled, coupled_space, grid, grid_space
from objectives.cluster import read_cluster
from objectives.knobs import search_space
from objectives.model import read_hf_config
from objectives.scenario import Workload, design_point, scenario
from studies import llama3_405b_two_buildings

ROOT = Path(__file__).parents[1]

ELSEWHERE = {
    "duplicates": ("autotune/testing/sampler.py", "test_space_is_exhausted"),
    "same seed on resume": ("autotune/testing/sampler.py", "test_resumes_as_if_never_stopped"),
    "first runs all fail": ("autotune/testing/sampler.py", "test_first_evaluations_all_fail"),
    "compound choice": ("autotune/testing/storage.py", "test_values_of_every_type_survive"),
    "numpy in attributes": (
        "autotune/testing/storage.py",
        "test_attributes_of_any_type_are_kept",
    ),
    "claims that are not atomic": (
        "autotune/testing/storage.py",
        "test_workers_share_the_budget",
    ),
    "NaN as success": ("autotune/testing/objective.py", "test_unsupported_is_refused_by_name"),
    "NaN, inf, wrong length, text": (
        "tests/autotune/test_objective.py",
        "test_a_result_that_is_none_of_the_declared_is_invalid",
    ),
    "warm start by copying": (
        "tests/autotune/test_store.py",
        "test_a_new_study_starts_from_the_nearest_by_measuring_again",
    ),
    "summaries": (
        "tests/autotune/test_store.py",
        "test_a_summary_counts_and_names_only_feasible_bests",
    ),
    "killed worker": (
        "tests/autotune/study/test_death.py",
        "test_killed_in_the_middle_and_run_again",
    ),
    "dashboard": (
        "tests/browser/test_dashboard.py",
        "test_an_infeasible_trial_looks_infeasible",
    ),
    "no trial timeout": (
        "tests/objectives/command/test_process.py",
        "test_a_program_that_sleeps_for_ever",
    ),
    "no trial timeout, with children": (
        "tests/objectives/command/test_process.py",
        "test_children_that_ignore_sigterm_die_too",
    ),
    "own machine": (
        "tests/objectives/cluster/test_loading.py",
        "test_four_gpus_a_node_and_two_gpu_types",
    ),
    "related parameters": ("autotune/testing/sampler.py", "test_only_valid_configs_and_none_twice"),
}


@pytest.mark.parametrize("kind", ELSEWHERE)
def test_is_tested_elsewhere(kind: str) -> None:
    path, name = ELSEWHERE[kind]
    tree = ast.parse((ROOT / path).read_text())
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def grid_study(
    factory: ObjectiveFactory, storage: str | Path | Storage = "memory", **changes: Any
) -> Study:
    fields: dict[str, Any] = {
        "name": "grid",
        "space": grid_space(),
        "objective": factory,
        "metrics": ("loss",),
        "n_startup_trials": 3,
    }
    return open_study(StudySpec(**(fields | changes)), storage)


def test_pruning_with_several_objectives() -> None:
    """optuna#3450: reporting in a study of two metrics raises inside the user's objective."""
    answers: list[bool] = []

    @objective(metrics=["a", "b"])
    def reporting(config: Config, report: Report) -> dict[str, float]:
        answers.append(report(0, {"a": 1.0}))
        answers.append(report(1, {"a": 1.0, "b": math.nan}))
        return {"a": config["a"], "b": 1.0}

    study = grid_study(reporting, metrics=("a", "b"))
    study.optimize(5)
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * 5
    assert answers == [False] * 10


def test_warm_start_taken_unchecked() -> None:
    """optuna#3630, #5113: x = 99 in [0, 1] is evaluated and a misspelt key ignored."""
    space = SearchSpace({"x": FloatDistribution(0, 1), "n": IntDistribution(1, 5)})

    @objective(metrics=["loss"])
    def loss(config: Config) -> dict[str, float]:
        return {"loss": config["x"]}

    study = grid_study(loss, space=space)
    with pytest.raises(InvalidInput, match="typo") as refused:
        study.enqueue({"x": 99, "typo": 1, "n": 3.7})
    assert "99" in str(refused.value)
    assert "3.7" in str(refused.value)
    assert study.enqueue({"x": 99, "typo": 1}, repair=True)["x"] == 1.0
    study.optimize(3)
    asked = study.trials[0]
    assert asked.origin is Origin.ENQUEUED
    assert asked.state is TrialState.COMPLETE
    assert "99" in str(asked.attributes["refused_as"])
    assert "typo" in str(asked.attributes["refused_as"])


def test_choices_change(tmp_path: Path) -> None:
    """optuna#2328: one more choice makes the whole study unusable."""
    storage = tmp_path / "studies.db"

    def space(*buildings: str) -> SearchSpace:
        return SearchSpace(
            {"building": CategoricalDistribution(buildings), "n": IntDistribution(1, 4)}
        )

    @objective(metrics=["loss"])
    def loss(config: Config) -> dict[str, float]:
        return {"loss": config["n"] - 2.0 * (config["building"] == "C")}

    before = grid_study(loss, storage, space=space("A", "B"))
    before.optimize(6)
    with pytest.raises(StudyMismatch, match="C"):
        grid_study(loss, storage, space=space("A", "B", "C"))
    after = open_study(
        StudySpec(name="grid", space=space("A", "B", "C"), objective=loss, metrics=["loss"]),
        storage,
        migrate=True,
    )
    kept = [trial for trial in after.trials if trial.origin is Origin.IMPORTED]
    assert [trial.config for trial in kept] == [trial.config for trial in before.trials]
    after.optimize(4)
    new = [trial for trial in after.trials if trial.slot is not None]
    assert len(new) == 4
    assert "C" in {trial.config["building"] for trial in new}


def test_missing_constraint() -> None:
    """optuna PR#6774: a trial without its constraint's value counts as feasible and wins."""

    @objective(metrics=["loss"], constraints=["memory"])
    def forgetful(config: Config) -> Evaluation:
        if config["a"] == 0:
            return Evaluation(metrics={"loss": -1.0})
        return Evaluation(metrics={"loss": config["a"]}, constraints={"memory": 0.0})

    study = grid_study(forgetful)
    study.optimize(32)
    without = [trial for trial in study.trials if trial.config["a"] == 0]
    assert without
    assert {trial.state for trial in without} == {TrialState.FAILED}
    best = study.best()
    assert best is not None
    assert best.config["a"] == 1


def test_failures_teach_nothing() -> None:
    """optuna#3472, #332: regions that run out of memory are tried again and again."""
    space = SearchSpace({f"x{i}": IntDistribution(0, 9) for i in range(4)})

    def runs_out(config: Config) -> bool:
        return config["x0"] + config["x1"] < 10

    @objective(metrics=["loss"])
    def hungry(config: Config) -> Evaluation:
        if runs_out(config):
            return Evaluation.failure(FailureKind.OOM, "out of memory")
        return Evaluation(metrics={"loss": config["x2"]})

    columns = space.sample(2000, seed=0)
    share = sum(runs_out(config) for config in columns) / len(columns)
    assert 0.5 < share < 0.6
    study = grid_study(hungry, space=space, n_startup_trials=20)
    study.optimize(100)
    failed = [trial.state is TrialState.FAILED for trial in study.trials]
    assert sum(failed[50:]) / 50 < share / 3


def test_noise() -> None:
    """optuna#433: "best" is the luckiest repeat of a config."""

    @objective(metrics=["loss"], deterministic=False)
    def noisy(config: Config, seed: int) -> dict[str, float]:
        return {"loss": 10 * config["a"] + seed % 7}

    study = grid_study(noisy)
    config = grid_space().sample(1, seed=0)[0]
    for _ in range(3):
        study.enqueue(config)
    study.optimize(3)
    assert [trial.config for trial in study.trials] == [config] * 3
    losses = [t.evaluation.metrics["loss"] for t in study.trials if t.evaluation]
    assert len(set(losses)) > 1, "the test needs noise"
    assert len(study.front()) == 1
    best = study.best()
    assert best is not None
    assert best.evaluation is not None
    assert best.evaluation.metrics["loss"] == pytest.approx(sum(losses) / 3)
    assert best.attributes["repeats"] == 3
    assert best.attributes["standard_deviation"]["loss"] > 0


def test_fidelities_mixed() -> None:
    """Ax#3933, #2514: nobody can tell which backend gave the numbers of a front."""
    storage = open_storage("memory")

    def backend(name: str, bias: float) -> ObjectiveFactory:
        @objective(metrics=["loss"], name=name)
        def loss(config: Config) -> dict[str, float]:
            return {"loss": config["a"] + bias}

        return loss

    for name, bias in (("cheap", 0.0), ("costly", 100.0)):
        grid_study(backend(name, bias), storage).optimize(5)
    summaries = StudyStore(storage).studies()
    assert [summary.name for summary in summaries] == ["grid@cheap", "grid@costly"]
    assert [summary.record.objective for summary in summaries] == ["cheap", "costly"]
    assert summaries[0].best["loss"] < 100 <= summaries[1].best["loss"]


def test_shared_budget(tmp_path: Path) -> None:
    """optuna#1883: every worker adds its own budget, and each of them overshoots."""
    storage = tmp_path / "studies.db"
    study = grid_study(grid, storage)
    study.optimize(10, n_jobs=4)
    assert [trial.slot for trial in study.trials] == list(range(10))
    assert study.optimize(10, n_jobs=4).new_trials == 0


@pytest.fixture(scope="module")
def big() -> Iterator[Study]:
    """Ten thousand trials of `coupled_space`, written in bulk."""
    storage = open_storage("memory")
    spec = StudySpec(
        name="big", space=coupled_space(), objective=coupled, metrics=("time_s", "traffic_byte")
    )
    study = open_study(spec, storage)
    study.optimize(1)
    _fill(study, 10_000)
    yield open_study(spec, storage)
    storage.close()


def test_slow_with_history(big: Study) -> None:
    """optuna#6230: TPE takes 438 ms for a proposal at 5,000 trials; here one at 10,000."""
    assert big.optimize(10_002).new_trials == 1
    assert big.trials[-1].origin is Origin.SAMPLER


def test_slow_reading(big: Study) -> None:
    """optunahub-registry#405: 23 s for 28,000 trials; here ten thousand are read in bulk."""
    store = StudyStore(big.storage)
    assert len(big.frame()) >= 10_000
    for read in (store.studies, big.front, lambda: store.best_trials("big")):
        assert len(read()) > 0


def test_no_vectorised_objective() -> None:
    """optuna#3047: ten thousand points take ten thousand calls; here one."""
    spec = llama3_405b_two_buildings.study()
    backend = spec.make_objective()
    assert isinstance(backend, BatchObjective)
    found = backend.evaluate_batch(spec.space.sample_columns(10_000, seed=0))
    assert len(found) == 10_000
    assert found.ok.mean() > 0.9


def test_fat_last_stage() -> None:
    """aiconfigurator PR#1459: a pipeline as fast as if the head were spread over its stages."""
    config_of: dict[str, Any] = {
        "pipeline_parallel_degree": 8,
        "pipeline_parallel_schedule": "1F1B",
        "pipeline_parallel_last_stage_less_layers": 0,
        "pipeline_parallel_first_stage_less_layers": 0,
    }
    model = read_hf_config("llama3-8b")
    workload = Workload(global_batch_tokens=512 * 8192, sequence_length=8192)
    cluster = read_cluster("mixed-48")
    first, second = cluster["building"]
    cluster["building"] = [first, {**first, "name": second["name"], "region": second["region"]}]
    large, small = (
        design_point("v", model={**model, "vocab_size": v}, cluster=cluster, workload=workload)
        for v in (128_256, 8_016)
    )
    space = search_space(scenario(large))
    config = space.project({**space.sample(1, seed=0)[0], **config_of})
    assert config.items() >= config_of.items(), "the test needs this pipeline"
    with_head, without = (
        load("autotune.objectives", "analytical")(point).evaluate(config, seed=0)
        for point in (large, small)
    )
    more_s = with_head.metrics["step_time_s"] - without.metrics["step_time_s"]
    added_parameters = (128_256 - 8_016) * model["hidden_size"]
    spread_s = with_head.breakdown["compute"] * added_parameters / 7.5e9
    assert more_s > 3 * spread_s, "the last stage is the slowest, and all others wait for it"


def _fill(study: Study, n: int) -> None:
    """Copy the study's first trial n times, with other configs and results."""
    space, study_id = study.spec.space, study.record.study_id
    distributions = space.optuna_distributions()
    texts = {name: distribution_to_json(each) for name, each in distributions.items()}
    with study.storage.read() as connection:
        first = read_trials(connection, study_id)[0]
    rows: dict[Any, list[dict[str, Any]]] = {
        table: []
        for table in (
            schema.trials,
            schema.trial_params,
            schema.trial_values,
            schema.trial_user_attributes,
            schema.trial_system_attributes,
        )
    }
    for i, config in enumerate(space.sample(n, seed=1), start=1):
        result = study.objective.evaluate(config, seed=0)
        key = {"trial_id": first.trial_id + i}
        rows[schema.trials].append({**key, "study_id": study_id, "number": i, "state": "COMPLETE"})
        rows[schema.trial_params] += [
            {
                **key,
                "param_name": name,
                "param_value": distributions[name].to_internal_repr(value),
                "distribution_json": texts[name],
            }
            for name, value in space.to_optuna(config).items()
        ]
        rows[schema.trial_values] += [
            {**key, "objective": j, "value": value, "value_type": "FINITE"}
            for j, value in enumerate(result.metrics.values())
        ]
        packed = {
            **first.packed,
            "slot": i,
            "config": pack_config(config),
            "evaluation": pack_evaluation(result),
        }
        rows[schema.trial_user_attributes].append(
            {**key, "key": TRIAL_KEY, "value_json": dumps(packed)}
        )
        rows[schema.trial_system_attributes].append(
            {
                **key,
                "key": CONSTRAINTS_KEY,
                "value_json": dumps(list(result.constraints.values())),
            }
        )
    with study.storage.write(study_id) as connection:
        for table, values in rows.items():
            connection.execute(insert(table), values)
