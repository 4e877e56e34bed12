"""What a study of this domain tunes for: a model, a cluster and a workload."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.design_point import DesignPoint
from autotune.errors import InvalidInput, Problem
from objectives.cluster import Cluster, parse_cluster, read_cluster
from objectives.cluster.accelerators import with_presets
from objectives.model import Model, parse_hf_config, read_hf_config
from objectives.model.parameters import active_parameters, total_parameters
from objectives.reading import Field, problems_of, read_table, whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What one training step works on.

    Attributes:
        global_batch_tokens: Of the whole job per step; a multiple of the sequence length.
        sequence_length: Tokens per sequence.
    """

    global_batch_tokens: int
    sequence_length: int

    @property
    def global_batch_sequences(self) -> int:
        """Sequences of the whole job per step."""
        return self.global_batch_tokens // self.sequence_length


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A model to train, the machines to train it on and the batch."""

    model: Model
    cluster: Cluster
    workload: Workload


def design_point(
    name: str,
    *,
    model: Mapping[str, Any] | str | Path,
    cluster: Mapping[str, Any] | str | Path,
    workload: Mapping[str, Any] | Workload,
    others: Mapping[str, Any] | None = None,
) -> DesignPoint:
    """Make the design point of a scenario.

    Its content keeps what the files say, Hugging Face keys and quantities with units, so that
    editing a path of it, such as ``cluster.link.between_buildings.capacity``, and reading it
    again with `scenario` works. Accelerator presets are written into it.

    Args:
        name: Unique among the design points of a storage.
        model: Hugging Face keys, a preset's name or a path.
        cluster: Tables of a cluster file, a preset's name or a path.
        workload: ``global_batch_tokens`` and ``sequence_length``.
        others: More sections of the content, such as ``command``.

    Raises:
        UnknownName: If a name is neither a preset nor a file.
        InvalidInput: With everything wrong with the three.
    """
    content = {
        **(others or {}),
        "model": dict(model) if isinstance(model, Mapping) else read_hf_config(model),
        "cluster": dict(cluster) if isinstance(cluster, Mapping) else read_cluster(cluster),
        "workload": _workload_table(workload),
    }
    parsed = parse_content(content, what=f"design point {name}")
    content["cluster"] = with_presets(content["cluster"])
    return DesignPoint(name=name, content=content, features=features(parsed))


def scenario(design_point: DesignPoint) -> Scenario:
    """Read the scenario of a design point.

    Raises:
        InvalidInput: With every problem of its content, each under its path.
    """
    return parse_content(design_point.content, what=f"design point {design_point.name}")


def parse_content(content: Mapping[str, Any], *, what: str = "design point") -> Scenario:
    """Read the sections ``model``, ``cluster`` and ``workload`` of a design point's content.

    Raises:
        InvalidInput: With every problem, each under its path.
    """
    readers: dict[str, Callable[[Any], Any]] = {
        "model": parse_hf_config,
        "cluster": parse_cluster,
        "workload": parse_workload,
    }
    problems: list[Problem] = []
    parts: dict[str, Any] = {}
    for section, read in readers.items():
        if section not in content:
            got = ", ".join(map(str, content)) or "nothing"
            message = f"is missing; the content has {got}"
            problems.append(Problem(path=section, message=message))
            continue
        try:
            parts[section] = read(content[section])
        except InvalidInput as error:
            problems.extend(problems_of(error, section))
    if not problems:
        problems = _misfits(parts["model"], parts["workload"])
    if problems:
        raise InvalidInput(what, problems)
    return Scenario(**parts)


def parse_workload(data: Mapping[str, Any]) -> Workload:
    """Read a workload.

    Raises:
        InvalidInput: With every problem.
    """
    fields = {
        "global_batch_tokens": Field(convert=whole(minimum=1), example="16777216"),
        "sequence_length": Field(convert=whole(minimum=1), example="8192"),
    }
    return Workload(**read_table(data, fields, what="workload", check=_whole_sequences))


def _whole_sequences(values: dict[str, Any]) -> list[Problem]:
    tokens, length = values["global_batch_tokens"], values["sequence_length"]
    if tokens % length == 0:
        return []
    near = max(1, round(tokens / length)) * length
    message = f"must be a multiple of the sequence_length {length}, got {tokens}; nearest: {near}"
    return [Problem(path="global_batch_tokens", message=message)]


def features(scenario: Scenario) -> dict[str, float]:
    """Numbers that say how near two scenarios are; one unit is a doubling or a tenfold.

    Cuts and distances are of the widest separation that the cluster has; a cluster of one
    building has distance 1 m and, per GPU, the bandwidth of its own links.
    """
    model, cluster, workload = scenario.model, scenario.cluster, scenario.workload
    cut = cluster.between_regions or cluster.between_buildings
    per_gpu = cluster.building.bandwidth_bytes_per_s / cluster.building.oversubscription
    capacity = cut.capacity_bytes_per_s if cut else per_gpu * cluster.gpus
    peak = sum(b.gpus * b.accelerator.peak_flops_per_s["bf16"] for b in cluster.buildings)
    memory = min(building.accelerator.memory_bytes for building in cluster.buildings)
    return {
        "log2_gpus": math.log2(cluster.gpus),
        "log2_buildings": math.log2(len(cluster.buildings)),
        "log10_distance": math.log10(max(cut.distance_m if cut else 1.0, 1.0)),
        "log10_cut": math.log10(capacity),
        "log2_cut_per_gpu": math.log2(capacity / cluster.gpus),
        "log2_peak_per_gpu": math.log2(peak / cluster.gpus),
        "log2_memory": math.log2(memory),
        "log2_params": math.log2(total_parameters(model)),
        "log2_active_params": math.log2(active_parameters(model)),
        "log2_layers": math.log2(model.num_layers),
        "log2_hidden": math.log2(model.hidden_size),
        "log2_batch_sequences": math.log2(workload.global_batch_sequences),
        "log2_sequence_length": math.log2(workload.sequence_length),
    }


def _workload_table(workload: Mapping[str, Any] | Workload) -> dict[str, Any]:
    if isinstance(workload, Workload):
        return {
            "global_batch_tokens": workload.global_batch_tokens,
            "sequence_length": workload.sequence_length,
        }
    return dict(workload)


def _misfits(model: Model, workload: Workload) -> list[Problem]:
    length = workload.sequence_length
    limits = (
        (model.max_sequence_length, "positions"),
        (model.sliding_window, "sliding window, whose attention is not modelled"),
    )
    return [
        Problem(
            path="workload.sequence_length",
            message=f"must be at most {limit}, the model's {why}; got {length}",
        )
        for limit, why in limits
        if limit is not None and length > limit
    ]
