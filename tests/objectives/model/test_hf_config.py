from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune import InvalidInput, UnknownName
from objectives.model import MLA, MoE, load_model, parse_hf_config, read_hf_config
from objectives.model.families import FAMILIES, MODEL_TYPES
from objectives.model.hf_config import model_presets


def paths(error: InvalidInput) -> list[str]:
    return [problem.path for problem in error.problems]


def test_the_presets() -> None:
    assert model_presets() == [
        "deepseek-v3",
        "gpt3-175b",
        "llama3-70b",
        "llama3-8b",
        "llama3.1-405b",
        "mixtral-8x22b",
        "nemotron-4-340b",
        "qwen3-235b-a22b",
    ]


def test_llama_405b() -> None:
    model = load_model("llama3.1-405b")
    assert model.name == "Llama-3.1-405B"
    assert (model.hidden_size, model.num_layers, model.num_heads) == (16384, 126, 128)
    assert (model.num_kv_heads, model.head_dim, model.intermediate_size) == (8, 128, 53248)
    assert (model.vocab_size, model.max_sequence_length) == (128256, 131072)
    assert model.gated_mlp
    assert not model.tie_embeddings
    assert model.moe is None
    assert model.mla is None
    assert (model.num_dense_layers, model.num_moe_layers) == (126, 0)


def test_deepseek_v3() -> None:
    model = load_model("deepseek-v3")
    assert model.moe == MoE(
        num_experts=256,
        experts_per_token=8,
        expert_intermediate_size=2048,
        num_shared_experts=1,
        shared_expert_intermediate_size=2048,
        num_dense_layers=3,
        expert_groups=8,
        groups_per_token=4,
    )
    assert model.mla == MLA(
        q_lora_rank=1536,
        kv_lora_rank=512,
        qk_nope_head_dim=128,
        qk_rope_head_dim=64,
        v_head_dim=128,
    )
    assert model.head_dim == 192
    assert model.num_mtp_layers == 1
    assert (model.num_dense_layers, model.num_moe_layers) == (3, 58)


def test_qwen3_moe_has_heads_wider_than_the_hidden_size() -> None:
    model = load_model("qwen3-235b-a22b")
    assert model.num_heads * model.head_dim == 2 * model.hidden_size
    assert model.qk_norm
    assert model.sliding_window is None


def test_mlps_without_a_gate() -> None:
    assert not load_model("nemotron-4-340b").gated_mlp
    gpt = load_model("gpt3-175b")
    assert not gpt.gated_mlp
    assert gpt.intermediate_size == 4 * gpt.hidden_size
    assert gpt.tie_embeddings
    assert gpt.learned_positions == 2048


SMALL: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 1000,
    "max_position_embeddings": 512,
}

EXPERTS = {
    "MixtralForCausalLM": {"num_local_experts": 4, "num_experts_per_tok": 2},
    "Qwen2MoeForCausalLM": {
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
        "shared_expert_intermediate_size": 64,
    },
    "Qwen3MoeForCausalLM": {
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
    },
    "DeepseekV3ForCausalLM": {
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
        "kv_lora_rank": 16,
        "qk_nope_head_dim": 8,
        "qk_rope_head_dim": 4,
        "v_head_dim": 8,
    },
    "GPT2LMHeadModel": {"n_embd": 64, "n_layer": 4, "n_head": 8, "n_positions": 512},
}


def small(architecture: str, **changes: Any) -> dict[str, Any]:
    return {"architectures": [architecture], **SMALL, **EXPERTS.get(architecture, {}), **changes}


@pytest.mark.parametrize("architecture", FAMILIES)
def test_every_architecture_is_read(architecture: str) -> None:
    model = parse_hf_config(small(architecture))
    assert model.architecture == architecture
    assert (model.hidden_size, model.num_layers) == (64, 4)
    assert (model.moe is not None) == (architecture in EXPERTS and "GPT2" not in architecture)


@pytest.mark.parametrize(("model_type", "architecture"), MODEL_TYPES.items())
def test_the_model_type_stands_in_for_the_architecture(model_type: str, architecture: str) -> None:
    config = small(architecture)
    del config["architectures"]
    assert parse_hf_config({**config, "model_type": model_type}).architecture == architecture


@pytest.mark.parametrize(
    ("config", "got"),
    [
        ({"architectures": ["MambaForCausalLM"]}, "'MambaForCausalLM'"),
        ({"architectures": [], "model_type": "t5"}, "'t5'"),
        ({"architectures": []}, "got none"),
        ({"architectures": "LlamaForCausalLM"}, "got none"),
        ({}, "got none"),
        ({"model_type": 7}, "got 7"),
    ],
)
def test_an_unknown_architecture_is_named_with_the_known_ones(
    config: dict[str, Any], got: str
) -> None:
    with pytest.raises(InvalidInput, match="DeepseekV3ForCausalLM") as caught:
        parse_hf_config(config)
    assert got in str(caught.value)


