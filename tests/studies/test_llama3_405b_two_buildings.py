from __future__ import annotations

import pytest

from objectives.scenario import scenario
from studies.llama3_405b_two_buildings import CUTS_TBIT_PER_S, cut_sweep, study


@pytest.fixture(scope="module")
def spec():
    return study()


def test_the_job_is_the_published_one(spec):
    job = scenario(spec.design_point)
    assert job.cluster.gpus == 16384
    assert [building.gpus for building in job.cluster.buildings] == [8192, 8192]
    assert job.workload.global_batch_tokens == 16 * 2**20
    assert job.workload.sequence_length == 8192
    assert job.cluster.between_buildings.capacity_bytes_per_s == pytest.approx(1.6e12)
    assert job.cluster.between_buildings.distance_m == pytest.approx(10e3)


def test_the_baseline_is_in_a_rich_space(spec):
    assert list(spec.baselines) == ["llama3-production"]
    assert spec.space.contains(spec.baselines["llama3-production"])
    assert spec.space.count() > 10**7
    assert spec.metrics == ("step_time_s", "long_link_bandwidth_bytes_per_s")


def test_the_mathematics_is_the_baseline_s(spec):
    baseline = spec.baselines["llama3-production"]
    for name in ("precision", "gradient_dtype"):
        assert spec.space.parameters[name].choices == (baseline[name],)


def test_the_sweep_changes_only_the_cut(spec):
    sweep = cut_sweep()
    capacities = [
        scenario(one.design_point).cluster.between_buildings.capacity_bytes_per_s for one in sweep
    ]
    assert capacities == pytest.approx([terabits * 1e12 / 8 for terabits in CUTS_TBIT_PER_S])
    assert sweep[0].name == "llama3-405b-cut-sweep/3.2-Tbit-s"
    assert sweep[-1].name == "llama3-405b-cut-sweep/205-Tbit-s"
    assert len({one.design_point.fingerprint for one in sweep}) == len(sweep)
    assert {one.space.fingerprint for one in sweep} == {spec.space.fingerprint}
    same = sweep[CUTS_TBIT_PER_S.index(12.8)]
    assert same.design_point.fingerprint == spec.design_point.fingerprint
