"""What every objective must do, as tests that run on any of them."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from joblib.externals.loky.backend.reduction import dumps

from autotune.design_point import DesignPoint
from autotune.evaluation import Evaluation, Evaluations, FailureKind, Status
from autotune.jsonable import canonical_json
from autotune.objective import BatchObjective, Config, Objective, ObjectiveFactory, columns_of
from autotune.space import SearchSpace

JUNK: tuple[Any, ...] = (None, "", "junk", -1, 0, 3.7, 10**30, float("nan"), float("inf"), [], {})
"""Values that no space would offer; an objective may refuse them but must not raise."""

CHEAP_S = 0.001
"""Objectives that cost less are tried with every kind of junk in every parameter."""


class ObjectiveContract:
    """Subclass it, override `factory` and `space`, and pytest does the rest.

    Examples:
        A whole test file of a third party::

            from autotune.testing import ObjectiveContract

            class TestMyBackend(ObjectiveContract):
                breakdown_sums_to = "step_time_s"

                @pytest.fixture
                def factory(self):
                    return my_backend

                @pytest.fixture
                def space(self):
                    return my_space

        ``pytest.register_assert_rewrite("autotune.testing")`` in the ``conftest.py`` shows the
        values of a failed assertion.

    Attributes:
        num_configs: How many valid configs are measured.
        breakdown_sums_to: The metric that the terms of the breakdown add up to; None when the
            backend has no breakdown.
        seeded: Whether the same config and seed give the same values where the objective is
            not deterministic; False for real measurements.
        relative_tolerance: Between a row of a batch and the config on its own, between two
            runs, and between the breakdown's sum and its metric.
    """

    num_configs: int = 8
    breakdown_sums_to: str | None = None
    seeded: bool = True
    relative_tolerance: float = 1e-9

    @pytest.fixture
    def factory(self) -> ObjectiveFactory:
        """The factory under test."""
        raise NotImplementedError("override the fixture `factory`")

    @pytest.fixture
    def space(self) -> SearchSpace:
        """A space whose configs the backend measures."""
        raise NotImplementedError("override the fixture `space`, or `configs`")

    @pytest.fixture
    def design_point(self) -> DesignPoint:
        """The scenario to measure in."""
        return DesignPoint(name="default")

    @pytest.fixture
    def configs(self, space: SearchSpace) -> Sequence[Config]:
        """Valid configs; a sample of the space unless overridden."""
        return space.sample(self.num_configs, seed=0)

    @pytest.fixture
    def infeasible(self) -> Sequence[Config]:
        """Valid configs that break a constraint; none unless overridden."""
        return ()

    @pytest.fixture
    def unsupported(self) -> Mapping[str, Config]:
        """Configs that the backend does not model, by the parameter that the reason names."""
        return {}

    @pytest.fixture
    def objective(self, factory: ObjectiveFactory, design_point: DesignPoint) -> Objective:
        """The objective under test, bound to the design point."""
        return factory(design_point)

    def test_declares_itself(self, objective: Objective) -> None:
        """Name, version, metrics, constraints, determinism and cost are stated."""
        assert isinstance(objective, Objective)
        for text in (objective.name, objective.version):
            assert isinstance(text, str)
            assert text.strip()
        names = [*(metric.name for metric in objective.metrics), *objective.constraints]
        assert objective.metrics
        assert len(set(names)) == len(names), f"a name is declared twice: {names}"
        assert isinstance(objective.deterministic, bool)
        assert math.isfinite(objective.cost_s)
        assert objective.cost_s > 0

    def test_factory_repeats_itself(
        self, factory: ObjectiveFactory, design_point: DesignPoint
    ) -> None:
        """Two objectives of one design point have the same identity, so that studies resume."""
        first, second = factory(design_point), factory(design_point)
        for field in ("name", "version", "metrics", "constraints", "deterministic"):
            assert getattr(first, field) == getattr(second, field)

    def test_values_are_declared_and_finite(
        self, objective: Objective, configs: Sequence[Config]
    ) -> None:
        """An ``ok`` evaluation has every declared name, no other, and finite values."""
        evaluations = [objective.evaluate(config, seed=0) for config in configs]
        assert any(evaluation.ok for evaluation in evaluations), (
            f"no config could be measured; the first says: {evaluations[0].reason}"
        )
        for evaluation in evaluations:
            _check_evaluation(objective, evaluation)

    def test_reaches_a_worker_process(
        self, objective: Objective, configs: Sequence[Config]
    ) -> None:
        """It survives the way by which joblib sends it to another process."""
        sent = pickle.loads(dumps(objective))
        assert (sent.name, sent.version) == (objective.name, objective.version)
        evaluation = sent.evaluate(configs[0], seed=0)
        assert evaluation.status == objective.evaluate(configs[0], seed=0).status

    def test_config_is_not_changed(self, objective: Objective, configs: Sequence[Config]) -> None:
        """Evaluating leaves the config as it was, down to the values inside it."""
        for config in configs:
            before = copy.deepcopy(dict(config))
            objective.evaluate(config, seed=0)
            assert dict(config) == before
            assert list(config) == list(before)

    def test_repeats_as_declared(self, objective: Objective, configs: Sequence[Config]) -> None:
        """The same config gives the same values: always, or for the same seed."""
        if not objective.deterministic and not self.seeded:
            pytest.skip("measures something real, so that repeats differ")
        seeds = (7, 8) if objective.deterministic else (7, 7)
        for config in configs:
            first, second = (objective.evaluate(config, seed=seed) for seed in seeds)
            self._check_equal(first, second)

    def test_seeds_differ(self, objective: Objective, configs: Sequence[Config]) -> None:
        """A noisy objective draws its noise from the seed."""
        if objective.deterministic or not self.seeded:
            pytest.skip("has no noise that is drawn from a seed")
        values = {
            canonical_json(objective.evaluate(configs[0], seed=seed).metrics) for seed in range(5)
        }
        assert len(values) > 1, "five seeds gave the same values"

    def test_configs_differ(self, objective: Objective, configs: Sequence[Config]) -> None:
        """The values depend on the config at all."""
        values = {canonical_json(objective.evaluate(config, seed=0).metrics) for config in configs}
        assert len(values) > 1, f"{len(configs)} configs gave the same values"

    def test_numpy_values_are_values(self, objective: Objective, configs: Sequence[Config]) -> None:
        """A config taken from arrays measures like the plain one."""
        if not objective.deterministic:
            pytest.skip("needs equal values for equal configs")
        for config in configs:
            boxed = {key: _boxed(value) for key, value in config.items()}
            self._check_equal(objective.evaluate(boxed, seed=0), objective.evaluate(config, seed=0))

    def test_result_is_jsonable(self, objective: Objective, configs: Sequence[Config]) -> None:
        """Everything in an evaluation can be stored."""
        for config in configs:
            evaluation = objective.evaluate(config, seed=0)
            canonical_json(
                [
                    evaluation.metrics,
                    evaluation.constraints,
                    evaluation.breakdown,
                    evaluation.attributes,
                ]
            )
            assert evaluation.cost_s >= 0

    def test_breakdown_sums(self, objective: Objective, configs: Sequence[Config]) -> None:
        """The terms are finite, not negative, and add up to their metric."""
        if self.breakdown_sums_to is None:
            pytest.skip("declares no breakdown")
        for config in configs:
            evaluation = objective.evaluate(config, seed=0)
            if not evaluation.ok:
                continue
            assert evaluation.breakdown, f"no breakdown for {config}"
            assert all(value >= 0 for value in evaluation.breakdown.values()), evaluation.breakdown
            total = math.fsum(evaluation.breakdown.values())
            expected = evaluation.metrics[self.breakdown_sums_to]
            assert total == pytest.approx(expected, rel=self.relative_tolerance)

    def test_infeasible_has_finite_values(
        self, objective: Objective, infeasible: Sequence[Config]
    ) -> None:
        """A config that breaks a constraint is measured, with that constraint positive."""
        if not infeasible:
            pytest.skip("no infeasible config is given")
        for config in infeasible:
            evaluation = objective.evaluate(config, seed=0)
            _check_evaluation(objective, evaluation)
            assert evaluation.ok, evaluation.reason
            assert not evaluation.feasible

    def test_unsupported_is_refused_by_name(
        self, objective: Objective, unsupported: Mapping[str, Config]
    ) -> None:
        """What the backend does not model is a failure whose reason names the parameter."""
        if not unsupported:
            pytest.skip("no unsupported config is given")
        for parameter, config in unsupported.items():
            evaluation = objective.evaluate(config, seed=0)
            assert evaluation.failure_kind is FailureKind.INVALID, evaluation
            assert parameter in evaluation.reason
            if isinstance(objective, BatchObjective):
                batch = objective.evaluate_batch(columns_of([config]))
                assert not batch.ok[0]
                assert parameter in batch.reasons[0]

    def test_junk_does_not_raise(self, objective: Objective, configs: Sequence[Config]) -> None:
        """A value, a key too many or a key too few is answered, never raised."""
        for config in _broken(configs[0], thorough=objective.cost_s < CHEAP_S):
            evaluation = objective.evaluate(config, seed=0)
            assert isinstance(evaluation, Evaluation)
            _check_evaluation(objective, evaluation)

    def test_batch_equals_rows(self, objective: Objective, configs: Sequence[Config]) -> None:
        """One call over arrays gives what each config gives on its own, breakdown included."""
        if not isinstance(objective, BatchObjective):
            pytest.skip("measures one config at a time")
        batch = objective.evaluate_batch(columns_of(configs), breakdown=True)
        assert len(batch) == len(configs)
        for i, config in enumerate(configs):
            self._check_equal(batch.row(i), objective.evaluate(config, seed=0))
        lean = objective.evaluate_batch(columns_of(configs))
        assert not lean.breakdown, "a breakdown that nobody asked for"
        for name, values in lean.metrics.items():
            np.testing.assert_allclose(values, batch.metrics[name], rtol=self.relative_tolerance)

    def test_batch_order_does_not_matter(
        self, objective: Objective, configs: Sequence[Config]
    ) -> None:
        """A row's result does not depend on its neighbours."""
        if not isinstance(objective, BatchObjective):
            pytest.skip("measures one config at a time")
        forward = objective.evaluate_batch(columns_of(configs))
        backward = objective.evaluate_batch(columns_of(configs[::-1]))
        for name, values in forward.metrics.items():
            np.testing.assert_allclose(
                values, backward.metrics[name][::-1], rtol=self.relative_tolerance
            )

    def test_batch_is_checked_arrays(self, objective: Objective, configs: Sequence[Config]) -> None:
        """Arrays have one entry a row, finite where ``ok``; no column is changed."""
        if not isinstance(objective, BatchObjective):
            pytest.skip("measures one config at a time")
        columns = columns_of(configs)
        before = copy.deepcopy(columns)
        _check_batch(objective, objective.evaluate_batch(columns))
        for name, values in columns.items():
            np.testing.assert_array_equal(values, before[name])

    def _check_equal(self, first: Evaluation, second: Evaluation) -> None:
        assert first.status == second.status, (first, second)
        assert first.failure_kind == second.failure_kind
        assert first.metrics == pytest.approx(second.metrics, rel=self.relative_tolerance)
        # A constraint may be a small difference of large numbers.
        assert first.constraints == pytest.approx(
            second.constraints, rel=max(self.relative_tolerance, 1e-6)
        )


