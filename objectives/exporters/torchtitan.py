"""A config as a TOML job file of TorchTitan v0.2.2, the last release that reads TOML.

References:
    TorchTitan v0.2.2: options ``torchtitan/config/job_config.py``, rank order
    ``torchtitan/distributed/parallel_dims.py``, stages
    ``torchtitan/distributed/pipeline_parallel.py``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from autotune import Config, DesignPoint
from objectives.exporters.job import MICROBATCH_KNOBS, NETWORK_KNOBS, STAGE_KNOBS, Job, make_job
from objectives.exporters.nearest import with_nearest
from objectives.exporters.options import Options
from objectives.exporters.placement import node_rank_file
from objectives.exporters.rules import Rule, elsewhere, expressed, if_split, only, option
from objectives.exporters.toml_text import to_toml
from objectives.exporters.torchtitan_model import flavor, version

RANK_ORDER = ("tp", "cp", "shard", "replicate", "pp")
"""TorchTitan's order of ranks, inner to outer."""

_SINGLE_STAGE_SCHEDULES = ("1F1B", "GPipe")
_INTERLEAVED_SCHEDULES = ("Interleaved1F1B", "InterleavedZeroBubble")
_V_SCHEDULES = ("ZBVZeroBubble", "DualPipeV")


@with_nearest
def export(design_point: DesignPoint, config: Config) -> Mapping[str, str]:
    """Write a config as a TorchTitan job.

    Args:
        design_point: The model, cluster and workload.
        config: Any knobs of `DEFAULTS`.

    Returns:
        ``torchtitan.toml``; and ``torchtitan_node_ranks.csv`` where the placement needs nodes
        to be started with other ranks than their own numbers.

    Raises:
        Inexpressible: Naming every knob whose value TorchTitan cannot express.
        Unsupported: If it cannot express the model.
        InvalidInput: If the config does not fit the design point.
    """
    job = make_job(version().title, design_point, config)
    options = {**_model(job), **expressed(RULES, job), **_COMPILED}
    version().check(options)
    places = node_rank_file(job, RANK_ORDER)
    texts = {"torchtitan.toml": "\n".join([*_head(job, places is not None), to_toml(options)])}
    if places is not None:
        texts["torchtitan_node_ranks.csv"] = places
    return texts


def _head(job: Job, has_places: bool) -> list[str]:
    lines = [
        f"# For {job.program} (commit {version().commit[:12]}).",
        f"# {job.scenario.model.name}, {job.microbatches} microbatches a step.",
        "# Set by you: dataset, tokenizer (hf_assets_path), optimizer, checkpoints.",
    ]
    if has_places:
        lines.append("# Start each node with the --node-rank of torchtitan_node_ranks.csv.")
    lines += [
        f"# Not an option of TorchTitan, see the nccl export: {knob} = {value}"
        for knob, value in job.network.items()
    ]
    return [*lines, ""]


# torch.compile fuses the kernels that every backend's efficiencies assume.
_COMPILED = {"compile.enable": True, "compile.components": ["model", "loss"]}


def _model(job: Job) -> Options:
    known = flavor(job.scenario.model)
    return {
        "model.name": known["name"],
        "model.flavor": known["flavor"],
        "model.hf_assets_path": f"./assets/hf/{job.scenario.model.name}",
        "training.seq_len": job.sequence_length,
    }


def _context_parallel(job: Job, knob: str) -> Options:
    degree = job.degree("cp")
    known = flavor(job.scenario.model)
    if degree > 1 and not known["context"]:
        raise job.refusal(knob, f"{known['name']} uses flex attention there", expressible=(1,))
    pieces = job.degree("tp") * (2 * degree if degree > 1 else 1)
    length = job.sequence_length
    if length % pieces:
        raise job.refusal(
            knob,
            f"tp x 2 cp = {pieces} must divide the sequence length, which is {length}",
            given=("tensor_parallel_degree",),
        )
    return {"parallelism.context_parallel_degree": degree}


