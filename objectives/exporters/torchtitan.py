"""A config as a TOML job file of TorchTitan v0.2.2, the last release that reads TOML.

References:
    TorchTitan v0.2.2: options ``torchtitan/config/job_config.py``, rank order
    ``torchtitan/distributed/parallel_dims.py``, stages
    ``torchtitan/distributed/pipeline_parallel.py``.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping
from typing import Any

from autotune import Config, DesignPoint, Unsupported
from objectives.exporters.job import (
    NETWORK_KNOBS,
    Job,
    Rule,
    elsewhere,
    expressed,
    if_split,
    make_job,
    only,
    option,
)
from objectives.exporters.options import OptionList, Options, option_list
from objectives.exporters.placement import node_rank_file
from objectives.model import Model

RANK_ORDER = ("tp", "cp", "shard", "replicate", "pp")
"""TorchTitan's order of ranks, inner to outer."""

_ARCHITECTURES = {
    "LlamaForCausalLM": "llama3",
    "Qwen3ForCausalLM": "qwen3",
    "Qwen3MoeForCausalLM": "qwen3",
    "DeepseekV2ForCausalLM": "deepseek_v3",
    "DeepseekV3ForCausalLM": "deepseek_v3",
}
_SINGLE_STAGE_SCHEDULES = ("1F1B", "GPipe")
_INTERLEAVED_SCHEDULES = ("Interleaved1F1B", "InterleavedZeroBubble")
_V_SCHEDULES = ("ZBVZeroBubble", "DualPipeV")


def version() -> OptionList:
    """The version of TorchTitan that is written for."""
    return option_list("torchtitan-v0.2.2")