def _check_evaluation(objective: Objective, evaluation: Evaluation) -> None:
    if evaluation.status is Status.FAILED:
        assert evaluation.reason, f"a failure without a reason: {evaluation}"
        assert not evaluation.metrics, "a failed measurement has no values"
        return
    if evaluation.status is Status.STOPPED:
        return
    assert set(evaluation.metrics) == {metric.name for metric in objective.metrics}
    assert set(evaluation.constraints) == set(objective.constraints)
    for name, value in (*evaluation.metrics.items(), *evaluation.constraints.items()):
        assert isinstance(value, float | int), f"{name} is a {type(value).__name__}"
        assert math.isfinite(value), f"{name} is {value}"


def _check_batch(objective: BatchObjective, batch: Evaluations) -> None:
    n = len(batch)
    assert batch.ok.shape == (n,)
    assert batch.ok.dtype == np.bool_
    assert set(batch.metrics) == {metric.name for metric in objective.metrics}
    assert set(batch.constraints) == set(objective.constraints)
    for name, values in (*batch.metrics.items(), *batch.constraints.items()):
        assert values.shape == (n,), f"{name} has shape {values.shape}, not ({n},)"
        assert np.isfinite(values[batch.ok]).all(), f"{name} is not finite"
    for i in np.flatnonzero(~batch.ok):
        assert batch.reasons.get(int(i)), f"row {i} is refused without a reason"


def _broken(config: Config, *, thorough: bool) -> Iterator[dict[str, Any]]:
    """Yield the config with one thing wrong at a time."""
    for i, name in enumerate(config):
        for value in JUNK if thorough else (JUNK[i % len(JUNK)],):
            yield {**config, name: value}
        if thorough or i == 0:
            yield {key: value for key, value in config.items() if key != name}
    yield {**config, "no_such_parameter": 1}
    yield {}


def _boxed(value: Any) -> Any:
    """The NumPy scalar that an array of such values holds."""
    return np.asarray([value])[0] if isinstance(value, bool | int | float | str) else value
