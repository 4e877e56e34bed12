"""Which of TorchTitan v0.2.2's own model definitions a model is.

A TOML job names a model and a flavor; the sizes are in TorchTitan's code, so that only models
it defines can be expressed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from autotune import Unsupported
from objectives.exporters.options import OptionList, option_list
from objectives.model import Model

_ARCHITECTURES = {
    "LlamaForCausalLM": "llama3",
    "Qwen3ForCausalLM": "qwen3",
    "Qwen3MoeForCausalLM": "qwen3",
    "DeepseekV3ForCausalLM": "deepseek_v3",
}

_PLAIN: Mapping[str, Any] = {
    "num_experts": None,
    "kv_lora_rank": None,
    "tie_embeddings": False,
    "qkv_bias": False,
    "attention_output_bias": False,
    "mlp_bias": False,
}
"""What a flavor has where its entry says nothing else."""


def version() -> OptionList:
    """The version of TorchTitan that is written for."""
    return option_list("torchtitan-v0.2.2")


def flavor(model: Model) -> Mapping[str, Any]:
    """TorchTitan's own definition of the model, found by its sizes.

    Raises:
        Unsupported: If that version defines no model of these sizes.
    """
    if model.num_mtp_layers:
        raise Unsupported(
            f"{version().title} cannot express the model {model.name}: it trains no multi-token "
            f"prediction, and num_nextn_predict_layers is {model.num_mtp_layers}; expressible: 0"
        )
    sizes = _sizes(model)
    family = _ARCHITECTURES.get(model.architecture)
    models: list[Mapping[str, Any]] = version().facts["models"]
    related = [known for known in models if known["name"] == family]
    for known in related:
        wanted = {**_PLAIN, **known["sizes"]}
        if all(sizes.get(name) == value for name, value in wanted.items()):
            return known
    names = ", ".join(known["flavor"] for known in related) or "none"
    raise Unsupported(
        f"{version().title} cannot express the model {model.name}: it has no flavor of these "
        f"sizes (flavors of {model.architecture}: {names}); register one there"
    )


def _sizes(model: Model) -> dict[str, Any]:
    sizes = asdict(model)
    experts, latent = sizes.pop("moe") or {}, sizes.pop("mla") or {}
    if latent:
        latent["q_lora_rank"] = latent["q_lora_rank"] or 0
    return {**sizes, **experts, **latent}
