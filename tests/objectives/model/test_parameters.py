"""Counts against what the models' authors publish."""

from __future__ import annotations

import pytest

from objectives.model import load_model, parse_hf_config
from objectives.model.parameters import (
    active_parameters,
    attention_parameters,
    dense_layer_parameters,
    dense_mlp_parameters,
    embedding_parameters,
    expert_parameters,
    head_parameters,
    moe_layer_parameters,
    mtp_parameters,
    router_parameters,
    shared_expert_parameters,
    total_parameters,
)


@pytest.mark.parametrize(
    ("preset", "total"),
    [
        # Exact counts of the published weights.
        ("llama3-8b", 8_030_261_248),
        ("llama3-70b", 70_553_706_496),
        ("llama3.1-405b", 405_853_388_800),
        ("mixtral-8x22b", 140_620_634_112),
        ("qwen3-235b-a22b", 235_093_634_560),
    ],
)
def test_exact_totals(preset: str, total: int) -> None:
    assert total_parameters(load_model(preset)) == total


@pytest.mark.parametrize(
    ("preset", "billions"),
    [
        ("gpt3-175b", 174.6),  # arXiv 2005.14165, table D.1: 174,600 M
        ("nemotron-4-340b", 341.0),  # 9.4 B embedding + 331.6 B others, arXiv 2406.11704, table 1
        ("deepseek-v3", 671.0),  # arXiv 2412.19437
    ],
)
def test_published_totals(preset: str, billions: float) -> None:
    assert total_parameters(load_model(preset)) / 1e9 == pytest.approx(billions, abs=0.06)


@pytest.mark.parametrize(
    ("preset", "billions"),
    [
        ("deepseek-v3", 36.6),  # 37 B; 36.6 B with the head in the weights' own README
        ("mixtral-8x22b", 39.0),
        ("qwen3-235b-a22b", 21.6),  # 22 B
    ],
)
def test_published_active_parameters(preset: str, billions: float) -> None:
    assert active_parameters(load_model(preset)) / 1e9 == pytest.approx(billions, abs=0.06)


def test_mtp_module_of_deepseek() -> None:
    assert mtp_parameters(load_model("deepseek-v3")) / 1e9 == pytest.approx(11.5, abs=0.15)
    assert mtp_parameters(load_model("llama3-8b")) == 0


def test_parts_of_a_dense_layer() -> None:
    model = load_model("llama3-8b")
    assert attention_parameters(model) == 4096 * 4096 * 2 + 2 * 4096 * 1024
    assert dense_mlp_parameters(model) == 3 * 4096 * 14336
    assert embedding_parameters(model) == head_parameters(model) == 128256 * 4096
    assert expert_parameters(model) == router_parameters(model) == 0
    assert shared_expert_parameters(model) == moe_layer_parameters(model) == 0


def test_parts_of_a_layer_with_experts() -> None:
    model = load_model("deepseek-v3")
    assert expert_parameters(model) == shared_expert_parameters(model) == 3 * 7168 * 2048
    assert router_parameters(model) == 256 * 7168
    assert moe_layer_parameters(model) > 256 * expert_parameters(model)


def test_gpt2_small_is_exact() -> None:
    """124,439,808: every bias and the learned positions count."""
    model = parse_hf_config(
        {
            "model_type": "gpt2",
            "n_embd": 768,
            "n_layer": 12,
            "n_head": 12,
            "n_positions": 1024,
            "vocab_size": 50257,
        }
    )
    assert total_parameters(model) == 124_439_808


def test_biases_of_qwen2() -> None:
    """Qwen2-7B has 7,615,616,512 parameters, 4,608 of each layer's being biases."""
    model = parse_hf_config(
        {
            "model_type": "qwen2",
            "hidden_size": 3584,
            "num_hidden_layers": 28,
            "num_attention_heads": 28,
            "num_key_value_heads": 4,
            "intermediate_size": 18944,
            "vocab_size": 152064,
            "max_position_embeddings": 131072,
        }
    )
    assert total_parameters(model) == 7_615_616_512


def test_gpt_neox_20b_is_exact() -> None:
    """20,554,567,680 with its padded vocabulary of 50,432."""
    model = parse_hf_config(
        {
            "model_type": "gpt_neox",
            "hidden_size": 6144,
            "num_hidden_layers": 44,
            "num_attention_heads": 64,
            "intermediate_size": 24576,
            "vocab_size": 50432,
            "max_position_embeddings": 2048,
        }
    )
    assert total_parameters(model) == 20_554_567_680


@pytest.mark.parametrize("preset", ["llama3-8b", "gpt3-175b", "deepseek-v3"])
def test_the_parts_add_up(preset: str) -> None:
    model = load_model(preset)
    layers = model.num_dense_layers * dense_layer_parameters(model)
    layers += model.num_moe_layers * moe_layer_parameters(model)
    rest = total_parameters(model) - layers - embedding_parameters(model)
    rest -= 0 if model.tie_embeddings else head_parameters(model)
    assert rest in (model.hidden_size, 2 * model.hidden_size)  # the last normalisation