def export(design_point: DesignPoint, config: Config) -> Mapping[str, str]:
    """Write a config as a TorchTitan job.

    Args:
        design_point: The model, cluster and workload.
        config: Any knobs of `DEFAULTS`.

    Returns:
        ``torchtitan.toml``; and ``torchtitan_node_ranks.csv`` where the placement needs nodes
        to be started with other ranks than their own numbers.

    Raises:
        Unsupported: If TorchTitan cannot express a knob's value.
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


def to_toml(options: Options) -> str:
    """Render options named ``section.key`` as TOML, sections in their first order.

    Raises:
        AssertionError: If a TOML parser would read anything else than the options.
    """
    sections: dict[str, dict[str, Any]] = {}
    for name, value in options.items():
        section, key = name.rsplit(".", 1)
        sections.setdefault(section, {})[key] = value
    blocks = [
        "\n".join([f"[{section}]", *(f"{key} = {_toml_value(v)}" for key, v in values.items())])
        for section, values in sections.items()
    ]
    text = "\n\n".join(blocks) + "\n"
    assert _flat(tomllib.loads(text)) == dict(options), "the TOML must say what was meant"
    return text


def _toml_value(value: Any) -> str:
    """JSON's numbers, texts, booleans and lists are TOML's as well."""
    return json.dumps(value, ensure_ascii=False)


def _flat(tables: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tables.items():
        flat |= _flat(value, f"{path}{key}.") if isinstance(value, dict) else {path + key: value}
    return flat


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
    flavor = _flavor(job.scenario.model)
    return {
        "model.name": flavor["name"],
        "model.flavor": flavor["flavor"],
        "model.hf_assets_path": f"./assets/hf/{job.scenario.model.name}",
        "training.seq_len": int(job.scenario.workload.sequence_length),
    }


def _flavor(model: Model) -> Mapping[str, Any]:
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
    flavors: list[Mapping[str, Any]] = version().facts["models"]
    related = [flavor for flavor in flavors if flavor["name"] == family]
    for flavor in related:
        wanted = {"num_experts": None, "kv_lora_rank": None, **flavor["sizes"]}
        if all(sizes.get(name) == value for name, value in wanted.items()):
            return flavor
    known = ", ".join(flavor["flavor"] for flavor in related) or "none"
    raise Unsupported(
        f"{version().title} cannot express the model {model.name}: it has no flavor of these "
        f"sizes (flavors of {model.architecture}: {known}); register one there"
    )


def _sizes(model: Model) -> dict[str, Any]:
    sizes = {name: getattr(model, name) for name in _SIZES}
    if model.moe is not None:
        sizes |= {name: getattr(model.moe, name) for name in _MOE_SIZES}
    if model.mla is not None:
        sizes |= {name: getattr(model.mla, name) for name in _MLA_SIZES}
        sizes["q_lora_rank"] = model.mla.q_lora_rank or 0
    return sizes


_SIZES = (
    "hidden_size",
    "num_layers",
    "num_heads",
    "num_kv_heads",
    "head_dim",
    "intermediate_size",
    "vocab_size",
    "tie_embeddings",
)
_MOE_SIZES = (
    "num_experts",
    "experts_per_token",
    "expert_intermediate_size",
    "num_shared_experts",
    "num_dense_layers",
    "expert_groups",
    "groups_per_token",
)
_MLA_SIZES = (
    "q_lora_rank",
    "kv_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "v_head_dim",
)


def _context_parallel(job: Job, knob: str) -> Options:
    degree = job.degree("cp")
    flavor = _flavor(job.scenario.model)
    if degree > 1 and not flavor["context"]:
        raise job.refusal(knob, f"{flavor['name']} uses flex attention there; expressible: 1")
    pieces = job.degree("tp") * (2 * degree if degree > 1 else 1)
    length = int(job.scenario.workload.sequence_length)
    if length % pieces:
        raise job.refusal(
            knob, f"tp x 2 cp = {pieces} must divide the sequence length, which is {length}"
        )
    return {"parallelism.context_parallel_degree": degree}


def _pipeline_parallel(job: Job, knob: str) -> Options:
    flavor = _flavor(job.scenario.model)
    if job.degree("pp") > 1 and not flavor["pipeline"]:
        raise job.refusal(knob, f"{flavor['name']} has no pipelining there; expressible: 1")
    return {"parallelism.pipeline_parallel_degree": job.degree("pp")}


def _replicate(job: Job, knob: str) -> Options:
    degree = job.degree("replicate")
    sharded = job.degree("shard") * job.degree("cp") > 1
    if degree > 1 and not sharded and job.degree("tp") * job.degree("pp") > 1:
        raise job.refusal(
            knob,
            "without sharding it combines replication with no other dimension; expressible: 1, "
            "or data_parallel_shard_degree above 1",
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
    known = version().facts["schedules"]
    if schedule not in known:
        raise job.refusal(knob, f"PyTorch's pipelining has no such schedule; it has {known}")
    rounds = max(1, job.microbatches // job.degree("pp"))
    if schedule in _INTERLEAVED_SCHEDULES and job.microbatches % rounds:
        raise job.refusal(
            knob,
            f"its {rounds} rounds must divide the microbatches, and there are {job.microbatches}; "
            f"expressible: another schedule or microbatch_size",
        )
    overlapped = schedule == "DualPipeV" and int(job.config["expert_parallel_degree"]) > 1
    if overlapped and job.config["activation_checkpoint_mode"] != "none":
        raise job.refusal(
            knob,
            "with expert parallelism it takes no activation checkpointing; expressible: "
            "activation_checkpoint_mode='none', or another schedule",
        )
    return {"parallelism.pipeline_parallel_schedule": schedule}


def _virtual_stages(job: Job, knob: str) -> Options:
    """TorchTitan derives the number of stages from the layers per stage."""
    per_rank = int(job.config[knob])
    schedule = job.config["pipeline_parallel_schedule"]
    if job.degree("pp") == 1:
        return {}
    if schedule in _SINGLE_STAGE_SCHEDULES and per_rank != 1:
        raise job.refusal(knob, f"{schedule} has one stage a rank; expressible: 1")
    if schedule not in _SINGLE_STAGE_SCHEDULES and per_rank < 2:
        raise job.refusal(knob, f"{schedule} needs at least two stages a rank")
    if schedule in _V_SCHEDULES and per_rank != 2:
        raise job.refusal(knob, f"{schedule} has two stages a rank; expressible: 2")
    first = int(job.config["pipeline_parallel_first_stage_less_layers"])
    last = int(job.config["pipeline_parallel_last_stage_less_layers"])
    layers = job.scenario.model.num_layers + first + last
    per_stage = math.ceil(layers / job.stages)
    if math.ceil(layers / per_stage) != job.stages or max(first, last) > layers // job.stages:
        raise job.refusal(
            knob,
            f"{job.scenario.model.num_layers} layers cannot be cut into {job.stages} stages of "
            f"at most {per_stage} with {first} and {last} fewer on the first and the last",
        )
    return {"parallelism.pipeline_parallel_layers_per_stage": per_stage}


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
    if job.microbatches == 1 or job.data_parallel_degree * job.degree("cp") == 1:
        return {}
    fixed = "per_step" if job.degree("pp") > 1 else "per_microbatch"
    return only(fixed, because="with this pipeline_parallel_degree it has no choice")(job, knob)


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


_ALWAYS_OVERLAPPED = "its FSDP always overlaps, without an option"

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
        "shard", only(1, because="its FSDP gathers one block ahead, without an option")
    ),
    "gradient_reduction": _gradient_reduction,
    "gradient_dtype": only("fp32", because="training.mixed_precision_reduce has one choice"),
    "overlap_gradient_reduction": if_split("shard", only(True, because=_ALWAYS_OVERLAPPED)),
    "overlap_parameter_gather": if_split("shard", only(True, because=_ALWAYS_OVERLAPPED)),
    "async_pipeline_p2p": if_split(
        "pp", only(True, because="its schedules send asynchronously, without an option")
    ),
    "async_tensor_parallel": _async_tensor_parallel,
    "p2p_scatter_gather": if_split(
        "tp", only(True, because="its stages pass activations sharded over the sequence")
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