def _pipeline_parallel(job: Job, knob: str) -> Options:
    known = flavor(job.scenario.model)
    if job.degree("pp") > 1 and not known["pipeline"]:
        raise job.refusal(knob, f"{known['name']} has no pipelining there", expressible=(1,))
    return {"parallelism.pipeline_parallel_degree": job.degree("pp")}


def _replicate(job: Job, knob: str) -> Options:
    degree = job.degree("replicate")
    if degree > 1 and not job.sharded and job.degree("tp") * job.degree("pp") > 1:
        raise job.refusal(
            knob,
            "it combines replication with other dimensions only where something is sharded",
            given=("data_parallel_shard_degree", "context_parallel_degree"),
        )
    return {"parallelism.data_parallel_replicate_degree": degree}


def _expert_parallel(job: Job, knob: str) -> Options:
    degree = int(job.config[knob])
    if degree == 1:
        return {}
    # Experts are spread over cp x shard ranks only, so that each stays split over tp.
    return {
        "parallelism.expert_parallel_degree": degree,
        "parallelism.expert_tensor_parallel_degree": job.degree("tp"),
    }


def _schedule(job: Job, knob: str) -> Options:
    schedule = job.config[knob]
    if job.degree("pp") == 1:
        return {}
    known = tuple(version().facts["schedules"])
    if schedule not in known:
        raise job.refusal(knob, "PyTorch's pipelining has no such schedule", expressible=known)
    rounds = max(1, job.microbatches // job.degree("pp"))
    if schedule in _INTERLEAVED_SCHEDULES and job.microbatches % rounds:
        raise job.refusal(
            knob,
            f"its {rounds} rounds must divide the microbatches, which are {job.microbatches}",
            given=MICROBATCH_KNOBS,
        )
    overlapped = schedule == "DualPipeV" and int(job.config["expert_parallel_degree"]) > 1
    if overlapped and job.config["activation_checkpoint_mode"] not in (None, "none"):
        raise job.refusal(
            knob,
            "with expert parallelism it takes no activation checkpointing",
            given=("expert_parallel_degree", "activation_checkpoint_mode"),
        )
    return {"parallelism.pipeline_parallel_schedule": schedule}


def _virtual_stages(job: Job, knob: str) -> Options:
    """TorchTitan derives the number of stages from the layers per stage."""
    if job.degree("pp") == 1:
        return {}
    _check_stages_of_schedule(job, knob)
    first = int(job.config["pipeline_parallel_first_stage_less_layers"])
    last = int(job.config["pipeline_parallel_last_stage_less_layers"])
    layers = job.scenario.model.num_layers + first + last
    per_stage = math.ceil(layers / job.stages)
    if math.ceil(layers / per_stage) != job.stages or max(first, last) > layers // job.stages:
        raise job.refusal(
            knob,
            f"{job.scenario.model.num_layers} layers cannot be cut into {job.stages} stages of "
            f"at most {per_stage}",
            given=STAGE_KNOBS,
        )
    return {"parallelism.pipeline_parallel_layers_per_stage": per_stage}


def _check_stages_of_schedule(job: Job, knob: str) -> None:
    per_rank = int(job.config[knob])
    schedule = job.config["pipeline_parallel_schedule"]
    if schedule in _SINGLE_STAGE_SCHEDULES:
        fits, stages = per_rank == 1, "one stage"
    elif schedule in _V_SCHEDULES:
        fits, stages = per_rank == 2, "two stages"
    else:
        fits, stages = per_rank > 1, "at least two stages"
    if not fits:
        why = f"this schedule has {stages} a rank"
        raise job.refusal(knob, why, given=("pipeline_parallel_schedule",))


def _less_layers(job: Job, knob: str) -> Options:
    return {f"parallelism.{knob}": int(job.config[knob])} if job.degree("pp") > 1 else {}


def _microbatch(job: Job, knob: str) -> Options:
    """With a pipeline its schedule cuts the local batch; without one gradients accumulate."""
    size = int(job.config[knob])
    batch = {"training.global_batch_size": job.global_batch_size}
    if job.degree("pp") == 1:
        return {"training.local_batch_size": size, **batch}
    return {
        "training.local_batch_size": size * job.microbatches,
        **batch,
        "parallelism.pipeline_parallel_microbatch_size": size,
    }


def _gradient_reduction(job: Job, knob: str) -> Options:
    if not job.gradients_accumulate:
        return {}
    fixed = "per_step" if job.degree("pp") > 1 else "per_microbatch"
    because = "a pipeline reduces with its last microbatch, gradient accumulation with each"
    return only(fixed, because=because, given=("pipeline_parallel_degree",))(job, knob)


def _overlap(job: Job, knob: str) -> Options:
    if job.data_parallel_degree * job.degree("cp") == 1:
        return {}
    return only(True, because="its FSDP always overlaps, without an option")(job, knob)


def _async_tensor_parallel(job: Job, knob: str) -> Options:
    if job.degree("tp") == 1:
        return {}
    return {"parallelism.enable_async_tensor_parallel": bool(job.config[knob])}


def _checkpointing(job: Job, knob: str) -> Options:
    mode = job.config[knob]
    options = {"activation_checkpoint.mode": mode}
    if mode == "selective":
        options["activation_checkpoint.selective_ac_option"] = "op"
    return options


def _precision(job: Job, knob: str) -> Options:
    parameters = {"training.mixed_precision_param": "bfloat16"}
    if job.config[knob] == "bf16":
        return parameters
    converters = ["quantize.linear.float8"]
    quantized: dict[str, Any] = {
        "quantize.linear.float8.recipe_name": "tensorwise",
        "quantize.linear.float8.filter_fqns": ["output"],
    }
    if job.scenario.model.moe is not None:
        converters.append("quantize.grouped_mm.float8")
        quantized["quantize.grouped_mm.float8.fqns"] = ["experts"]
    return {"model.converters": converters, **parameters, **quantized}


RULES: Mapping[str, Rule] = {
    "tensor_parallel_degree": option("parallelism.tensor_parallel_degree"),
    "context_parallel_degree": _context_parallel,
    "pipeline_parallel_degree": _pipeline_parallel,
    "data_parallel_shard_degree": option("parallelism.data_parallel_shard_degree"),
    "data_parallel_replicate_degree": _replicate,
    "expert_parallel_degree": _expert_parallel,
    # By `placement.node_rank_file`, which refuses what cannot be had.
    "dimension_order": elsewhere,
    "pipeline_parallel_schedule": _schedule,
    "microbatch_size": _microbatch,
    "virtual_stages_per_rank": _virtual_stages,
    "pipeline_parallel_first_stage_less_layers": _less_layers,
    "pipeline_parallel_last_stage_less_layers": _less_layers,
    "fsdp_reshard_after_forward": option("parallelism.fsdp_reshard_after_forward"),
    "fsdp_prefetch_depth": if_split(
        "shard", rule=only(1, because="its FSDP gathers one block ahead, without an option")
    ),
    "gradient_reduction": _gradient_reduction,
    "gradient_dtype": only("fp32", because="training.mixed_precision_reduce has one choice"),
    "overlap_gradient_reduction": _overlap,
    "overlap_parameter_gather": _overlap,
    "async_pipeline_p2p": if_split(
        "pp", rule=only(True, because="its schedules send asynchronously, without an option")
    ),
    "async_tensor_parallel": _async_tensor_parallel,
    "p2p_scatter_gather": if_split(
        "pp",
        "tp",
        rule=only(True, because="its stages pass activations sharded over the sequence"),
    ),
    "activation_checkpoint_mode": _checkpointing,
    "activation_offload_fraction": only(0.0, because="it offloads no activations"),
    "optimizer_offload_fraction": only(
        0.0, because="it offloads parameters, gradients and optimizer together or not at all"
    ),
    "precision": _precision,
    "gradient_compression": only("none", because="it has no compressed collectives"),
    "local_steps": only(1, because="its DiLoCo needs torchft's own replica groups"),
    **dict.fromkeys(NETWORK_KNOBS, elsewhere),
}
"""How each knob is expressed."""
