"""The architectures that are known: which keys their configs have, and what they mean.

Defaults are those of the Hugging Face classes, because a config leaves out what equals them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from objectives.model.model import MLA, MoE
from objectives.reading import REQUIRED, Converter, Field, each, flag, optional, whole

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """How the config of an architecture is read.

    Attributes:
        fields: Its keys, named by the sizes of `Model`, `MoE` and `MLA`.
        sizes: Turns what was read into the arguments of `Model`.
    """

    fields: Mapping[str, Field]
    sizes: Callable[[Values], dict[str, Any]]

    def key(self, size: str) -> str:
        """The config's own key for a size."""
        return next((key for key, field in self.fields.items() if field.name == size), size)


def _size(name: str, *, default: Any = REQUIRED, minimum: int = 1, example: str = "") -> Field:
    convert: Converter = whole(minimum=minimum)
    if default is None:
        convert = optional(convert)
    return Field(convert=convert, default=default, name=name, example=example)


def _flag(name: str, default: bool) -> Field:
    return Field(convert=flag, default=default, name=name)


def _every_layer(value: Any) -> int:
    if value != 1:
        raise ValueError(
            f"must be 1: layers with and without experts in turn are not modelled, got {value!r}"
        )
    return 1


def _leading_layers(value: Any) -> int:
    layers = sorted(each(whole(minimum=0))(value or []))
    if layers != list(range(len(layers))):
        raise ValueError(f"must be leading layers (0, 1, …), others are not modelled, got {value}")
    return len(layers)


_COMMON = {
    "hidden_size": _size("hidden_size", example="4096"),
    "num_hidden_layers": _size("num_layers", example="32"),
    "num_attention_heads": _size("num_heads", example="32"),
    "intermediate_size": _size("intermediate_size", example="14336"),
    "vocab_size": _size("vocab_size", example="128256"),
    "max_position_embeddings": _size("max_sequence_length", example="8192"),
    "tie_word_embeddings": _flag("tie_embeddings", False),
    "head_dim": _size("head_dim", default=None),
}
_OPTIONAL_KV = {"num_key_value_heads": _size("num_kv_heads", default=None)}
_KV = {"num_key_value_heads": _size("num_kv_heads", example="8")}
_WINDOW = {"sliding_window": _size("sliding_window", default=None)}
_QWEN_WINDOW = {**_WINDOW, "use_sliding_window": _flag("use_sliding_window", False)}
_ATTENTION_BIAS = {"attention_bias": _flag("attention_bias", False)}
_MLP_BIAS = {"mlp_bias": _flag("mlp_bias", False)}


def _sizes(values: Values, **fixed: Any) -> dict[str, Any]:
    """What all families have in common, with what is fixed in one of them."""
    heads, hidden = values["num_heads"], values["hidden_size"]
    head_dim = values.get("head_dim") or hidden // heads
    bias = values.get("attention_bias", False)
    return {
        "hidden_size": hidden,
        "num_layers": values["num_layers"],
        "num_heads": heads,
        "num_kv_heads": values.get("num_kv_heads") or heads,
        "head_dim": head_dim,
        "intermediate_size": values["intermediate_size"],
        "vocab_size": values["vocab_size"],
        "tie_embeddings": values["tie_embeddings"],
        "max_sequence_length": values["max_sequence_length"],
        "gated_mlp": True,
        "moe": None,
        "mla": None,
        "qkv_bias": bias,
        "attention_output_bias": bias,
        "mlp_bias": values.get("mlp_bias", False),
        "sliding_window": values.get("sliding_window"),
        **fixed,
    }


def _qwen(values: Values, **fixed: Any) -> dict[str, Any]:
    window = values["sliding_window"] if values["use_sliding_window"] else None
    return _sizes(values, sliding_window=window, **fixed)


def _qwen2(values: Values, **fixed: Any) -> dict[str, Any]:
    return _qwen(values, qkv_bias=True, attention_output_bias=False, **fixed)


