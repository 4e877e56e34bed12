"""What is not modelled, or is no valid job, is refused by name; nothing is ever guessed."""

from __future__ import annotations

import numpy as np
import pytest

from autotune import FailureKind
from autotune.objective import columns_of
from objectives.analytical import analytical
from objectives.analytical.columns import KNOBS
from objectives.scenario import Workload, design_point

ONE = "one-building-16k-h100"


REFUSED = {
    # knob that the reason names: what is wrong
    "tensor_parallel_degree": {"data_parallel_shard_degree": 64},
    "context_parallel_degree": {
        "context_parallel_degree": 1024,
        "data_parallel_shard_degree": 1,
        "tensor_parallel_degree": 16,
        "pipeline_parallel_degree": 1,
        "pipeline_parallel_schedule": "none",
        "virtual_stages_per_rank": 1,
        "pipeline_parallel_first_stage_less_layers": 0,
        "pipeline_parallel_last_stage_less_layers": 0,
    },
    "expert_parallel_degree": {"expert_parallel_degree": 2},
    "dimension_order": {"dimension_order": "tp-cp-pp-shard"},
    "pipeline_parallel_schedule": {"pipeline_parallel_schedule": "2F2B"},
    "microbatch_size": {"microbatch_size": 3},
    "virtual_stages_per_rank": {"virtual_stages_per_rank": 5},
    "pipeline_parallel_first_stage_less_layers": {"pipeline_parallel_first_stage_less_layers": -1},
    "fsdp_reshard_after_forward": {"fsdp_reshard_after_forward": "sometimes"},
    "fsdp_prefetch_depth": {"fsdp_prefetch_depth": 0},
    "overlap_gradient_reduction": {"overlap_gradient_reduction": 2},
    "activation_offload_fraction": {"activation_offload_fraction": 1.5},
    "optimizer_offload_fraction": {"optimizer_offload_fraction": float("nan")},
    "precision": {"precision": "fp4"},
    "load_balancing": {"load_balancing": "spray"},
    "bytes_in_flight": {"bytes_in_flight": 0},
    "local_steps": {"local_steps": 2.5},
    "transport": {"transport": None},
}


@pytest.mark.parametrize("knob", REFUSED)
def test_a_config_is_refused_by_the_knob_that_is_wrong(llama, baseline, knob) -> None:
    baseline = {**baseline, "local_steps": 1}
    config = {**baseline, **REFUSED[knob]}
    alone = llama().evaluate(config, seed=0)
    assert alone.failure_kind is FailureKind.INVALID
    assert knob in alone.reason
    batch = llama().evaluate_batch(columns_of([config, baseline]))
    assert batch.ok.tolist() == [False, True]
    assert batch.reasons[0] == alone.reason


def test_a_reason_says_what_holds_and_what_was_got(llama, baseline) -> None:
    result = llama().evaluate({**baseline, "tensor_parallel_degree": 3}, seed=0)
    assert "must be the cluster's 16384 GPUs, got 6144" in result.reason


def test_schedules_need_their_microbatches_and_chunks(llama, baseline) -> None:
    for changes, reason in (
        ({"microbatch_size": 16}, "interleaved schedules need a multiple"),
        (
            {"pipeline_parallel_schedule": "DualPipeV", "virtual_stages_per_rank": 2},
            "DualPipeV twice as many",
        ),
        ({"pipeline_parallel_schedule": "VMin"}, "2 for V schedules"),
        ({"pipeline_parallel_schedule": "none"}, "for one pipeline rank and only then"),
    ):
        result = llama().evaluate({**baseline, **changes}, seed=0)
        assert reason in result.reason, result.reason


def test_unknown_and_missing_knobs_are_named(llama, baseline) -> None:
    extra = llama().evaluate({**baseline, "first_building_batch_share": 0.5}, seed=0)
    assert extra.reason.startswith("first_building_batch_share: is not a knob")
    short = {name: value for name, value in baseline.items() if name != "microbatch_size"}
    assert llama().evaluate(short, seed=0).reason.startswith("microbatch_size: is missing")
    assert not llama().evaluate({}, seed=0).ok


