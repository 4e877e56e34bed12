"""A config as arguments of Megatron-LM core_v0.15.3.

References:
    Megatron-LM core_v0.15.3: arguments and their checks ``megatron/training/arguments.py``,
    rank order ``megatron/core/parallel_state.py``, stages
    ``megatron/core/transformer/pipeline_parallel_layer_layout.py``.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from autotune import Config, DesignPoint
from objectives.exporters.job import (
    MICROBATCH_KNOBS,
    NETWORK_KNOBS,
    STAGE_KNOBS,
    Job,
    make_job,
    stage_layers,
)
from objectives.exporters.megatron_model import model_arguments, version
from objectives.exporters.nearest import with_nearest
from objectives.exporters.options import Options
from objectives.exporters.placement import node_rank_file
from objectives.exporters.rules import Rule, elsewhere, expressed, if_split, only, option
from objectives.model import Model
from objectives.physics.layout import split_order

RANK_ORDER = ("tp", "cp", "shard", "replicate", "pp")
"""Megatron's order of ranks, inner to outer."""

RANK_ORDER_PIPELINE_INSIDE = ("tp", "cp", "pp", "shard", "replicate")
"""The same with ``--use-tp-pp-dp-mapping``."""

_SCHEDULES = ("1F1B", "Interleaved1F1B")


@with_nearest
def export(design_point: DesignPoint, config: Config) -> Mapping[str, str]:
    """Write a config as a Bash file that defines the array ``MEGATRON_ARGS``.

    Args:
        design_point: The model, cluster and workload.
        config: Any knobs of `DEFAULTS`.

    Returns:
        ``megatron_args.sh``; and ``megatron_node_ranks.csv`` where the placement needs nodes to
        be started with other ranks than their own numbers.

    Raises:
        Inexpressible: Naming every knob whose value Megatron-LM cannot express.
        Unsupported: If it cannot express the model.
        InvalidInput: If the config does not fit the design point.
    """
    job = make_job(version().title, design_point, config)
    arguments = {
        **model_arguments(job.scenario.model, job.hf_config),
        "--seq-length": job.sequence_length,
        "--transformer-impl": "transformer_engine",
        "--bf16": True,
        **expressed(RULES, job),
    }
    version().check(arguments)
    places = node_rank_file(job, _rank_order(job))
    texts = {"megatron_args.sh": _shell(job, arguments, has_places=places is not None)}
    if places is not None:
        texts["megatron_node_ranks.csv"] = places
    return texts


def _shell(job: Job, arguments: Options, *, has_places: bool) -> str:
    lines = [
        f"# For {job.program} (commit {version().commit[:12]}), pretrain_gpt.py.",
        f"# {job.scenario.model.name}, {job.microbatches} microbatches a step.",
        '# Use: . ./megatron_args.sh && torchrun … pretrain_gpt.py "${MEGATRON_ARGS[@]}" …',
        "# Set by you: data, tokenizer, learning rate, checkpoints.",
    ]
    if has_places:
        lines.append("# Start each node with the --node-rank of megatron_node_ranks.csv.")
    lines += [
        f"# Not an argument of Megatron-LM, see the nccl export: {knob} = {value}"
        for knob, value in job.network.items()
    ]
    if job.degree("tp") * job.degree("cp") > 1:
        lines.append("export CUDA_DEVICE_MAX_CONNECTIONS=1  # its overlap depends on it")
    body = [f"  {line}" for line in _lines(arguments)]
    return "\n".join([*lines, "MEGATRON_ARGS=(", *body, ")", ""])


def _lines(arguments: Options) -> Iterator[str]:
    for name, value in arguments.items():
        values = value if isinstance(value, list) else [] if value is True else [value]
        yield shlex.join([name, *map(str, values)])


def _rank_order(job: Job) -> Sequence[str]:
    """The order nearer to the placement: whether data parallelism goes on outside the pipeline."""
    order = split_order(str(job.config["dimension_order"]))
    data = [order.index(name) for name in ("shard", "replicate") if job.degree(name) > 1]
    inside = order.index("pp") < max(data, default=-1)
    return RANK_ORDER_PIPELINE_INSIDE if inside else RANK_ORDER


def _dimension_order(job: Job, knob: str) -> Options:
    inside = _rank_order(job) == RANK_ORDER_PIPELINE_INSIDE
    return {"--use-tp-pp-dp-mapping": True} if inside else {}


