"""The architecture of a model as arguments of Megatron-LM core_v0.15.3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from objectives.exporters.options import Options
from objectives.model import MLA, Model, MoE


def model_arguments(model: Model, hf_config: Mapping[str, Any]) -> Options:
    """Every argument that describes the model.

    Args:
        model: The sizes.
        hf_config: The Hugging Face keys, for what does not enter the performance: position
            embedding, normalisation, initialisation and routing.
    """
    arguments: dict[str, Any] = {
        "--num-layers": model.num_layers,
        "--hidden-size": model.hidden_size,
        "--ffn-hidden-size": model.intermediate_size,
        "--num-attention-heads": model.num_heads,
        "--vocab-size": model.vocab_size,
        "--max-position-embeddings": model.max_sequence_length,
        "--disable-bias-linear": True,
        "--attention-dropout": 0.0,
        "--hidden-dropout": 0.0,
    }
    if model.gated_mlp:
        arguments["--swiglu"] = True
    if not model.tie_embeddings:
        arguments["--untie-embeddings-and-output-weights"] = True
    arguments |= _attention(model)
    arguments |= _normalisation(hf_config)
    arguments |= _positions(hf_config)
    if model.moe is not None:
        arguments |= _experts(model.moe, model.num_layers, hf_config)
    if model.num_mtp_layers:
        arguments["--mtp-num-layers"] = model.num_mtp_layers
    return arguments


def _attention(model: Model) -> Options:
    if model.mla is not None:
        return _latent_attention(model.mla)
    arguments: dict[str, Any] = {"--kv-channels": model.head_dim}
    if model.num_kv_heads != model.num_heads:
        arguments |= {"--group-query-attention": True, "--num-query-groups": model.num_kv_heads}
    if model.architecture.startswith("Qwen2"):
        arguments["--add-qkv-bias"] = True
    if model.architecture.startswith("Qwen3"):
        arguments["--qk-layernorm"] = True
    return arguments


def _latent_attention(mla: MLA) -> Options:
    arguments: dict[str, Any] = {
        "--multi-latent-attention": True,
        "--kv-lora-rank": mla.kv_lora_rank,
        "--qk-head-dim": mla.qk_nope_head_dim,
        "--qk-pos-emb-head-dim": mla.qk_rope_head_dim,
        "--v-head-dim": mla.v_head_dim,
        "--qk-layernorm": True,
    }
    if mla.q_lora_rank:
        arguments["--q-lora-rank"] = mla.q_lora_rank
    return arguments


def _normalisation(hf_config: Mapping[str, Any]) -> Options:
    arguments: dict[str, Any] = {}
    if "rms_norm_eps" in hf_config:
        arguments["--normalization"] = "RMSNorm"
        arguments["--norm-epsilon"] = float(hf_config["rms_norm_eps"])
    if "initializer_range" in hf_config:
        arguments["--init-method-std"] = float(hf_config["initializer_range"])
    return arguments


def _positions(hf_config: Mapping[str, Any]) -> Options:
    arguments: dict[str, Any] = {"--position-embedding-type": "rope"}
    if "rope_theta" in hf_config:
        arguments["--rotary-base"] = int(hf_config["rope_theta"])
    scaling = hf_config.get("rope_scaling") or {}
    match scaling.get("rope_type", scaling.get("type")):
        case "llama3":
            arguments["--use-rope-scaling"] = True
            arguments["--rope-scaling-factor"] = float(scaling["factor"])
        case "yarn":
            arguments["--rope-type"] = "yarn"
            arguments["--rotary-scaling-factor"] = float(scaling["factor"])
            arguments["--mscale"] = float(scaling.get("mscale", 1.0))
            arguments["--mscale-all-dim"] = float(scaling.get("mscale_all_dim", 0.0))
    return arguments


def _experts(moe: MoE, num_layers: int, hf_config: Mapping[str, Any]) -> Options:
    arguments: dict[str, Any] = {
        "--num-experts": moe.num_experts,
        "--moe-router-topk": moe.experts_per_token,
        "--moe-ffn-hidden-size": moe.expert_intermediate_size,
        "--moe-grouped-gemm": True,
        "--moe-permute-fusion": True,
        "--moe-token-dispatcher-type": "alltoall",
    }
    if moe.num_dense_layers:
        sparse = num_layers - moe.num_dense_layers
        arguments["--moe-layer-freq"] = f"([0]*{moe.num_dense_layers}+[1]*{sparse})"
    if moe.num_shared_experts:
        width = moe.num_shared_experts * moe.shared_expert_intermediate_size
        arguments["--moe-shared-expert-intermediate-size"] = width
    if moe.expert_groups > 1:
        arguments["--moe-router-num-groups"] = moe.expert_groups
        arguments["--moe-router-group-topk"] = moe.groups_per_token
    return {**arguments, **_router(hf_config)}


def _router(hf_config: Mapping[str, Any]) -> Options:
    score = hf_config.get("scoring_func", "softmax")
    arguments: dict[str, Any] = {
        "--moe-router-score-function": score,
        "--moe-router-dtype": "fp32",
    }
    if "routed_scaling_factor" in hf_config:
        arguments["--moe-router-topk-scaling-factor"] = float(hf_config["routed_scaling_factor"])
    if hf_config.get("topk_method") == "noaux_tc":
        arguments["--moe-router-enable-expert-bias"] = True
        arguments["--moe-router-load-balancing-type"] = ["none"]
    # Without renormalisation the softmax is over all experts, before the choice.
    if score == "softmax" and not hf_config.get("norm_topk_prob", True):
        arguments["--moe-router-pre-softmax"] = True
    return arguments
