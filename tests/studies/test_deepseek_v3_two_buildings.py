from __future__ import annotations

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
