import tomllib
from typing import Any

import pytest

from autotune import DesignPoint, Unsupported
from objectives.exporters.toml_text import to_toml
from objectives.exporters.torchtitan import export


def job(design_point: DesignPoint, config: dict[str, Any]) -> dict[str, Any]:
    return tomllib.loads(export(design_point, config)["torchtitan.toml"])


def test_the_production_layout(llama_405b: DesignPoint, production: dict[str, Any]) -> None:
    texts = export(llama_405b, production)
    written = tomllib.loads(texts["torchtitan.toml"])
    assert written["model"]["name"] == "llama3"
    assert written["model"]["flavor"] == "405B"
    assert written["training"]["local_batch_size"] == 16
    assert written["training"]["global_batch_size"] == 2048
    assert written["training"]["seq_len"] == 8192
    assert written["activation_checkpoint"] == {"mode": "none"}
    assert written["parallelism"] == {
        "tensor_parallel_degree": 8,
        "context_parallel_degree": 1,
        "pipeline_parallel_degree": 16,
        "data_parallel_shard_degree": 128,
        "data_parallel_replicate_degree": 1,
        "pipeline_parallel_schedule": "Interleaved1F1B",
        "pipeline_parallel_microbatch_size": 1,
        "pipeline_parallel_layers_per_stage": 1,
        "pipeline_parallel_first_stage_less_layers": 1,
        "pipeline_parallel_last_stage_less_layers": 1,
        "fsdp_reshard_after_forward": "never",
        "enable_async_tensor_parallel": False,
    }
    assert "torchtitan_node_ranks.csv" in texts["torchtitan.toml"]
    assert texts["torchtitan_node_ranks.csv"].startswith("building,node,node_rank\n")


def test_the_file_names_version_and_what_is_set_elsewhere(
    llama_8b: DesignPoint, small: dict[str, Any]
) -> None:
    text = export(llama_8b, {**small, "transport": "erasure_coded"})["torchtitan.toml"]
    assert text.startswith("# For torchtitan v0.2.2 (commit 73a0e6979dd1)")
    assert "see the nccl export: transport = erasure_coded" in text


def test_without_a_pipeline_gradients_accumulate(
    llama_8b: DesignPoint, small: dict[str, Any]
) -> None:
    changes = {
        "pipeline_parallel_degree": 1,
        "pipeline_parallel_schedule": "none",
        "data_parallel_shard_degree": 8,
        "gradient_reduction": "per_microbatch",
    }
    written = job(llama_8b, {**small, **changes})
    assert written["training"]["local_batch_size"] == 2
    assert written["training"]["global_batch_size"] == 64
    assert "pipeline_parallel_schedule" not in written["parallelism"]


def test_fp8_and_selective_checkpointing(llama_8b: DesignPoint, small: dict[str, Any]) -> None:
    changes = {"precision": "fp8", "activation_checkpoint_mode": "selective"}
    written = job(llama_8b, {**small, **changes})
    assert written["model"]["converters"] == ["quantize.linear.float8"]
    assert written["quantize"]["linear"]["float8"]["recipe_name"] == "tensorwise"
    assert written["activation_checkpoint"] == {"mode": "selective", "selective_ac_option": "op"}


@pytest.mark.parametrize(
    ("knob", "value"),
    [
        ("pipeline_parallel_schedule", "VHalf"),
        ("virtual_stages_per_rank", 2),
        ("gradient_dtype", "bf16"),
        ("gradient_reduction", "per_microbatch"),
        ("fsdp_prefetch_depth", 2),
        ("overlap_gradient_reduction", False),
        ("overlap_parameter_gather", False),
        ("async_pipeline_p2p", False),
        ("p2p_scatter_gather", False),
        ("activation_offload_fraction", 0.5),
        ("optimizer_offload_fraction", 1.0),
        ("gradient_compression", "int8"),
        ("local_steps", 8),
    ],
)
def test_what_it_cannot_express_is_refused_by_name(
    llama_8b: DesignPoint, small: dict[str, Any], knob: str, value: Any
) -> None:
    with pytest.raises(Unsupported) as caught:
        export(llama_8b, {**small, knob: value})
    assert f"torchtitan v0.2.2 cannot express {knob}={value!r}" in str(caught.value)


def test_stages_that_its_rule_would_not_make_are_refused(
    llama_405b: DesignPoint, production: dict[str, Any]
) -> None:
    changes = {
        "virtual_stages_per_rank": 4,
        "pipeline_parallel_first_stage_less_layers": 0,
        "pipeline_parallel_last_stage_less_layers": 0,
    }
    with pytest.raises(
        Unsupported, match=r"virtual_stages_per_rank=4 with .*: 126 layers cannot be cut"
    ):
        export(llama_405b, {**production, **changes})


def test_replication_beside_other_dimensions_needs_shards(
    llama_8b: DesignPoint, small: dict[str, Any]
) -> None:
    changes = {"data_parallel_shard_degree": 1, "data_parallel_replicate_degree": 8}
    with pytest.raises(Unsupported, match="data_parallel_replicate_degree=8"):
        export(llama_8b, {**small, **changes})


def test_a_node_that_would_be_torn_apart(llama_8b: DesignPoint, small: dict[str, Any]) -> None:
    with pytest.raises(Unsupported, match="dimension_order='pp-tp-cp-shard-replicate'"):
        export(llama_8b, {**small, "dimension_order": "pp-tp-cp-shard-replicate"})


def test_what_one_family_lacks(deepseek_v3: DesignPoint) -> None:
    config = {
        "data_parallel_shard_degree": 1024,
        "context_parallel_degree": 2,
        "gradient_reduction": "per_microbatch",
    }
    with pytest.raises(Unsupported, match="context_parallel_degree=2: deepseek_v3 uses flex"):
        export(deepseek_v3, config)


def test_experts(deepseek_v3: DesignPoint) -> None:
    config = {
        "pipeline_parallel_degree": 16,
        "pipeline_parallel_schedule": "DualPipeV",
        "virtual_stages_per_rank": 2,
        "pipeline_parallel_first_stage_less_layers": 1,
        "pipeline_parallel_last_stage_less_layers": 2,
        "data_parallel_shard_degree": 64,
        "data_parallel_replicate_degree": 2,
        "expert_parallel_degree": 64,
        "dimension_order": "tp-cp-shard-pp-replicate",
    }
    written = job(deepseek_v3, config)["parallelism"]
    assert written["expert_parallel_degree"] == 64
    assert written["expert_tensor_parallel_degree"] == 1
    assert written["pipeline_parallel_layers_per_stage"] == 2
    with pytest.raises(Unsupported, match="takes no activation checkpointing"):
        export(deepseek_v3, {**config, "activation_checkpoint_mode": "selective"})


def test_toml_values() -> None:
    options = {"a.n": 1, "a.x": 1e-5, "b.c.s": 'say "é"', "a.on": True, "b.l": [["x"], []]}
    text = to_toml(options)
    assert text.startswith("[a]\nn = 1\nx = 1e-05\non = true\n\n[b.c]")
    assert tomllib.loads(text)["b"]["c"]["s"] == 'say "é"'
