import re
from typing import Any

import pytest

from autotune import DesignPoint, InvalidInput, Unsupported
from objectives.exporters import megatron, nccl, torchtitan
from objectives.exporters.job import DEFAULTS, make_job, stage_layers
from objectives.knobs import search_space
from objectives.scenario import scenario


@pytest.mark.parametrize("exporter", [torchtitan, megatron, nccl])
def test_every_exporter_has_a_rule_for_every_knob(exporter: Any) -> None:
    assert set(exporter.RULES) == set(DEFAULTS)


@pytest.mark.parametrize("exporter", [torchtitan, megatron, nccl])
def test_an_unknown_knob_is_never_dropped(
    exporter: Any, llama_8b: DesignPoint, small: dict[str, Any]
) -> None:
    with pytest.raises(Unsupported, match="warp_speed=9"):
        exporter.export(llama_8b, {**small, "warp_speed": 9})


def test_a_config_of_another_design_point_is_refused_with_every_reason(
    llama_8b: DesignPoint, small: dict[str, Any]
) -> None:
    wrong = {"tensor_parallel_degree": 4, "dimension_order": "tp-pp", "microbatch_size": 3}
    with pytest.raises(InvalidInput) as caught:
        make_job("test", llama_8b, {**small, **wrong})
    assert len(caught.value.problems) == 3
    assert "32 GPUs, got 64" in str(caught.value)


def test_stages_of_the_production_layout(
    llama_405b: DesignPoint, production: dict[str, Any]
) -> None:
    job = make_job("test", llama_405b, production)
    assert (job.global_batch_size, job.microbatches, job.stages) == (2048, 16, 128)
    assert stage_layers(job) == [0, *[1] * 126, 0]


def test_layers_that_do_not_divide_go_to_the_first_stages(
    llama_8b: DesignPoint, small: dict[str, Any]
) -> None:
    changes = {"virtual_stages_per_rank": 3, "pipeline_parallel_last_stage_less_layers": 2}
    job = make_job("test", llama_8b, {**small, **changes})
    assert stage_layers(job) == [6, 6, 6, 6, 5, 3]


@pytest.mark.parametrize("exporter", [torchtitan, megatron])
def test_every_reason_is_named_at_once(
    exporter: Any, llama_8b: DesignPoint, small: dict[str, Any]
) -> None:
    wrong = {"pipeline_parallel_schedule": "VHalf", "local_steps": 8}
    with pytest.raises(Unsupported) as caught:
        exporter.export(llama_8b, {**small, **wrong})
    for knob in wrong:
        assert f"cannot express {knob}=" in str(caught.value)


@pytest.mark.parametrize("exporter", [torchtitan, megatron, nccl])
def test_any_config_of_the_space_is_written_or_refused_by_name(
    exporter: Any, llama_8b: DesignPoint
) -> None:
    knobs = search_space(scenario(llama_8b))
    written = 0
    for config in knobs.sample(200, seed=1):
        try:
            written += bool(exporter.export(llama_8b, config))
        except Unsupported as error:
            for line in str(error).splitlines():
                assert re.search(r"cannot express (\w+)=", line)[1] in config  # type: ignore[index]
    assert written >= (100 if exporter is nccl else 0)