def _mixtral(values: Values) -> dict[str, Any]:
    moe = MoE(
        num_experts=values["num_experts"],
        experts_per_token=values["experts_per_token"],
        expert_intermediate_size=values["intermediate_size"],
    )
    return _sizes(values, moe=moe)


_MIXTRAL_EXPERTS = {
    "num_local_experts": _size("num_experts", example="8"),
    "num_experts_per_tok": _size("experts_per_token", example="2"),
}

_QWEN_EXPERTS = {
    "num_experts": _size("num_experts", example="128"),
    "num_experts_per_tok": _size("experts_per_token", example="8"),
    "moe_intermediate_size": _size("expert_intermediate_size", example="1536"),
    "decoder_sparse_step": Field(convert=_every_layer, default=1),
    "mlp_only_layers": Field(convert=_leading_layers, default=0, name="num_dense_layers"),
}


def _qwen_moe(values: Values, **shared: Any) -> MoE:
    return MoE(
        num_experts=values["num_experts"],
        experts_per_token=values["experts_per_token"],
        expert_intermediate_size=values["expert_intermediate_size"],
        num_dense_layers=values["num_dense_layers"],
        **shared,
    )


def _qwen2_moe(values: Values) -> dict[str, Any]:
    moe = _qwen_moe(
        values,
        num_shared_experts=1,
        shared_expert_intermediate_size=values["shared_expert_intermediate_size"],
        shared_expert_gate=True,
    )
    return _qwen2(values, moe=moe)


_DEEPSEEK = {
    **{key: field for key, field in _COMMON.items() if key != "head_dim"},
    **_OPTIONAL_KV,
    **_ATTENTION_BIAS,
    "n_routed_experts": _size("num_experts", example="256"),
    "num_experts_per_tok": _size("experts_per_token", example="8"),
    "moe_intermediate_size": _size("expert_intermediate_size", example="2048"),
    "n_shared_experts": Field(
        convert=optional(whole(minimum=0)), default=0, name="num_shared_experts"
    ),
    "first_k_dense_replace": _size("num_dense_layers", default=0, minimum=0),
    "moe_layer_freq": Field(convert=_every_layer, default=1),
    "n_group": _size("expert_groups", default=None),
    "topk_group": _size("groups_per_token", default=None),
    "num_nextn_predict_layers": _size("num_mtp_layers", default=0, minimum=0),
    "q_lora_rank": _size("q_lora_rank", default=None),
    "kv_lora_rank": _size("kv_lora_rank", example="512"),
    "qk_nope_head_dim": _size("qk_nope_head_dim", example="128"),
    "qk_rope_head_dim": _size("qk_rope_head_dim", example="64"),
    "v_head_dim": _size("v_head_dim", example="128"),
}


def _deepseek(values: Values) -> dict[str, Any]:
    mla = MLA(
        q_lora_rank=values["q_lora_rank"],
        kv_lora_rank=values["kv_lora_rank"],
        qk_nope_head_dim=values["qk_nope_head_dim"],
        qk_rope_head_dim=values["qk_rope_head_dim"],
        v_head_dim=values["v_head_dim"],
    )
    shared = values["num_shared_experts"] or 0
    moe = MoE(
        num_experts=values["num_experts"],
        experts_per_token=values["experts_per_token"],
        expert_intermediate_size=values["expert_intermediate_size"],
        num_shared_experts=shared,
        shared_expert_intermediate_size=values["expert_intermediate_size"] if shared else 0,
        num_dense_layers=values["num_dense_layers"],
        expert_groups=values["expert_groups"] or 1,
        groups_per_token=values["groups_per_token"] or 1,
    )
    head_dim = mla.qk_nope_head_dim + mla.qk_rope_head_dim
    return _sizes(
        {**values, "head_dim": head_dim},
        moe=moe,
        mla=mla,
        num_mtp_layers=values["num_mtp_layers"],
    )


