from dataclasses import replace
from typing import Any

import pytest

from autotune import Unsupported
from objectives.exporters.megatron_model import model_arguments, version
from objectives.model import parse_hf_config, read_hf_config

PRESETS = (
    "deepseek-v3",
    "gpt3-175b",
    "llama3-8b",
    "llama3.1-405b",
    "mixtral-8x22b",
    "nemotron-4-340b",
    "qwen3-235b-a22b",
)


def arguments(preset: str, **changes: Any) -> dict[str, Any]:
    hf_config = {**read_hf_config(preset), **changes}
    return dict(model_arguments(parse_hf_config(hf_config), hf_config))


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_has_only_arguments_that_megatron_takes(preset: str) -> None:
    version().check(arguments(preset))


def test_llama_3_1() -> None:
    read = arguments("llama3.1-405b")
    assert read["--rotary-base"] == 500000
    assert read["--use-rope-scaling"]
    assert read["--rope-scaling-factor"] == 8.0
    assert read["--normalization"] == "RMSNorm"
    assert read["--disable-bias-linear"]
    assert read["--swiglu"]


def test_deepseek_v3() -> None:
    read = arguments("deepseek-v3")
    expected = {
        "--multi-latent-attention": True,
        "--q-lora-rank": 1536,
        "--kv-lora-rank": 512,
        "--qk-head-dim": 128,
        "--qk-pos-emb-head-dim": 64,
        "--v-head-dim": 128,
        "--num-experts": 256,
        "--moe-router-topk": 8,
        "--moe-ffn-hidden-size": 2048,
        "--moe-shared-expert-intermediate-size": 2048,
        "--moe-layer-freq": "([0]*3+[1]*58)",
        "--moe-router-num-groups": 8,
        "--moe-router-group-topk": 4,
        "--moe-router-score-function": "sigmoid",
        "--moe-router-topk-scaling-factor": 2.5,
        "--moe-router-enable-expert-bias": True,
        "--mtp-num-layers": 1,
        "--rope-type": "yarn",
        "--rotary-scaling-factor": 40.0,
    }
    assert {name: read.get(name) for name in expected} == expected
    assert "--num-query-groups" not in read


def test_gpt_and_nemotron_have_their_own_activations_and_norms() -> None:
    gpt = arguments("gpt3-175b")
    assert "--swiglu" not in gpt
    assert "--disable-bias-linear" not in gpt
    assert "--untie-embeddings-and-output-weights" not in gpt
    assert gpt["--position-embedding-type"] == "learned_absolute"
    assert gpt["--normalization"] == "LayerNorm"
    nemotron = arguments("nemotron-4-340b")
    assert nemotron["--squared-relu"]
    assert nemotron["--apply-layernorm-1p"]
    assert nemotron["--rotary-percent"] == 0.5


def test_qwen_normalises_queries_and_keys() -> None:
    read = arguments("qwen3-235b-a22b")
    assert read["--qk-layernorm"]
    assert read["--kv-channels"] == 128
    assert "--moe-router-pre-softmax" not in read
    assert arguments("qwen3-235b-a22b", norm_topk_prob=False)["--moe-router-pre-softmax"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hidden_act": "relu"}, "silu with a gate"),
        ({"mlp_bias": True}, "mlp_bias True"),
        ({"rope_scaling": {"rope_type": "longrope", "factor": 4.0}}, "got 'longrope'"),
    ],
)
def test_what_megatron_lacks_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(Unsupported, match=words):
        arguments("llama3-8b", **changes)


def test_a_gate_on_shared_experts_is_refused() -> None:
    hf_config = read_hf_config("deepseek-v3")
    model = parse_hf_config(hf_config)
    assert model.moe is not None
    gated = replace(model, moe=replace(model.moe, shared_expert_gate=True))
    with pytest.raises(Unsupported, match="gate on shared experts"):
        model_arguments(gated, hf_config)
