"""The parts of a transformer as sizes that decide what they cost, for whoever computes that.

They hold plain numbers, so that the physics depends on no reader of model files.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Low-rank queries, keys and values (multi-head latent attention).

    Attributes:
        query_rank: Of the queries' projection; 0 where it is one full matrix.
        key_value_rank: Of the projection that keys and values share.
        rope_dim: Width of the positional part of a key, shared by all heads.

    References:
        DeepSeek-V2, arXiv 2405.04434, section 2.1.
    """

    query_rank: int
    key_value_rank: int
    rope_dim: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """The attention of one layer.

    Attributes:
        hidden: Width of the residual stream.
        heads: Query heads.
        kv_heads: Key and value heads.
        qk_dim: Width of a query and key head.
        v_dim: Width of a value head.
        latent: None where queries, keys and values have full matrices.
        parameters: All of them.
    """

    hidden: int
    heads: int
    kv_heads: int
    qk_dim: int
    v_dim: int
    latent: Latent | None
    parameters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Mlp:
    """A plain MLP, an expert, or several shared experts side by side.

    Attributes:
        hidden: Width of the residual stream.
        width: Inner width.
        gated: Whether it has a gate, three matrices instead of two.
        parameters: All of them.
    """

    hidden: int
    width: int
    gated: bool
    parameters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """The mixture of experts of one layer.

    Attributes:
        expert: One routed expert.
        count: Routed experts.
        per_token: Routed experts that each token visits.
        nodes_per_token: Most nodes that one token's experts are on.
        shared: All shared experts as one; None where there are none.
        router_parameters: Of the router.
    """

    expert: Mlp
    count: int
    per_token: int
    nodes_per_token: int
    shared: Mlp | None
    router_parameters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """A model as its parts; every layer has the attention, and one of the two MLPs.

    Attributes:
        attention: Of every layer.
        mlp: Of the leading dense layers; None where all layers have experts.
        experts: Of the other layers; None in a dense model.
        dense_layers: Leading layers with `mlp`.
        expert_layers: Layers with `experts`, after those.
        mtp_layers: Multi-token-prediction modules after the last layer, of its kind.
        hidden: Width of the residual stream.
        vocabulary: Rows of the embedding and columns of the head.
        norm_parameters: Of one normalisation.
        embedding_parameters: Of the embedding.
        tied: Whether the head is the embedding.
    """

    attention: Attention
    mlp: Mlp | None
    experts: Experts | None
    dense_layers: int
    expert_layers: int
    mtp_layers: int
    hidden: int
    vocabulary: int
    norm_parameters: int
    embedding_parameters: int
    tied: bool

    @property
    def layers(self) -> int:
        """Without multi-token prediction."""
        return self.dense_layers + self.expert_layers
