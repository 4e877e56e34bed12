"""The architecture of a model as arguments of Megatron-LM core_v0.15.3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autotune import Unsupported
from objectives.exporters.options import OptionList, Options, option_list
from objectives.model import MLA, Model, MoE

_ACTIVATIONS: Mapping[str, Options] = {
    "gelu": {},
    "gelu_new": {},
    "gelu_pytorch_tanh": {},
    "relu2": {"--squared-relu": True},
}
"""Activations of an MLP without a gate, by their Hugging Face names."""


def version() -> OptionList:
    """The version of Megatron-LM that is written for."""
    return option_list("megatron-core_v0.15.3")


def model_arguments(model: Model, hf_config: Mapping[str, Any]) -> Options:
    """Every argument that describes the model.

    Args:
        model: The sizes.
        hf_config: The Hugging Face keys, for what does not enter the performance: activation,
            position embedding, normalisation, initialisation and routing.

    Raises:
        Unsupported: If Megatron-LM has no argument for something in the model.
    """
    if model.architecture == "GPTNeoXForCausalLM":
        raise _refusal(model, "it has no attention and MLP side by side, as GPT-NeoX has")
    arguments: dict[str, Any] = {
        "--num-layers": model.num_layers,
        "--hidden-size": model.hidden_size,
        "--ffn-hidden-size": model.intermediate_size,
        "--num-attention-heads": model.num_heads,
        "--vocab-size": model.vocab_size,
        "--max-position-embeddings": model.max_sequence_length,
        "--attention-dropout": 0.0,
        "--hidden-dropout": 0.0,
        **_biases(model),
        **_activation(model, hf_config),
        **_attention(model),
        **_normalisation(model, hf_config),
        **_positions(model, hf_config),
    }
    if not model.tie_embeddings:
        arguments["--untie-embeddings-and-output-weights"] = True
    if model.moe is not None:
        arguments |= _experts(model, model.moe, hf_config)
    if model.num_mtp_layers:
        arguments["--mtp-num-layers"] = model.num_mtp_layers
    return arguments


def _refusal(model: Model, what: str) -> Unsupported:
    return Unsupported(f"{version().title} cannot express the model {model.name}: {what}")


def _biases(model: Model) -> Options:
    if model.mlp_bias and model.attention_output_bias and model.qkv_bias:
        return {}
    if model.mlp_bias or model.attention_output_bias:
        raise _refusal(
            model,
            f"all its linear layers have a bias or none has, apart from queries, keys and values; "
            f"got mlp_bias {model.mlp_bias}, attention_output_bias {model.attention_output_bias}",
        )
    arguments = {"--disable-bias-linear": True}
    return {**arguments, "--add-qkv-bias": True} if model.qkv_bias else arguments


def _activation(model: Model, hf_config: Mapping[str, Any]) -> Options:
    name = hf_config.get("hidden_act", hf_config.get("activation_function", "silu"))
    if model.gated_mlp and name == "silu":
        return {"--swiglu": True}
    if model.gated_mlp or name not in _ACTIVATIONS:
        known = ", ".join(_ACTIVATIONS)
        raise _refusal(model, f"it has silu with a gate, and {known} without; got {name!r}")
    return _ACTIVATIONS[name]


def _attention(model: Model) -> Options:
    if model.mla is not None:
        return _latent_attention(model.mla)
    arguments: dict[str, Any] = {"--kv-channels": model.head_dim}
    if model.num_kv_heads != model.num_heads:
        arguments |= {"--group-query-attention": True, "--num-query-groups": model.num_kv_heads}
    if model.qk_norm:
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


def _normalisation(model: Model, hf_config: Mapping[str, Any]) -> Options:
    arguments: dict[str, Any] = {"--normalization": "LayerNorm" if model.norm_bias else "RMSNorm"}
    for key in ("rms_norm_eps", "norm_eps", "layer_norm_epsilon"):
        if key in hf_config:
            arguments["--norm-epsilon"] = float(hf_config[key])
    if model.architecture == "NemotronForCausalLM":
        arguments["--apply-layernorm-1p"] = True
    if "initializer_range" in hf_config:
        arguments["--init-method-std"] = float(hf_config["initializer_range"])
    return arguments


def _positions(model: Model, hf_config: Mapping[str, Any]) -> Options:
    if model.learned_positions:
        return {"--position-embedding-type": "learned_absolute"}
    arguments: dict[str, Any] = {"--position-embedding-type": "rope"}
    if "rope_theta" in hf_config:
        arguments["--rotary-base"] = int(hf_config["rope_theta"])
    if "partial_rotary_factor" in hf_config:
        arguments["--rotary-percent"] = float(hf_config["partial_rotary_factor"])
    scaling = hf_config.get("rope_scaling") or {}
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    match kind:
        case "default":
            return arguments
        case "llama3":
            scaled = {"--use-rope-scaling": True, "--rope-scaling-factor": float(scaling["factor"])}
            return {**arguments, **scaled}
        case "yarn" if model.mla is not None:
            return {
                **arguments,
                "--rope-type": "yarn",
                "--rotary-scaling-factor": float(scaling["factor"]),
                "--mscale": float(scaling.get("mscale", 1.0)),
                "--mscale-all-dim": float(scaling.get("mscale_all_dim", 0.0)),
            }
    raise _refusal(model, f"it scales rotary positions as llama3, or MLA as yarn; got {kind!r}")


def _experts(model: Model, moe: MoE, hf_config: Mapping[str, Any]) -> Options:
    if moe.shared_expert_gate:
        raise _refusal(model, "it has no gate on shared experts")
    arguments: dict[str, Any] = {
        "--num-experts": moe.num_experts,
        "--moe-router-topk": moe.experts_per_token,
        "--moe-ffn-hidden-size": moe.expert_intermediate_size,
        "--moe-grouped-gemm": True,
        "--moe-permute-fusion": True,
        "--moe-token-dispatcher-type": "alltoall",
    }
    if moe.num_dense_layers:
        pattern = f"([0]*{moe.num_dense_layers}+[1]*{model.num_moe_layers})"
        arguments["--moe-layer-freq"] = pattern
    if moe.num_shared_experts:
        width = moe.num_shared_experts * moe.shared_expert_intermediate_size
        arguments["--moe-shared-expert-intermediate-size"] = width
    if moe.expert_groups > 1:
        arguments["--moe-router-num-groups"] = moe.expert_groups
        arguments["--moe-router-group-topk"] = moe.groups_per_token
    return {**arguments, **_router(model, hf_config)}


def _router(model: Model, hf_config: Mapping[str, Any]) -> Options:
    """Routing, with what the Hugging Face classes take where a config leaves it out."""
    deepseek = model.architecture == "DeepseekV3ForCausalLM"
    score = hf_config.get("scoring_func", "sigmoid" if deepseek else "softmax")
    arguments: dict[str, Any] = {
        "--moe-router-score-function": score,
        "--moe-router-dtype": "fp32",
    }
    if deepseek:
        factor = float(hf_config.get("routed_scaling_factor", 2.5))
        arguments["--moe-router-topk-scaling-factor"] = factor
        arguments["--moe-router-enable-expert-bias"] = True
        arguments["--moe-router-load-balancing-type"] = ["none"]
    if "router_aux_loss_coef" in hf_config:
        arguments["--moe-aux-loss-coeff"] = [float(hf_config["router_aux_loss_coef"])]
    renormalised = hf_config.get("norm_topk_prob", not model.architecture.startswith("Qwen"))
    if score == "softmax" and not renormalised:
        # The softmax is over all experts, before the choice.
        arguments["--moe-router-pre-softmax"] = True
    return arguments