_GPT2 = {
    "n_embd": _size("hidden_size", example="12288"),
    "n_layer": _size("num_layers", example="96"),
    "n_head": _size("num_heads", example="96"),
    "n_inner": _size("intermediate_size", default=None),
    "vocab_size": _size("vocab_size", example="50257"),
    "n_positions": _size("max_sequence_length", example="2048"),
    "tie_word_embeddings": _flag("tie_embeddings", True),
}


def _gpt2(values: Values) -> dict[str, Any]:
    inner = values["intermediate_size"] or 4 * values["hidden_size"]
    return _sizes(
        {**values, "intermediate_size": inner, "attention_bias": True, "mlp_bias": True},
        gated_mlp=False,
        norm_bias=True,
        learned_positions=values["max_sequence_length"],
    )


def _gpt_neox(values: Values) -> dict[str, Any]:
    return _sizes({**values, "mlp_bias": True}, gated_mlp=False, norm_bias=True)


_MISTRAL_WINDOW = {"sliding_window": Field(convert=_WINDOW["sliding_window"].convert, default=4096)}
_QWEN3_HEAD = {"head_dim": Field(convert=_COMMON["head_dim"].convert, default=128)}
_SHARED_EXPERT = {"shared_expert_intermediate_size": _size("shared_expert_intermediate_size")}
_BIASED = {"attention_bias": _flag("attention_bias", True)}

FAMILIES: Mapping[str, Family] = {
    "LlamaForCausalLM": Family(
        fields={**_COMMON, **_OPTIONAL_KV, **_ATTENTION_BIAS, **_MLP_BIAS}, sizes=_sizes
    ),
    "MistralForCausalLM": Family(fields={**_COMMON, **_KV, **_MISTRAL_WINDOW}, sizes=_sizes),
    "MixtralForCausalLM": Family(
        fields={**_COMMON, **_KV, **_WINDOW, **_MIXTRAL_EXPERTS}, sizes=_mixtral
    ),
    "Qwen2ForCausalLM": Family(fields={**_COMMON, **_KV, **_QWEN_WINDOW}, sizes=_qwen2),
    "Qwen2MoeForCausalLM": Family(
        fields={**_COMMON, **_KV, **_QWEN_WINDOW, **_QWEN_EXPERTS, **_SHARED_EXPERT},
        sizes=_qwen2_moe,
    ),
    "Qwen3ForCausalLM": Family(
        fields={**_COMMON, **_QWEN3_HEAD, **_KV, **_QWEN_WINDOW, **_ATTENTION_BIAS},
        sizes=lambda values: _qwen(values, qk_norm=True),
    ),
    "Qwen3MoeForCausalLM": Family(
        fields={**_COMMON, **_KV, **_QWEN_WINDOW, **_ATTENTION_BIAS, **_QWEN_EXPERTS},
        sizes=lambda values: _qwen(values, qk_norm=True, moe=_qwen_moe(values)),
    ),
    "DeepseekV3ForCausalLM": Family(fields=_DEEPSEEK, sizes=_deepseek),
    "GPT2LMHeadModel": Family(fields=_GPT2, sizes=_gpt2),
    "GPTNeoXForCausalLM": Family(fields={**_COMMON, **_BIASED}, sizes=_gpt_neox),
    "NemotronForCausalLM": Family(
        fields={**_COMMON, **_OPTIONAL_KV, **_ATTENTION_BIAS, **_MLP_BIAS},
        sizes=lambda values: _sizes(values, gated_mlp=False, norm_bias=True),
    ),
}
"""Known architectures by Hugging Face's class name."""

MODEL_TYPES: Mapping[str, str] = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "mixtral": "MixtralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen2_moe": "Qwen2MoeForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
    "deepseek_v3": "DeepseekV3ForCausalLM",
    "gpt2": "GPT2LMHeadModel",
    "gpt_neox": "GPTNeoXForCausalLM",
    "nemotron": "NemotronForCausalLM",
}
"""The architecture of each ``model_type``, for configs without ``architectures``."""
