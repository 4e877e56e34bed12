"""How many parameters each part of a model has.

All counts are whole numbers over the whole model, before any sharding. Those of a layer are for
one layer.
"""

from __future__ import annotations

from objectives.model.model import MLA, Model


def attention_parameters(model: Model) -> int:
    """Weights, biases and inner normalisations of one layer's attention."""
    if model.mla is not None:
        return _latent_attention_parameters(model, model.mla)
    query_width = model.num_heads * model.head_dim
    key_value_width = 2 * model.num_kv_heads * model.head_dim
    weights = model.hidden_size * (query_width + key_value_width) + query_width * model.hidden_size
    biases = model.qkv_bias * (query_width + key_value_width)
    biases += model.attention_output_bias * model.hidden_size
    return weights + biases + model.qk_norm * 2 * model.head_dim


def _latent_attention_parameters(model: Model, mla: MLA) -> int:
    hidden, heads = model.hidden_size, model.num_heads
    query_width = heads * (mla.qk_nope_head_dim + mla.qk_rope_head_dim)
    if mla.q_lora_rank is None:
        query = hidden * query_width
    else:  # down, normalisation, up
        query = mla.q_lora_rank * (hidden + 1 + query_width)
    down = hidden * (mla.kv_lora_rank + mla.qk_rope_head_dim) + mla.kv_lora_rank
    up = mla.kv_lora_rank * heads * (mla.qk_nope_head_dim + mla.v_head_dim)
    output = heads * mla.v_head_dim * hidden
    biases = model.attention_output_bias * hidden
    if model.qkv_bias:  # only the down-projections have one
        biases += (mla.q_lora_rank or 0) + mla.kv_lora_rank + mla.qk_rope_head_dim
    return query + down + up + output + biases


def dense_mlp_parameters(model: Model) -> int:
    """Weights and biases of the MLP of one layer without experts."""
    return mlp_parameters(model, model.intermediate_size)


def mlp_parameters(model: Model, intermediate_size: int) -> int:
    """Weights and biases of an MLP, or expert, of some inner width."""
    matrices = 3 if model.gated_mlp else 2
    weights = matrices * model.hidden_size * intermediate_size
    inner_biases = (matrices - 1) * intermediate_size
    return weights + model.mlp_bias * (inner_biases + model.hidden_size)


def expert_parameters(model: Model) -> int:
    """Weights of one routed expert; 0 in a dense model."""
    return 0 if model.moe is None else mlp_parameters(model, model.moe.expert_intermediate_size)


def shared_expert_parameters(model: Model) -> int:
    """Weights of all shared experts of one layer with experts; 0 in a dense model."""
    moe = model.moe
    if moe is None:
        return 0
    experts = moe.num_shared_experts * mlp_parameters(model, moe.shared_expert_intermediate_size)
    return experts + moe.shared_expert_gate * model.hidden_size


def router_parameters(model: Model) -> int:
    """Weights of the router of one layer with experts; 0 in a dense model."""
    return 0 if model.moe is None else model.hidden_size * model.moe.num_experts


def norm_parameters(model: Model) -> int:
    """Scales and biases of one normalisation of the residual stream."""
    return model.hidden_size * (2 if model.norm_bias else 1)


def dense_layer_parameters(model: Model) -> int:
    """One whole layer with a plain MLP: attention, MLP and two normalisations."""
    return attention_parameters(model) + dense_mlp_parameters(model) + 2 * norm_parameters(model)


def moe_layer_parameters(model: Model) -> int:
    """One whole layer with experts, all of them counted."""
    if model.moe is None:
        return 0
    return _moe_layer_parameters(model, experts=model.moe.num_experts)


def active_moe_layer_parameters(model: Model) -> int:
    """What one token uses of a layer with experts."""
    if model.moe is None:
        return 0
    return _moe_layer_parameters(model, experts=model.moe.experts_per_token)


def _moe_layer_parameters(model: Model, *, experts: int) -> int:
    return (
        attention_parameters(model)
        + experts * expert_parameters(model)
        + shared_expert_parameters(model)
        + router_parameters(model)
        + 2 * norm_parameters(model)
    )


def embedding_parameters(model: Model) -> int:
    """The input embedding, learned positions included."""
    return (model.vocab_size + model.learned_positions) * model.hidden_size


def head_parameters(model: Model) -> int:
    """The output matrix, also where it is the embedding's."""
    return model.vocab_size * model.hidden_size


def mtp_parameters(model: Model) -> int:
    """All multi-token-prediction modules, without the embedding and head that they share.

    Each is a layer like the last one, a projection of two hidden vectors into one, and the
    normalisations of both and of its output.

    References:
        DeepSeek-V3, arXiv 2412.19437, section 2.2.
    """
    layer = moe_layer_parameters(model) if model.moe else dense_layer_parameters(model)
    join = 2 * model.hidden_size * model.hidden_size + 3 * norm_parameters(model)
    return model.num_mtp_layers * (layer + join)


def total_parameters(model: Model) -> int:
    """The whole model without multi-token-prediction modules, as it is published."""
    return (
        embedding_parameters(model)
        + model.num_dense_layers * dense_layer_parameters(model)
        + model.num_moe_layers * moe_layer_parameters(model)
        + norm_parameters(model)
        + (0 if model.tie_embeddings else head_parameters(model))
    )


def active_parameters(model: Model) -> int:
    """What one token is multiplied with: chosen experts and the head, not the embedding.

    The embedding is looked up, not multiplied; DeepSeek-V3's 37B count the same way.
    """
    return (
        model.num_dense_layers * dense_layer_parameters(model)
        + model.num_moe_layers * active_moe_layer_parameters(model)
        + norm_parameters(model)
        + head_parameters(model)
    )
