"""What a scenario fixes for all configs: the model's parts, the machines, the batch."""

from __future__ import annotations

from dataclasses import dataclass

from objectives.cluster import Accelerator, Cluster
from objectives.model import Model
from objectives.model import parameters as count
from objectives.physics.blocks import Attention, Experts, Latent, Mlp, Transformer
from objectives.physics.calibration import AcceleratorCalibration, Calibration, calibration
from objectives.physics.tiers import TierSizes
from objectives.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A scenario as the analytical model needs it.

    Attributes:
        transformer: The model's parts.
        cluster: As it was read.
        accelerator: Of every GPU.
        reach: What that accelerator reaches of its figures.
        calibration: All constants.
        sizes: GPUs per unit of each tier.
        sequences: Per step.
        sequence_length: Tokens.
        model_flops_per_token: For utilisation; see `model_flops_per_token`.
        refusal: Why no config of this scenario is modelled; empty where they are.
    """

    transformer: Transformer
    cluster: Cluster
    accelerator: Accelerator
    reach: AcceleratorCalibration
    calibration: Calibration
    sizes: TierSizes
    sequences: int
    sequence_length: int
    model_flops_per_token: float
    refusal: str

    @property
    def tokens(self) -> int:
        """Per step."""
        return self.sequences * self.sequence_length


def make_setup(scenario: Scenario, *, constants: Calibration | None = None) -> Setup:
    """Prepare a scenario.

    Args:
        scenario: The model, cluster and workload.
        constants: The shipped ones when not given.
    """
    known = constants or calibration()
    cluster, model = scenario.cluster, scenario.model
    accelerator = cluster.buildings[0].accelerator
    return Setup(
        transformer=transformer_of(model),
        cluster=cluster,
        accelerator=accelerator,
        reach=known.accelerator(accelerator.name),
        calibration=known,
        sizes=_tier_sizes(cluster),
        sequences=scenario.workload.global_batch_sequences,
        sequence_length=scenario.workload.sequence_length,
        model_flops_per_token=model_flops_per_token(model, scenario.workload.sequence_length),
        refusal=_refusal(cluster),
    )


def model_flops_per_token(model: Model, sequence_length: int) -> float:
    """FLOPs that one token's training step is counted for: 6 N + 12 L H Q T.

    The convention of published utilisations: twice the products with every parameter a token
    meets, three times (forward and two backward), and attention over the whole sequence although
    half of it is masked. Recomputation does not count. N leaves out the embedding, a lookup.

    Args:
        model: Its sizes.
        sequence_length: T.

    References:
        Chowdhery et al., "PaLM", arXiv 2204.02311, appendix B.
    """
    widths = model.head_dim + (model.mla.v_head_dim if model.mla else model.head_dim)
    attention = 6 * model.num_layers * model.num_heads * widths * sequence_length
    return float(6 * count.active_parameters(model) + attention)


def transformer_of(model: Model) -> Transformer:
    """The model's parts as the physics takes them.

    Args:
        model: Its sizes.
    """
    dense = model.num_dense_layers > 0
    return Transformer(
        attention=_attention(model),
        mlp=_mlp(model, model.intermediate_size, count.dense_mlp_parameters(model))
        if dense
        else None,
        experts=_experts(model),
        dense_layers=model.num_dense_layers,
        expert_layers=model.num_moe_layers,
        mtp_layers=model.num_mtp_layers,
        hidden=model.hidden_size,
        vocabulary=model.vocab_size,
        norm_parameters=count.norm_parameters(model),
        embedding_parameters=count.embedding_parameters(model),
        tied=model.tie_embeddings,
    )


def _attention(model: Model) -> Attention:
    latent = None
    v_dim = model.head_dim
    if model.mla is not None:
        v_dim = model.mla.v_head_dim
        latent = Latent(
            query_rank=model.mla.q_lora_rank or 0,
            key_value_rank=model.mla.kv_lora_rank,
            rope_dim=model.mla.qk_rope_head_dim,
        )
    return Attention(
        hidden=model.hidden_size,
        heads=model.num_heads,
        kv_heads=model.num_heads if latent else model.num_kv_heads,
        qk_dim=model.head_dim,
        v_dim=v_dim,
        latent=latent,
        parameters=count.attention_parameters(model),
    )


def _experts(model: Model) -> Experts | None:
    moe = model.moe
    if moe is None:
        return None
    shared = None
    if moe.num_shared_experts:
        width = moe.num_shared_experts * moe.shared_expert_intermediate_size
        shared = _mlp(model, width, count.shared_expert_parameters(model))
    grouped = moe.expert_groups > 1
    return Experts(
        expert=_mlp(model, moe.expert_intermediate_size, count.expert_parameters(model)),
        count=moe.num_experts,
        per_token=moe.experts_per_token,
        nodes_per_token=moe.groups_per_token if grouped else moe.experts_per_token,
        shared=shared,
        router_parameters=count.router_parameters(model),
    )


def _mlp(model: Model, width: int, parameters: int) -> Mlp:
    return Mlp(hidden=model.hidden_size, width=width, gated=model.gated_mlp, parameters=parameters)


def _tier_sizes(cluster: Cluster) -> TierSizes:
    first = cluster.buildings[0]
    per_region = len(cluster.buildings) // len(cluster.regions)
    return TierSizes.nested(
        node=first.gpus_per_node,
        zone=first.gpus_per_zone,
        building=first.gpus,
        region=first.gpus * per_region,
    )


def _refusal(cluster: Cluster) -> str:
    names = sorted({building.accelerator.name for building in cluster.buildings})
    if len(names) > 1:
        return f"cluster.building.accelerator: mixed accelerators are not modelled, got {names}"
    for what in ("gpus", "gpus_per_node", "gpus_per_zone"):
        sizes = sorted({getattr(building, what) for building in cluster.buildings})
        if len(sizes) > 1:
            return f"cluster.building.{what}: unequal buildings are not modelled, got {sizes}"
    regions = cluster.regions
    held = {name: sum(b.region == name for b in cluster.buildings) for name in regions}
    if len(set(held.values())) > 1:
        return f"cluster.building.region: regions of unequal size are not modelled, got {held}"
    return ""