def _tensor_parallel(job: Job, knob: str) -> Options:
    degree = job.degree("tp")
    arguments = {"--tensor-model-parallel-size": degree}
    return {**arguments, "--sequence-parallel": True} if degree > 1 else arguments


def _shard(job: Job, knob: str) -> Options:
    return {"--use-distributed-optimizer": True} if job.sharded else {}


def _replicate(job: Job, knob: str) -> Options:
    """Replicas of a sharded optimizer; without sharding plain data parallelism replicates."""
    if job.degree("replicate") == 1 or not job.sharded:
        return {}
    experts = (
        job.data_parallel_degree * job.degree("cp") // int(job.config["expert_parallel_degree"])
    )
    if experts % job.degree("replicate"):
        raise job.refusal(
            knob,
            f"the replicas must divide the {experts} ranks that hold the same experts",
            given=("expert_parallel_degree",),
        )
    return {"--num-distributed-optimizer-instances": job.degree("replicate")}


def _expert_parallel(job: Job, knob: str) -> Options:
    degree = int(job.config[knob])
    if degree == 1:
        return {}
    return {
        "--expert-model-parallel-size": degree,
        "--expert-tensor-parallel-size": job.degree("tp"),
    }


def _schedule(job: Job, knob: str) -> Options:
    schedule = job.config[knob]
    if job.degree("pp") == 1:
        return {}
    if schedule not in _SCHEDULES:
        raise job.refusal(knob, "it has no such schedule", expressible=_SCHEDULES)
    rest = job.microbatches % job.degree("pp")
    if schedule == "Interleaved1F1B" and rest:
        raise job.refusal(
            knob,
            f"it needs a multiple of {job.degree('pp')} microbatches, and there are "
            f"{job.microbatches}",
            given=MICROBATCH_KNOBS,
        )
    return {}


def _virtual_stages(job: Job, knob: str) -> Options:
    """The layers of every stage, written out, so that uneven stages need no second way."""
    per_rank = int(job.config[knob])
    interleaved = job.config["pipeline_parallel_schedule"] == "Interleaved1F1B"
    if job.degree("pp") == 1:
        return {}
    if interleaved != (per_rank > 1):
        why = f"this schedule has {'at least two' if interleaved else 'one'} a rank"
        raise job.refusal(knob, why, given=("pipeline_parallel_schedule",))
    layers = stage_layers(job)
    if min(layers) < 0 or min(layers[1:-1], default=1) < 1:
        raise job.refusal(knob, f"the stages would have {layers} layers", given=STAGE_KNOBS)
    return {"--pipeline-model-parallel-layout": layout(layers, job.scenario.model.num_mtp_layers)}


def layout(layers: Sequence[int], num_mtp_layers: int = 0) -> str:
    """Megatron's text for the layers of each stage.

    Args:
        layers: Transformer layers of each stage, the first stage first.
        num_mtp_layers: Multi-token prediction layers, on the last stage.

    Examples:
        >>> layout([1, 2, 2, 1])
        'Et|(tt|)*2tL'
    """
    head = "E" + "t" * layers[0] + "|"
    tail = "t" * layers[-1] + "m" * num_mtp_layers + "L"
    runs = [(count, len(list(run))) for count, run in groupby(layers[1:-1])]
    middle = [f"({'t' * count}|)*{repeats}" for count, repeats in runs]
    return head + "".join(middle) + tail


def _less_layers(job: Job, knob: str) -> Options:
    """Part of the layout that `_virtual_stages` writes."""
    return {}


def _microbatch(job: Job, knob: str) -> Options:
    return {
        "--micro-batch-size": int(job.config[knob]),
        "--global-batch-size": job.global_batch_size,
    }


def _gradient_reduction(job: Job, knob: str) -> Options:
    if not job.gradients_accumulate:
        return {}
    return only("per_step", because="it reduces with the last microbatch only")(job, knob)


def _overlap_reduction(job: Job, knob: str) -> Options:
    reduces = job.data_parallel_degree * job.degree("cp") > 1
    return {"--overlap-grad-reduce": True} if reduces and job.config[knob] else {}


def _overlap_gather(job: Job, knob: str) -> Options:
    if not job.sharded or not job.config[knob]:
        return {}
    if not job.config["overlap_gradient_reduction"]:
        raise job.refusal(
            knob,
            "it overlaps the gather only together with the reduction",
            expressible=(False,),
            given=("overlap_gradient_reduction",),
        )
    return {"--overlap-param-gather": True}


