from __future__ import annotations

import numpy as np
import pytest

from objectives.scenario import scenario
from studies.deepseek_v3_two_buildings import study


@pytest.fixture(scope="module")
def spec():
    return study()


def test_the_job_is_the_published_one(spec):
    job = scenario(spec.design_point)
    assert [building.gpus for building in job.cluster.buildings] == [1024, 1024]
    assert job.model.moe.num_experts == 256
    assert job.workload.global_batch_sequences == 15360
    assert job.workload.sequence_length == 4096


def test_the_baseline_is_in_the_space_and_its_mathematics_kept(spec):
    baseline = spec.baselines["deepseek-v3-production"]
    assert spec.space.contains(baseline)
    assert spec.space.parameters["precision"].choices == ("fp8",)
    assert spec.space.count() > 10**7


def test_the_baseline_takes_about_as_long_as_published(spec):
    """180,000 GPU hours per 10^12 tokens on 2,048 GPUs: 19.9 s for a step, in one cluster."""
    published_s = 180e3 * 3600 / 2048 * 15360 * 4096 / 1e12
    baseline = spec.baselines["deepseek-v3-production"]
    result = spec.make_objective().evaluate(baseline, seed=0)
    assert result.feasible
    assert result.metrics["step_time_s"] == pytest.approx(published_s, rel=0.15)


def test_every_sample_is_measured_or_refused_by_name(spec):
    objective = spec.make_objective()
    results = objective.evaluate_batch(spec.space.sample_columns(1000, seed=7))
    assert results.ok.mean() > 0.7
    for reason in results.reasons.values():
        assert any(name in reason for name in spec.space.names), reason
    for values in (*results.metrics.values(), *results.constraints.values()):
        assert np.all(np.isfinite(values[results.ok]))
