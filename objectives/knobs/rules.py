"""Which combinations of knobs are valid, known before anything is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution

from autotune.space import Condition, Constraint, Divides, Predicate, Product
from objectives.knobs.domains import (
    DIMENSION_ORDERS,
    SCHEDULES_OF_MORE_STAGES,
    SCHEDULES_OF_ONE_STAGE,
    SCHEDULES_OF_TWO_STAGES,
)
from objectives.physics.layout import DEGREE_COLUMNS, split_order
from objectives.scenario import Scenario

Column = NDArray[Any]
Rule = Callable[..., NDArray[np.bool_]]

TENSOR = "tensor_parallel_degree"
CONTEXT = "context_parallel_degree"
PIPELINE = "pipeline_parallel_degree"
SHARD = "data_parallel_shard_degree"
REPLICATE = "data_parallel_replicate_degree"
EXPERT = "expert_parallel_degree"
SCHEDULE = "pipeline_parallel_schedule"
VIRTUAL = "virtual_stages_per_rank"
FIRST_LESS = "pipeline_parallel_first_stage_less_layers"
LAST_LESS = "pipeline_parallel_last_stage_less_layers"


def constraints(
    scenario: Scenario, parameters: Mapping[str, BaseDistribution]
) -> tuple[Constraint, ...]:
    """The rules of one scenario.

    Args:
        scenario: The model, cluster and workload.
        parameters: The knobs.
    """
    model = scenario.model
    sequences = scenario.workload.global_batch_sequences
    rules: list[Constraint] = [
        Product(
            name="the degrees use every GPU",
            factors=(TENSOR, CONTEXT, PIPELINE, SHARD, REPLICATE),
            equals=scenario.cluster.gpus,
        ),
        Predicate(
            name="each placement has one order",
            reads=("dimension_order", TENSOR, CONTEXT, PIPELINE, SHARD, REPLICATE),
            holds=_canonical_order,
            description=(
                "orders that differ only in dimensions of degree 1 lay out the same job; the "
                f"first of {', '.join(DIMENSION_ORDERS)} stands for all"
            ),
        ),
        Divides(
            name="microbatches are whole",
            divisor=("microbatch_size", SHARD, REPLICATE),
            dividend=sequences,
        ),
        Predicate(
            name="heads divide over tensor ranks",
            reads=(TENSOR,),
            holds=_heads(model.num_heads, model.num_kv_heads),
            description=(
                f"{model.num_heads} query heads divide over the tensor ranks; {model.num_kv_heads} "
                "key-value heads too, or each is replicated over equally many"
            ),
        ),
        Divides(
            name="sequences divide over context and tensor ranks",
            divisor=(CONTEXT, TENSOR),
            dividend=max(scenario.workload.sequence_length // 2, 1),
        ),
        Predicate(
            name="layers divide over stages",
            reads=(PIPELINE, VIRTUAL, FIRST_LESS, LAST_LESS),
            holds=_layers(model.num_layers),
            description=(
                f"{model.num_layers} layers and those that the first and last stage lack divide "
                "evenly over all stages, and no stage lacks more than it would have"
            ),
        ),
        Predicate(
            name="the schedule fits the stages",
            reads=(SCHEDULE, PIPELINE, VIRTUAL),
            holds=_stages,
            description=(
                "'none' without a pipeline and only then; one stage per rank for "
                f"{', '.join(SCHEDULES_OF_ONE_STAGE)}; two for "
                f"{', '.join(SCHEDULES_OF_TWO_STAGES)}; two or more for "
                f"{', '.join(SCHEDULES_OF_MORE_STAGES)}"
            ),
        ),
        Predicate(
            name="the schedule fits the microbatches",
            reads=(SCHEDULE, PIPELINE, "microbatch_size", SHARD, REPLICATE),
            holds=_microbatches(sequences),
            description=(
                "Interleaved1F1B and InterleavedZeroBubble take a multiple of the pipeline degree "
                "(Megatron-LM); DualPipeV at least twice it, the other V schedules at least it"
            ),
        ),
        Predicate(
            name="spraying needs a transport that takes packets out of order",
            reads=("transport", "load_balancing"),
            holds=_in_order,
            description="go-back-N and TCP take a packet out of order for a loss",
        ),
    ]
    if model.moe:
        rules.append(
            Divides(
                name="expert ranks are shard ranks", divisor=(EXPERT,), dividend=(SHARD, CONTEXT)
            )
        )
    return tuple(rule for rule in rules if set(rule.reads) <= set(parameters))


def conditions(parameters: Mapping[str, BaseDistribution]) -> tuple[Condition, ...]:
    """Knobs that matter only for some values of others.

    Args:
        parameters: The knobs with their values.
    """
    several = {
        knob: tuple(value for value in _choices(parameters, knob) if value > 1)
        for knob in (TENSOR, PIPELINE, SHARD)
    }
    pipelined = {PIPELINE: several[PIPELINE]}
    found = (
        Condition(parameter=FIRST_LESS, active_when=pipelined, otherwise=0),
        Condition(parameter=LAST_LESS, active_when=pipelined, otherwise=0),
        Condition(parameter="async_pipeline_p2p", active_when=pipelined, otherwise=False),
        Condition(
            parameter="p2p_scatter_gather",
            active_when={**pipelined, TENSOR: several[TENSOR]},
            otherwise=False,
        ),
        Condition(
            parameter="async_tensor_parallel",
            active_when={TENSOR: several[TENSOR]},
            otherwise=False,
        ),
        Condition(
            parameter="fsdp_reshard_after_forward",
            active_when={SHARD: several[SHARD]},
            otherwise="never",
        ),
        Condition(
            parameter="fsdp_prefetch_depth",
            active_when={"fsdp_reshard_after_forward": ("always",)},
            otherwise=1,
        ),
        Condition(
            parameter="cross_site_chunks",
            active_when={"collective_algorithm": ("hierarchical",)},
            otherwise=1,
        ),
        Condition(
            parameter="congestion_control",
            active_when={"transport": ("roce_go_back_n", "roce_selective_repeat", "erasure_coded")},
            otherwise="none",
        ),
    )
    return tuple(
        condition
        for condition in found
        if all(condition.active_when.values())
        and len(_choices(parameters, condition.parameter)) > 1
    )


def _choices(parameters: Mapping[str, BaseDistribution], knob: str) -> tuple[Any, ...]:
    distribution = parameters[knob]
    assert isinstance(distribution, CategoricalDistribution)
    return tuple(distribution.choices)


def _canonical_order(dimension_order: Column, **degrees: Column) -> NDArray[np.bool_]:
    present = {name: degrees[knob] > 1 for name, knob in DEGREE_COLUMNS.items()}
    laid_out = {order: _layout_code(order, present) for order in DIMENSION_ORDERS}
    holds = np.ones(len(dimension_order), dtype=np.bool_)
    for i, order in enumerate(DIMENSION_ORDERS):
        for earlier in DIMENSION_ORDERS[:i]:
            holds &= (dimension_order != order) | (laid_out[earlier] != laid_out[order])
    return holds


def _layout_code(order: str, present: Mapping[str, NDArray[np.bool_]]) -> NDArray[np.int64]:
    """A number for the sequence of dimensions that have more than one rank."""
    code = np.zeros(len(next(iter(present.values()))), dtype=np.int64)
    digits = {name: digit for digit, name in enumerate(DEGREE_COLUMNS, start=1)}
    for name in split_order(order):
        code = np.where(present[name], code * (len(digits) + 1) + digits[name], code)
    return code


def _heads(heads: int, kv_heads: int) -> Rule:
    def holds(tensor_parallel_degree: Column) -> NDArray[np.bool_]:
        tp = tensor_parallel_degree
        return np.asarray((heads % tp == 0) & ((kv_heads % tp == 0) | (tp % kv_heads == 0)))

    return holds


def _layers(layers: int) -> Rule:
    def holds(**columns: Column) -> NDArray[np.bool_]:
        stages = columns[PIPELINE] * columns[VIRTUAL]
        first, last = columns[FIRST_LESS], columns[LAST_LESS]
        slots = layers + first + last
        most = slots // stages
        alone = (stages == 1) & (first + last > 0)
        return np.asarray((slots % stages == 0) & (first <= most) & (last <= most) & ~alone)

    return holds


def _stages(**columns: Column) -> NDArray[np.bool_]:
    schedule, pipeline, virtual = columns[SCHEDULE], columns[PIPELINE], columns[VIRTUAL]
    none = schedule == "none"
    count = np.select(
        [
            none | np.isin(schedule, SCHEDULES_OF_ONE_STAGE),
            np.isin(schedule, SCHEDULES_OF_TWO_STAGES),
        ],
        [virtual == 1, virtual == 2],
        default=virtual >= 2,
    )
    return np.asarray((none == (pipeline == 1)) & count)


def _microbatches(sequences: int) -> Rule:
    def holds(**columns: Column) -> NDArray[np.bool_]:
        schedule, pipeline = columns[SCHEDULE], columns[PIPELINE]
        per_microbatch = columns["microbatch_size"] * columns[SHARD] * columns[REPLICATE]
        count = sequences // per_microbatch
        rounds = np.isin(schedule, ("Interleaved1F1B", "InterleavedZeroBubble"))
        return np.select(
            [rounds, schedule == "DualPipeV", np.isin(schedule, SCHEDULES_OF_TWO_STAGES)],
            [count % pipeline == 0, count >= 2 * pipeline, count >= pipeline],
            default=True,
        )

    return holds


def _in_order(transport: Column, load_balancing: Column) -> NDArray[np.bool_]:
    takes_any = np.isin(transport, ("roce_selective_repeat", "erasure_coded"))
    return np.asarray(takes_any | (load_balancing != "spray"))
