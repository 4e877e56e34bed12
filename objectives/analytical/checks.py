"""Which combinations of knobs are not modelled, or are no valid job at all; each by name."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from objectives.analytical.columns import Column, Refusals
from objectives.analytical.setup import Setup
from objectives.physics.layout import DEGREE_COLUMNS, split_order
from objectives.physics.schedules import (
    DUAL_PIPE_V,
    GPIPE,
    INTERLEAVED,
    INTERLEAVED_ZB,
    NONE,
    ONE_F_ONE_B,
    SCHEDULES,
    ZB_2P,
    ZB_H1,
    ZB_V,
    schedule_kinds,
)

_ONE_CHUNK, _IN_ROUNDS = np.zeros((2, len(SCHEDULES) + 1), dtype=np.bool_)
_ONE_CHUNK[[NONE, GPIPE, ONE_F_ONE_B, ZB_H1, ZB_2P]] = True
_IN_ROUNDS[[INTERLEAVED, INTERLEAVED_ZB]] = True


def refuse_rows(setup: Setup, columns: Mapping[str, Column], refusals: Refusals) -> None:
    """Note every row that cannot be measured, with the first reason.

    Args:
        setup: The scenario.
        columns: Every knob, each value of the right kind.
        refusals: Takes the rows.
    """
    if setup.refusal:
        refusals.refuse(np.ones(refusals.size, dtype=np.bool_), setup.refusal)
    _refuse_layout(setup, columns, refusals)
    _refuse_split_of_work(setup, columns, refusals)
    _refuse_pipeline(setup, columns, refusals)
    _refuse_machines(setup, columns, refusals)


def _refuse_layout(setup: Setup, columns: Mapping[str, Column], refusals: Refusals) -> None:
    order = columns["dimension_order"]
    bad = [text for text in set(order.tolist()) if not _is_order(text)]
    if bad:
        refusals.refuse(
            np.isin(order, bad),
            "dimension_order: must name each of tp, cp, pp, shard, replicate once, joined by "
            "'-', got {order!r}",
            order=order,
        )
    degrees = [columns[knob].astype(np.float64) for knob in DEGREE_COLUMNS.values()]
    world = np.prod(np.stack(degrees), axis=0)
    gpus = setup.cluster.gpus
    refusals.refuse(
        world != gpus,
        "tensor_parallel_degree: times context, pipeline, shard and replicate degrees must be "
        f"the cluster's {gpus} GPUs, got {{world:.0f}}",
        world=world,
    )


def _is_order(text: str) -> bool:
    try:
        split_order(text)
    except ValueError:
        return False
    return True


def _refuse_split_of_work(setup: Setup, columns: Mapping[str, Column], refusals: Refusals) -> None:
    tp, cp = columns["tensor_parallel_degree"], columns["context_parallel_degree"]
    shard = columns["data_parallel_shard_degree"]
    replicate = columns["data_parallel_replicate_degree"]
    attention = setup.transformer.attention
    heads, kv_heads = attention.heads, attention.kv_heads
    refusals.refuse(
        (heads % tp != 0) | ((kv_heads % tp != 0) & (tp % kv_heads != 0)),
        f"tensor_parallel_degree: must divide the {heads} query heads, and divide the {kv_heads} "
        "key-value heads or be a multiple of them, got {tp}",
        tp=tp,
    )
    pieces = 2.0 * cp * tp
    refusals.refuse(
        (setup.sequence_length % np.maximum(pieces, 1) != 0) & (cp * tp > 1),
        f"context_parallel_degree: twice it times the tensor degree must divide the sequence of "
        f"{setup.sequence_length} tokens, got {{cp}} x {{tp}}",
        cp=cp,
        tp=tp,
    )
    per_step = columns["microbatch_size"].astype(np.float64) * shard * replicate
    refusals.refuse(
        setup.sequences % per_step != 0,
        f"microbatch_size: times the data-parallel ranks must divide the {setup.sequences} "
        "sequences of a step, got {per_step:.0f}",
        per_step=per_step,
    )
    _refuse_experts(setup, columns, refusals)


def _refuse_experts(setup: Setup, columns: Mapping[str, Column], refusals: Refusals) -> None:
    expert = columns["expert_parallel_degree"]
    experts = setup.transformer.experts
    if experts is None:
        reason = "expert_parallel_degree: must be 1 for a model without experts, got {expert}"
        refusals.refuse(expert > 1, reason, expert=expert)
        return
    holders = columns["data_parallel_shard_degree"].astype(np.float64)
    holders = holders * columns["context_parallel_degree"]
    refusals.refuse(
        (experts.count % expert != 0) | (holders % expert != 0),
        f"expert_parallel_degree: must divide the {experts.count} experts and the {{holders:.0f}} "
        "shard and context ranks, got {expert}",
        holders=holders,
        expert=expert,
    )


def _refuse_pipeline(setup: Setup, columns: Mapping[str, Column], refusals: Refusals) -> None:
    names = columns["pipeline_parallel_schedule"]
    kind = schedule_kinds(names)
    pp, chunks = columns["pipeline_parallel_degree"], columns["virtual_stages_per_rank"]
    refusals.refuse(
        (kind == NONE) != (pp == 1),
        "pipeline_parallel_schedule: must be 'none' for one pipeline rank and only then, got "
        "{names!r} with {pp}",
        names=names,
        pp=pp,
    )
    one, two = _ONE_CHUNK[kind], kind >= ZB_V
    refusals.refuse(
        np.where(one, chunks != 1, np.where(two, chunks != 2, chunks < 2)),
        "virtual_stages_per_rank: must be 1 for GPipe, 1F1B, ZBH1, ZB2P and none, 2 for V "
        "schedules, 2 or more for others; got {chunks} with {names!r}",
        chunks=chunks,
        names=names,
    )
    data = columns["data_parallel_shard_degree"] * columns["data_parallel_replicate_degree"]
    count = setup.sequences // np.maximum(data * columns["microbatch_size"], 1)
    rounds = _IN_ROUNDS[kind]
    refusals.refuse(
        (rounds & (count % pp != 0))
        | ((kind == DUAL_PIPE_V) & (count < 2 * pp))
        | (two & (count < pp)),
        "pipeline_parallel_schedule: interleaved schedules need a multiple of the pipeline ranks "
        "of microbatches, V schedules as many, DualPipeV twice as many; got {count} with "
        "{names!r} on {pp} ranks",
        count=count,
        names=names,
        pp=pp,
    )
    _refuse_layers(setup, columns, refusals)


def _refuse_layers(setup: Setup, columns: Mapping[str, Column], refusals: Refusals) -> None:
    first = columns["pipeline_parallel_first_stage_less_layers"]
    last = columns["pipeline_parallel_last_stage_less_layers"]
    stages = columns["pipeline_parallel_degree"] * columns["virtual_stages_per_rank"]
    slots = setup.transformer.layers + first + last
    most = slots // np.maximum(stages, 1)
    alone = (stages == 1) & (first + last > 0)
    refusals.refuse(
        (slots % np.maximum(stages, 1) != 0) | (first > most) | (last > most) | alone,
        f"virtual_stages_per_rank: {setup.transformer.layers} layers and those that the first "
        "and last stage lack must divide evenly over all stages, none lacking more than it would "
        "have; got {stages} stages lacking {first} and {last}",
        stages=stages,
        first=first,
        last=last,
    )


def _refuse_machines(setup: Setup, columns: Mapping[str, Column], refusals: Refusals) -> None:
    accelerator = setup.accelerator
    if "fp8" not in accelerator.peak_flops_per_s:
        reason = f"precision: {accelerator.name} has no fp8 peak; use bf16"
        refusals.refuse(columns["precision"] == "fp8", reason)
    if setup.cluster.host is None:
        for knob in ("activation_offload_fraction", "optimizer_offload_fraction"):
            reason = f"{knob}: the cluster has no [link.host]; give it or use 0, got {{share}}"
            refusals.refuse(columns[knob] > 0, reason, share=columns[knob])
    transport = columns["transport"]
    in_order = (transport == "roce_go_back_n") | (transport == "tcp")
    refusals.refuse(
        (columns["load_balancing"] == "spray") & in_order,
        "load_balancing: spraying needs a transport that takes packets out of order, got "
        "{transport!r}",
        transport=transport,
    )