def _pipeline_p2p(job: Job, knob: str) -> Options:
    if job.degree("pp") == 1:
        return {}
    if job.config["pipeline_parallel_schedule"] != "Interleaved1F1B":
        because = "it overlaps sends with Interleaved1F1B only"
        return only(False, because=because, given=("pipeline_parallel_schedule",))(job, knob)
    if job.config[knob]:
        return {}
    if job.degree("pp") == 2:
        raise job.refusal(
            knob,
            "interleaving over two ranks needs the overlap",
            expressible=(True,),
            given=("pipeline_parallel_schedule", "pipeline_parallel_degree"),
        )
    return {"--no-overlap-p2p-communication": True}


def _async_tensor_parallel(job: Job, knob: str) -> Options:
    return {"--tp-comm-overlap": True} if job.degree("tp") > 1 and job.config[knob] else {}


def _gradient_dtype(job: Job, knob: str) -> Options:
    if job.config[knob] == "bf16":
        return {"--grad-reduce-in-bf16": True}
    return {"--accumulate-allreduce-grads-in-fp32": True}


def _checkpointing(job: Job, knob: str) -> Options:
    match job.config[knob]:
        case "none":
            return {}
        case "selective":
            return {
                "--recompute-granularity": "selective",
                "--recompute-modules": _cheap_modules(job.scenario.model),
            }
        case _:
            return {
                "--recompute-granularity": "full",
                "--recompute-method": "uniform",
                "--recompute-num-layers": 1,
            }


def _cheap_modules(model: Model) -> list[str]:
    """What only streams memory, or comes from a low rank: cheap to compute twice."""
    experts = ["moe_act"] if model.moe is not None else []
    latent = ["mla_up_proj"] if model.mla is not None else []
    return ["layernorm", *experts, *latent]


def _optimizer_offload(job: Job, knob: str) -> Options:
    fraction = float(job.config[knob])
    if fraction == 0:
        return {}
    return {
        "--optimizer-cpu-offload": True,
        "--optimizer-offload-fraction": fraction,
        "--use-precision-aware-optimizer": True,
        "--overlap-cpu-optimizer-d2h-h2d": True,
    }


def _precision(job: Job, knob: str) -> Options:
    if job.config[knob] == "bf16":
        return {}
    return {"--fp8-format": "hybrid", "--fp8-recipe": "tensorwise"}


RULES: Mapping[str, Rule] = {
    "tensor_parallel_degree": _tensor_parallel,
    "context_parallel_degree": option("--context-parallel-size"),
    "pipeline_parallel_degree": option("--pipeline-model-parallel-size"),
    "data_parallel_shard_degree": _shard,
    "data_parallel_replicate_degree": _replicate,
    "expert_parallel_degree": _expert_parallel,
    "dimension_order": _dimension_order,
    "pipeline_parallel_schedule": _schedule,
    "microbatch_size": _microbatch,
    "virtual_stages_per_rank": _virtual_stages,
    "pipeline_parallel_first_stage_less_layers": _less_layers,
    "pipeline_parallel_last_stage_less_layers": _less_layers,
    "fsdp_reshard_after_forward": if_split(
        "shard", rule=only("never", because="its distributed optimizer keeps whole parameters")
    ),
    "fsdp_prefetch_depth": if_split(
        "shard", rule=only(1, because="it gathers one bucket ahead, without an option")
    ),
    "gradient_reduction": _gradient_reduction,
    "gradient_dtype": _gradient_dtype,
    "overlap_gradient_reduction": _overlap_reduction,
    "overlap_parameter_gather": _overlap_gather,
    "async_pipeline_p2p": _pipeline_p2p,
    "async_tensor_parallel": _async_tensor_parallel,
    "p2p_scatter_gather": if_split(
        "pp",
        "tp",
        rule=only(True, because="its stages pass activations sharded over the sequence"),
    ),
    "activation_checkpoint_mode": _checkpointing,
    "activation_offload_fraction": only(0.0, because="it offloads no activations"),
    "optimizer_offload_fraction": _optimizer_offload,
    "precision": _precision,
    "gradient_compression": only("none", because="it has no compressed collectives"),
    "local_steps": only(1, because="it synchronises every step"),
    **dict.fromkeys(NETWORK_KNOBS, elsewhere),
}
"""How each knob is expressed."""
