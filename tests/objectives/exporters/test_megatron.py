import argparse
import doctest
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import objectives.exporters.megatron
from autotune import DesignPoint, Unsupported
from objectives.exporters.megatron import export, layout, version

TYPES = {"int": int, "float": float, "str": str}


def parser() -> argparse.ArgumentParser:
    """Megatron's own parser, as far as the option list tells."""
    made = argparse.ArgumentParser(allow_abbrev=False)
    for name, kind in version().options.items():
        if kind == "flag":
            made.add_argument(name, action="store_true")
        elif not isinstance(kind, str):
            made.add_argument(name, type=type(kind[0]), choices=kind)
        elif kind.startswith("list["):
            made.add_argument(name, type=TYPES[kind[5:-1]], nargs="+")
        else:
            made.add_argument(name, type=TYPES.get(kind, str))
    return made


def arguments(tmp_path: Path, texts: Any) -> argparse.Namespace:
    """What Megatron reads when a shell expands the array."""
    (tmp_path / "megatron_args.sh").write_text(texts["megatron_args.sh"])
    script = '. ./megatron_args.sh && printf "%s\\n" "${MEGATRON_ARGS[@]}"'
    shell = subprocess.run(
        ["bash", "-euc", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    return parser().parse_args(shell.stdout.splitlines())


def stages(text: str) -> list[str]:
    """The stages of a layout, unrolled."""
    text = re.sub(r"\(([^)]+)\)\*(\d+)", lambda found: found[1] * int(found[2]), text)
    return text.split("|")


def test_the_production_layout(
    tmp_path: Path, llama_405b: DesignPoint, production: dict[str, Any]
) -> None:
    texts = export(llama_405b, production)
    read = arguments(tmp_path, texts)
    assert list(texts) == ["megatron_args.sh"], "tp-cp-pp-dp is an order that Megatron has"
    assert (read.num_layers, read.hidden_size, read.ffn_hidden_size) == (126, 16384, 53248)
    assert (read.num_attention_heads, read.num_query_groups) == (128, 8)
    assert read.swiglu
    assert read.group_query_attention
    assert read.untie_embeddings_and_output_weights
    assert read.tensor_model_parallel_size == 8
    assert read.pipeline_model_parallel_size == 16
    assert read.sequence_parallel
    assert read.use_tp_pp_dp_mapping
    assert read.use_distributed_optimizer
    assert read.overlap_grad_reduce
    assert read.overlap_param_gather
    assert read.accumulate_allreduce_grads_in_fp32
    assert (read.micro_batch_size, read.global_batch_size) == (1, 2048)
    assert read.seq_length == 8192
    assert not read.no_overlap_p2p_communication
    assert stages(read.pipeline_model_parallel_layout) == ["E", *["t"] * 126, "L"]


def test_shards_inside_and_replicas_across(
    tmp_path: Path, llama_8b: DesignPoint, small: dict[str, Any]
) -> None:
    changes = {"async_pipeline_p2p": False, "optimizer_offload_fraction": 0.25}
    read = arguments(tmp_path, export(llama_8b, {**small, **changes}))
    assert read.num_distributed_optimizer_instances == 2
    assert read.optimizer_offload_fraction == 0.25
    assert read.use_precision_aware_optimizer
    assert stages(read.pipeline_model_parallel_layout) == ["E" + "t" * 16, "t" * 16 + "L"]


def test_a_pipeline_across_the_buildings_uses_the_other_order(
    tmp_path: Path, llama_405b: DesignPoint, production: dict[str, Any]
) -> None:
    texts = export(llama_405b, {**production, "dimension_order": "tp-cp-shard-replicate-pp"})
    assert list(texts) == ["megatron_args.sh"]
    assert not arguments(tmp_path, texts).use_tp_pp_dp_mapping


def test_an_order_that_megatron_lacks_is_had_by_node_ranks(
    llama_405b: DesignPoint, production: dict[str, Any]
) -> None:
    texts = export(llama_405b, {**production, "dimension_order": "tp-cp-shard-pp-replicate"})
    assert list(texts) == ["megatron_args.sh"], "with one replica the orders are the same"
    changes = {
        "data_parallel_shard_degree": 64,
        "data_parallel_replicate_degree": 2,
        "dimension_order": "tp-cp-shard-pp-replicate",
    }
    texts = export(llama_405b, {**production, **changes})
    assert "megatron_node_ranks.csv" in texts


@pytest.mark.parametrize(
    ("knob", "value"),
    [
        ("pipeline_parallel_schedule", "ZBVZeroBubble"),
        ("virtual_stages_per_rank", 2),
        ("fsdp_reshard_after_forward", "always"),
        ("fsdp_prefetch_depth", 3),
        ("gradient_reduction", "per_microbatch"),
        ("async_pipeline_p2p", True),
        ("p2p_scatter_gather", False),
        ("activation_offload_fraction", 0.25),
        ("gradient_compression", "int4"),
        ("local_steps", 32),
    ],
)
def test_what_it_cannot_express_is_refused_by_name(
    llama_8b: DesignPoint, small: dict[str, Any], knob: str, value: Any
) -> None:
    with pytest.raises(Unsupported) as caught:
        export(llama_8b, {**small, "async_pipeline_p2p": False, knob: value})
    assert f"Megatron-LM core_v0.15.3 cannot express {knob}={value!r}" in str(caught.value)


def test_recomputation_and_fp8(
    tmp_path: Path, llama_8b: DesignPoint, small: dict[str, Any]
) -> None:
    changes = {
        "async_pipeline_p2p": False,
        "activation_checkpoint_mode": "full",
        "precision": "fp8",
        "gradient_dtype": "bf16",
    }
    read = arguments(tmp_path, export(llama_8b, {**small, **changes}))
    assert (read.recompute_granularity, read.recompute_method) == ("full", "uniform")
    assert (read.fp8_format, read.fp8_recipe) == ("hybrid", "tensorwise")
    assert read.grad_reduce_in_bf16


def test_selective_recomputation_is_of_what_is_cheap(
    tmp_path: Path, llama_8b: DesignPoint, small: dict[str, Any]
) -> None:
    changes = {"async_pipeline_p2p": False, "activation_checkpoint_mode": "selective"}
    read = arguments(tmp_path, export(llama_8b, {**small, **changes}))
    assert (read.recompute_granularity, read.recompute_modules) == ("selective", ["layernorm"])


def test_layout_is_read_back_as_written() -> None:
    layers = [0, 3, 3, 2, 2, 2, 1]
    expected = ["E", "ttt", "ttt", "tt", "tt", "tt", "tmL"]
    assert stages(layout(layers, num_mtp_layers=1)) == expected
    assert doctest.testmod(objectives.exporters.megatron).failed == 0
