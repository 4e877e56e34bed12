"""The analytical model: arrays of configs in, arrays of metrics out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from objectives.analytical.batch import make_batch
from objectives.analytical.breakdown import breakdown
from objectives.analytical.checks import refuse_rows
from objectives.analytical.collectives import make_traffic
from objectives.analytical.columns import Column, Refusals, read_columns
from objectives.analytical.cut import crossing_bytes, needed_capacity
from objectives.analytical.footprint import host_bytes, memory_parts, peak_bytes
from objectives.analytical.parts import make_parts, rank_loads
from objectives.analytical.setup import Setup
from objectives.analytical.step import edges, steady
from objectives.analytical.terms import merge, total
from objectives.analytical.times import make_plan, make_times
from objectives.physics.arrays import BoolArray, FloatArray

DEVICE_MEMORY = "peak_memory_over_hbm_bytes"
"""Constraint: peak memory less what of the device's memory can be used."""

HOST_MEMORY = "offloaded_memory_over_host_bytes"
"""Constraint, where hosts are known: offloaded bytes less a GPU's share of the host's memory."""

CHUNK = 4096
"""Rows computed at a time: large enough to amortise calls, small enough for the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What the model says of n configs.

    Attributes:
        metrics: Arrays of shape (n,) by name.
        constraints: Arrays of shape (n,) by name.
        terms: Seconds by term of the breakdown, arrays of shape (n,).
        memory: Bytes by use on the fullest rank, arrays of shape (n,).
        ok: Rows that were measured.
        reasons: Why the others were not, by row.
    """

    metrics: Mapping[str, FloatArray]
    constraints: Mapping[str, FloatArray]
    terms: Mapping[str, FloatArray]
    memory: Mapping[str, FloatArray]
    ok: BoolArray
    reasons: Mapping[int, str]


def evaluate(setup: Setup, columns: Mapping[str, Column], *, chunk: int = CHUNK) -> Result:
    """Measure n configs.

    Args:
        setup: The scenario.
        columns: Arrays of shape (n,) by knob, of any content.
        chunk: Rows at a time.
    """
    size = len(next(iter(columns.values()))) if columns else 0
    parts = [
        _evaluate_rows(setup, {k: np.asarray(v)[at : at + chunk] for k, v in columns.items()})
        for at in range(0, max(size, 1), chunk)
    ]
    reasons = {
        i * chunk + row: reason
        for i, part in enumerate(parts)
        for row, reason in part.reasons.items()
    }
    return Result(
        metrics=_joined([(len(part.ok), part.metrics) for part in parts]),
        constraints=_joined([(len(part.ok), part.constraints) for part in parts]),
        terms=_joined([(len(part.ok), part.terms) for part in parts]),
        memory=_joined([(len(part.ok), part.memory) for part in parts]),
        ok=np.concatenate([part.ok for part in parts]),
        reasons=reasons,
    )


def _joined(parts: Sequence[tuple[int, Mapping[str, FloatArray]]]) -> dict[str, FloatArray]:
    """Chunks put together; a term that a chunk does not have is zero there."""
    names = dict.fromkeys(name for _, values in parts for name in values)
    return {
        name: np.concatenate([values.get(name, np.zeros(size)) for size, values in parts])
        for name in names
    }


def _evaluate_rows(setup: Setup, columns: Mapping[str, Column]) -> Result:
    size = len(next(iter(columns.values()))) if columns else 0
    refusals = Refusals(size=size)
    clean = read_columns(columns, refusals)
    refuse_rows(setup, clean, refusals)
    good = np.flatnonzero(refusals.ok)
    found = _measure(setup, {name: column[good] for name, column in clean.items()})

    def spread(values: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        wide = {}
        for name, value in values.items():
            wide[name] = np.zeros(size)
            wide[name][good] = value
        return wide

    return Result(
        metrics=spread(found.metrics),
        constraints=spread(found.constraints),
        terms=spread(found.terms),
        memory=spread(found.memory),
        ok=refusals.ok,
        reasons=refusals.reasons,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    metrics: Mapping[str, FloatArray]
    constraints: Mapping[str, FloatArray]
    terms: Mapping[str, FloatArray]
    memory: Mapping[str, FloatArray]


def _measure(setup: Setup, columns: Mapping[str, Column]) -> _Found:
    """Rows that have been checked."""
    batch = make_batch(setup, columns)
    parts = make_parts(setup, batch)
    planned = make_traffic(setup, batch)
    plan = make_plan(setup, batch, planned)
    times, shares = make_times(plan)
    core = steady(setup, batch, parts, planned, times)
    terms = edges(setup, batch, planned, times, core)
    merge(terms, core.terms)
    time_s = total(terms.values())
    ranks = rank_loads(setup, batch)
    by_use = memory_parts(setup, batch, parts, planned, ranks)
    peak = peak_bytes(by_use)
    fullest = np.argmax(total(by_use.values()), axis=0), np.arange(len(batch))
    usable = setup.accelerator.memory_bytes * setup.calibration.software.usable_memory
    constraints = {DEVICE_MEMORY: peak - usable}
    host = setup.cluster.host
    if host is not None:
        used = host_bytes(setup, batch, parts, planned, ranks)
        constraints[HOST_MEMORY] = used - host.memory_bytes
    crossing = crossing_bytes(setup, batch, planned, plan)
    metrics = {
        "step_time_s": time_s,
        "long_link_bandwidth_bytes_per_s": needed_capacity(
            setup, batch, parts, planned, plan, times, core, crossing=crossing
        ),
        "long_link_bytes": crossing,
        "peak_memory_bytes": peak,
        "mfu": _utilisation(setup, time_s),
        "tokens_per_s": setup.tokens / time_s,
        "synchronisation_interval_steps": batch.local_steps,
        "gradient_exchange_bits": 8 * batch.sent_gradient_bytes,
    }
    return _Found(
        metrics=metrics | _prices(setup, time_s),
        constraints=constraints,
        terms=breakdown(terms, shares),
        memory={name: value[fullest] for name, value in by_use.items()},
    )


def _utilisation(setup: Setup, time_s: FloatArray) -> FloatArray:
    """Counted FLOPs over the BF16 peak of all GPUs, in whatever precision products run."""
    peak = setup.accelerator.peak_flops_per_s["bf16"] * setup.cluster.gpus
    return setup.model_flops_per_token * setup.tokens / time_s / peak


def _prices(setup: Setup, time_s: FloatArray) -> dict[str, FloatArray]:
    """Energy and cost per step where the accelerator has figures; full power throughout."""
    gpus, accelerator = setup.cluster.gpus, setup.accelerator
    prices = {}
    if accelerator.tdp_w is not None:
        prices["energy_j"] = gpus * accelerator.tdp_w * time_s
    if accelerator.price_usd_per_s is not None:
        prices["cost_usd"] = gpus * accelerator.price_usd_per_s * time_s
    return prices
