"""What all exporters derive from a design point and a config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autotune import Config, DesignPoint, InvalidInput, Problem
from objectives.exporters.refusal import Inexpressible, Refusal
from objectives.physics.layout import DEGREE_COLUMNS, split_order
from objectives.scenario import Scenario, scenario

NETWORK_KNOBS = (
    "collective_algorithm",
    "in_network_reduction",
    "cross_site_chunks",
    "transport",
    "connections_per_pair",
    "load_balancing",
    "congestion_control",
    "bytes_in_flight",
)
"""Set in NCCL, on the NICs and on the switches, whatever the trainer."""

DEFAULTS: Mapping[str, Any] = {
    "tensor_parallel_degree": 1,
    "context_parallel_degree": 1,
    "pipeline_parallel_degree": 1,
    "data_parallel_shard_degree": 1,
    "data_parallel_replicate_degree": 1,
    "expert_parallel_degree": 1,
    "dimension_order": "tp-cp-pp-shard-replicate",
    "pipeline_parallel_schedule": "none",
    "microbatch_size": 1,
    "virtual_stages_per_rank": 1,
    "pipeline_parallel_first_stage_less_layers": 0,
    "pipeline_parallel_last_stage_less_layers": 0,
    "fsdp_reshard_after_forward": None,
    "fsdp_prefetch_depth": None,
    "gradient_reduction": None,
    "gradient_dtype": None,
    "overlap_gradient_reduction": None,
    "overlap_parameter_gather": None,
    "async_pipeline_p2p": None,
    "async_tensor_parallel": None,
    "p2p_scatter_gather": None,
    "activation_checkpoint_mode": None,
    "activation_offload_fraction": None,
    "optimizer_offload_fraction": None,
    "precision": None,
    "gradient_compression": None,
    "local_steps": None,
    **dict.fromkeys(NETWORK_KNOBS),
}
"""Every knob that exporters know, with the value of a config that does not have it.

Without a degree there is one rank; where it is None, the program does as it does by itself.
"""

MICROBATCH_KNOBS = (
    "microbatch_size",
    "data_parallel_shard_degree",
    "data_parallel_replicate_degree",
    "pipeline_parallel_degree",
)
"""What decides how many microbatches a pipeline has."""

STAGE_KNOBS = (
    "pipeline_parallel_degree",
    "pipeline_parallel_first_stage_less_layers",
    "pipeline_parallel_last_stage_less_layers",
)
"""What, with the virtual stages, decides how many layers a stage has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One training job: a scenario and a complete config.

    Attributes:
        program: What is exported for, such as ``torchtitan v0.2.2``.
        scenario: The model, cluster and workload.
        hf_config: The model's Hugging Face keys, for what only a trainer needs.
        config: A value for every knob in `DEFAULTS`.
    """

    program: str
    scenario: Scenario
    hf_config: Mapping[str, Any]
    config: Config

    def degree(self, dimension: str) -> int:
        """Size of a dimension, by its name in ``dimension_order``."""
        return int(self.config[DEGREE_COLUMNS[dimension]])

    @property
    def network(self) -> dict[str, Any]:
        """The network knobs that the config has."""
        return {knob: self.config[knob] for knob in NETWORK_KNOBS if self.config[knob] is not None}

    @property
    def data_parallel_degree(self) -> int:
        """Ranks that read different sequences."""
        return self.degree("shard") * self.degree("replicate")

    @property
    def sharded(self) -> bool:
        """Whether anything is sharded: trainers shard over context-parallel ranks as well."""
        return self.degree("shard") * self.degree("cp") > 1

    @property
    def global_batch_size(self) -> int:
        """Sequences per step."""
        return self.scenario.workload.global_batch_sequences

    @property
    def sequence_length(self) -> int:
        """Tokens per sequence."""
        return self.scenario.workload.sequence_length

    @property
    def microbatches(self) -> int:
        """Microbatches per step and data-parallel rank."""
        per_microbatch = self.data_parallel_degree * int(self.config["microbatch_size"])
        return self.global_batch_size // per_microbatch

    @property
    def gradients_accumulate(self) -> bool:
        """Whether when to reduce gradients makes a difference."""
        return self.microbatches > 1 and self.data_parallel_degree * self.degree("cp") > 1

    @property
    def stages(self) -> int:
        """Pipeline stages, virtual ones counted."""
        return self.degree("pp") * int(self.config["virtual_stages_per_rank"])

    def refusal(
        self,
        knob: str,
        why: str,
        *,
        expressible: tuple[Any, ...] = (),
        given: tuple[str, ...] = (),
    ) -> Inexpressible:
        """The error for a knob's value that the program cannot express.

        Args:
            knob: Its name.
            why: What the program lacks.
            expressible: See `Refusal`.
            given: See `Refusal`.
        """
        text = f"{self.program} cannot express {knob}={self.config[knob]!r}"
        if given:
            text += " with " + ", ".join(f"{name}={self.config[name]!r}" for name in given)
        text += f": {why}"
        if expressible:
            text += "; expressible: " + ", ".join(repr(value) for value in expressible)
        refusal = Refusal(knob=knob, reason=text, expressible=expressible, given=given)
        return Inexpressible([refusal])


def make_job(program: str, design_point: DesignPoint, config: Config) -> Job:
    """Read a design point and complete a config with `DEFAULTS`.

    Raises:
        Inexpressible: If the config has knobs that no exporter knows.
        InvalidInput: If the config does not fit the design point.
    """
    known = ", ".join(DEFAULTS)
    unknown = [
        Refusal(
            knob=knob,
            reason=f"{program} cannot express {knob}={value!r}: the exporter knows only {known}",
        )
        for knob, value in config.items()
        if knob not in DEFAULTS
    ]
    if unknown:
        raise Inexpressible(unknown)
    job = Job(
        program=program,
        scenario=scenario(design_point),
        hf_config=design_point.content["model"],
        config={**DEFAULTS, **config},
    )
    problems = _misfits(job)
    if problems:
        raise InvalidInput(f"config for {design_point.name}", problems)
    return job


def stage_layers(job: Job) -> list[int]:
    """Layers of each pipeline stage, the first stage first.

    The embedding and the head count as the layers that the first and last stage have less;
    what does not divide goes to the first stages, one each.
    """
    first = int(job.config["pipeline_parallel_first_stage_less_layers"])
    last = int(job.config["pipeline_parallel_last_stage_less_layers"])
    each, extra = divmod(job.scenario.model.num_layers + first + last, job.stages)
    layers = [each + (stage < extra) for stage in range(job.stages)]
    layers[0] -= first
    layers[-1] -= last
    return layers


def _misfits(job: Job) -> list[Problem]:
    problems = []
    world = job.scenario.cluster.gpus
    ranks = job.data_parallel_degree * job.degree("tp") * job.degree("cp") * job.degree("pp")
    if ranks != world:
        message = f"must multiply to the cluster's {world} GPUs, got {ranks}"
        problems.append(Problem(path=" x ".join(DEGREE_COLUMNS.values()), message=message))
    try:
        split_order(str(job.config["dimension_order"]))
    except ValueError as error:
        problems.append(Problem(path="dimension_order", message=str(error)))
    per_microbatch = job.data_parallel_degree * int(job.config["microbatch_size"])
    if job.global_batch_size % per_microbatch:
        message = (
            f"must divide the {job.global_batch_size} sequences of a step over "
            f"{job.data_parallel_degree} data-parallel ranks, got {job.config['microbatch_size']}"
        )
        problems.append(Problem(path="microbatch_size", message=message))
    return problems