def test_what_may_be_left_out_has_its_plain_value(llama, baseline) -> None:
    """A config of another space, without the knobs that it never had."""
    plain = {
        name: value
        for name, value in baseline.items()
        if KNOBS[name].default != value or name == "gradient_dtype"
    }
    assert len(plain) < len(baseline)
    assert llama().evaluate(plain, seed=0).metrics == llama().evaluate(baseline, seed=0).metrics


def test_numbers_of_numpy_and_whole_floats_are_numbers(llama, baseline) -> None:
    boxed = {name: np.asarray([value])[0] for name, value in baseline.items()}
    boxed["microbatch_size"] = np.float64(1.0)
    assert llama().evaluate(boxed, seed=0).metrics == llama().evaluate(baseline, seed=0).metrics


def test_other_machines_are_refused_where_not_modelled(llama, baseline, samples) -> None:
    building = {
        "name": "east",
        "region": "home",
        "accelerator": "H100-SXM",
        "gpus": 8192,
        "gpus_per_node": 8,
        "gpus_per_zone": 2048,
    }
    cases = {
        "gpus": [building, {**building, "name": "west", "gpus": 4096}],
        "accelerator": [building, {**building, "name": "west", "accelerator": "A100-80"}],
        "region": [
            building,
            {**building, "name": "west"},
            {**building, "name": "far", "region": "abroad"},
        ],
    }
    for what, buildings in cases.items():
        changes = {
            ("building",): buildings,
            ("link", "between_regions"): {"capacity": "1 Tbit/s", "distance": "500 km"},
        }
        objective = llama(changes=changes)
        result = objective.evaluate_batch(samples("llama", 20, seed=0))
        assert not result.ok.any()
        assert all(
            reason.startswith(f"cluster.building.{what}") for reason in result.reasons.values()
        )


def test_eight_bits_need_an_accelerator_that_has_them(baseline) -> None:
    point = design_point(
        "a100",
        model="llama3-8b",
        cluster={
            "building": [
                {
                    "name": "home",
                    "accelerator": "A100-80",
                    "gpus": 8,
                    "gpus_per_node": 8,
                }
            ],
            "link": {
                "node": {"bandwidth": "300 GB/s", "latency": "1 us"},
                "zone": {"bandwidth": "200 Gbit/s", "latency": "4 us"},
            },
        },
        workload=Workload(global_batch_tokens=8 * 8192, sequence_length=8192),
    )
    config = {
        **baseline,
        "tensor_parallel_degree": 1,
        "pipeline_parallel_degree": 1,
        "data_parallel_shard_degree": 8,
        "pipeline_parallel_schedule": "none",
        "virtual_stages_per_rank": 1,
        "pipeline_parallel_first_stage_less_layers": 0,
        "pipeline_parallel_last_stage_less_layers": 0,
    }
    objective = analytical(point)
    assert objective.evaluate(config, seed=0).ok
    assert objective.evaluate({**config, "precision": "fp8"}, seed=0).reason.startswith("precision")
    offloads = objective.evaluate({**config, "optimizer_offload_fraction": 0.5}, seed=0)
    assert offloads.reason.startswith("optimizer_offload_fraction: the cluster has no [link.host]")
    assert "cost_usd" not in {metric.name for metric in objective.metrics}


def test_an_accelerator_nobody_measured_says_that_its_constants_are_assumed(
    llama, baseline
) -> None:
    changes = {
        ("accelerator",): {"mine": {"preset": "H100-SXM", "price": "2 USD/h"}},
        ("building",): [
            {
                "name": "home",
                "region": "home",
                "accelerator": "mine",
                "gpus": 16384,
                "gpus_per_node": 8,
                "gpus_per_zone": 2048,
            }
        ],
    }
    result = llama(ONE, changes).evaluate(baseline, seed=0)
    assert result.ok
    assert "other" in result.attributes["calibration"]
    dollars = 16384 * 2 / 3600 * result.metrics["step_time_s"]
    assert result.metrics["cost_usd"] == pytest.approx(dollars)