def test_every_problem_is_reported_at_once() -> None:
    config = small("LlamaForCausalLM", hidden_size="64", vocab_size=True, num_attention_heads=0)
    config["num_hidden_layer"] = config.pop("num_hidden_layers")
    with pytest.raises(InvalidInput) as caught:
        parse_hf_config(config)
    assert sorted(paths(caught.value)) == [
        "hidden_size",
        "num_attention_heads",
        "num_hidden_layers",
        "vocab_size",
    ]
    assert 'did you mean "num_hidden_layer"?' in str(caught.value)


@pytest.mark.parametrize(
    ("architecture", "changes", "path"),
    [
        ("LlamaForCausalLM", {"num_key_value_heads": 3}, "num_key_value_heads"),
        ("LlamaForCausalLM", {"hidden_size": 65}, "hidden_size"),
        ("GPT2LMHeadModel", {"n_embd": 65}, "n_embd"),
        ("MixtralForCausalLM", {"num_experts_per_tok": 5}, "num_experts_per_tok"),
        ("Qwen3MoeForCausalLM", {"decoder_sparse_step": 2}, "decoder_sparse_step"),
        ("Qwen3MoeForCausalLM", {"mlp_only_layers": [2]}, "mlp_only_layers"),
        ("DeepseekV3ForCausalLM", {"moe_layer_freq": 2}, "moe_layer_freq"),
        ("DeepseekV3ForCausalLM", {"first_k_dense_replace": 5}, "first_k_dense_replace"),
        ("DeepseekV3ForCausalLM", {"n_group": 3}, "n_group"),
        ("DeepseekV3ForCausalLM", {"topk_group": 2}, "topk_group"),
        ("Qwen2ForCausalLM", {"tie_word_embeddings": 1}, "tie_word_embeddings"),
    ],
)
def test_sizes_that_do_not_fit(architecture: str, changes: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_hf_config(small(architecture, **changes))
    assert paths(caught.value) == [path]


def test_what_the_classes_leave_out_takes_their_defaults() -> None:
    config = small("LlamaForCausalLM")
    del config["num_key_value_heads"]
    model = parse_hf_config(config)
    assert model.num_kv_heads == model.num_heads
    assert not model.tie_embeddings
    assert parse_hf_config(small("GPT2LMHeadModel")).tie_embeddings
    assert parse_hf_config(small("Qwen3ForCausalLM")).head_dim == 128
    assert parse_hf_config(small("Qwen2ForCausalLM")).qkv_bias
    assert parse_hf_config(small("MistralForCausalLM")).sliding_window == 4096
    assert parse_hf_config(small("MistralForCausalLM", sliding_window=None)).sliding_window is None


def test_leading_dense_layers_of_qwen() -> None:
    model = parse_hf_config(small("Qwen3MoeForCausalLM", mlp_only_layers=[1, 0]))
    assert model.num_dense_layers == 2


def test_a_window_that_is_switched_off_is_none() -> None:
    config = small("Qwen2ForCausalLM", sliding_window=256, use_sliding_window=False)
    assert parse_hf_config(config).sliding_window is None
    assert parse_hf_config({**config, "use_sliding_window": True}).sliding_window == 256


def test_a_model_without_a_name_is_called_after_its_size() -> None:
    assert parse_hf_config(small("LlamaForCausalLM")).name == "LlamaForCausalLM-268K"
    config = {**read_hf_config("llama3-8b"), "_name_or_path": ""}
    assert parse_hf_config(config).name == "LlamaForCausalLM-8.03B"


def test_a_config_file_and_its_directory(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(read_hf_config("llama3-8b")))
    assert load_model(path) == load_model(tmp_path) == load_model(str(path))
    assert load_model(path) == load_model("llama3-8b")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r"'llama9'; known: deepseek-v3.*llama3\.1-405b"):
        load_model("llama9")
    with pytest.raises(InvalidInput, match=r"config\.json is missing"):
        load_model(tmp_path)
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    with pytest.raises(InvalidInput, match="must be JSON"):
        load_model(bad)
    bad.write_text("[1]")
    with pytest.raises(InvalidInput, match="must be a JSON object"):
        load_model(bad)
    bad.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match="UTF-8"):
        load_model(bad)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(st.sampled_from(sorted(FAMILIES)), st.data())
def test_junk_is_explained_never_raised(architecture: str, data: st.DataObject) -> None:
    config = small(architecture)
    key = data.draw(st.sampled_from(sorted(config)))
    with contextlib.suppress(InvalidInput):
        parse_hf_config({**config, key: data.draw(JSON)})
