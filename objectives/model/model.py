"""The sizes of a decoder-only transformer that decide what training it costs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MoE:
    """Mixture of experts in place of the MLP, in every layer but the leading dense ones.

    Attributes:
        num_experts: Routed experts per layer.
        experts_per_token: Routed experts that each token visits.
        expert_intermediate_size: Inner width of one routed expert.
        num_shared_experts: Experts that every token visits; 0 where there are none.
        shared_expert_intermediate_size: Inner width of one shared expert.
        num_dense_layers: Leading layers with a plain MLP.
        expert_groups: Groups that the routed experts are divided into.
        groups_per_token: Groups that one token's experts are taken from.
        shared_expert_gate: Whether a gate weighs the shared experts, one weight per hidden unit.
    """

    num_experts: int
    experts_per_token: int
    expert_intermediate_size: int
    num_shared_experts: int = 0
    shared_expert_intermediate_size: int = 0
    num_dense_layers: int = 0
    expert_groups: int = 1
    groups_per_token: int = 1
    shared_expert_gate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MLA:
    """Multi-head latent attention: queries, keys and values from low-rank projections.

    Attributes:
        q_lora_rank: Rank of the queries' projection; None where it is one full matrix.
        kv_lora_rank: Rank of the projection that keys and values share.
        qk_nope_head_dim: Part of a query and key head without position.
        qk_rope_head_dim: Part with rotary position; the key's is shared by all heads.
        v_head_dim: Width of a value head.

    References:
        DeepSeek-V2, arXiv 2405.04434, section 2.1.
    """

    q_lora_rank: int | None
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A decoder-only transformer.

    Attributes:
        name: For people.
        architecture: Hugging Face's class, such as ``LlamaForCausalLM``.
        hidden_size: Width of the residual stream.
        num_layers: Transformer layers, without the embedding, the head and MTP modules.
        num_heads: Query heads per layer.
        num_kv_heads: Key and value heads per layer.
        head_dim: Width of a query head; for MLA the part with and without position together.
        intermediate_size: Inner width of the MLP; of an expert where no layer is dense.
        vocab_size: Rows of the embedding.
        tie_embeddings: Whether the head uses the embedding's matrix.
        gated_mlp: Whether the MLP has a gate, three matrices instead of two.
        moe: Mixture of experts; None in a dense model.
        mla: Latent attention; None where queries, keys and values have full matrices.
        max_sequence_length: Tokens that the positions reach.
        num_mtp_layers: Multi-token-prediction modules, each one more layer, after the last.
        qkv_bias: Whether the query, key and value projections have a bias.
        attention_output_bias: Whether the attention's output projection has one.
        mlp_bias: Whether the MLP's matrices have one.
        norm_bias: Whether normalisations have a bias beside their scale (LayerNorm).
        qk_norm: Whether queries and keys are normalised per head.
        learned_positions: Rows of a learned position embedding; 0 where positions are rotary.
        sliding_window: Tokens that attention looks back; None for all.
    """

    name: str
    architecture: str
    hidden_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    tie_embeddings: bool
    gated_mlp: bool
    moe: MoE | None
    mla: MLA | None
    max_sequence_length: int
    num_mtp_layers: int = 0
    qkv_bias: bool = False
    attention_output_bias: bool = False
    mlp_bias: bool = False
    norm_bias: bool = False
    qk_norm: bool = False
    learned_positions: int = 0
    sliding_window: int | None = None

    @property
    def num_moe_layers(self) -> int:
        """Layers with experts."""
        return 0 if self.moe is None else self.num_layers - self.moe.num_dense_layers

    @property
    def num_dense_layers(self) -> int:
        """Layers with a plain MLP."""
        return self.num_layers - self.num_moe_layers
