"""The analytical model as a backend of the tuner."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autotune import (
    Columns,
    Config,
    DesignPoint,
    Evaluation,
    Evaluations,
    FailureKind,
    Metric,
    Report,
)
from objectives.analytical.model import DEVICE_MEMORY, HOST_MEMORY, Result, evaluate
from objectives.analytical.setup import Setup, make_setup
from objectives.scenario import scenario

VERSION = "1"

METRICS = (
    Metric(name="step_time_s", unit="s", label="step time"),
    Metric(
        name="long_link_bandwidth_bytes_per_s", unit="byte/s", label="long-link bandwidth needed"
    ),
    Metric(name="long_link_bytes", unit="byte", label="long-link traffic per direction and step"),
    Metric(name="peak_memory_bytes", unit="byte", label="peak memory"),
    Metric(name="mfu", direction="maximize", label="model FLOPs utilisation"),
    Metric(name="tokens_per_s", unit="token/s", direction="maximize", label="throughput"),
    # What a config gives up for less traffic is stated, never hidden in its time.
    Metric(name="synchronisation_interval_steps", label="steps between synchronisations"),
    Metric(
        name="gradient_exchange_bits",
        unit="bit",
        direction="maximize",
        label="bits per exchanged gradient element",
    ),
)
ENERGY = Metric(name="energy_j", unit="J", label="energy per step at full power")
COST = Metric(name="cost_usd", unit="USD", label="cost per step")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyticalObjective:
    """Closed-form step time, memory and long-link needs of a training configuration.

    Attributes:
        setup: The scenario it measures in.
        name: ``analytical``.
        version: Changes whenever results would.
        deterministic: Always.
        cost_s: Of one config on its own.
    """

    setup: Setup
    name: str = "analytical"
    version: str = VERSION
    deterministic: bool = True
    cost_s: float = 0.003

    @property
    def metrics(self) -> Sequence[Metric]:
        """What it measures; energy and cost where the accelerator has figures for them."""
        accelerator = self.setup.accelerator
        energy = (ENERGY,) if accelerator.tdp_w is not None else ()
        cost = (COST,) if accelerator.price_usd_per_s is not None else ()
        return (*METRICS, *energy, *cost)

    @property
    def constraints(self) -> Sequence[str]:
        """Bytes over what fits: on the device, and on the host where it is known."""
        host = self.setup.cluster.host
        return (DEVICE_MEMORY,) if host is None else (DEVICE_MEMORY, HOST_MEMORY)

    def evaluate(self, config: Config, *, seed: int, report: Report | None = None) -> Evaluation:
        """Measure one config, with its breakdown and memory by use.

        Args:
            config: Values by knob; never changed.
            seed: Not used, nothing is drawn.
            report: Not used, there are no intermediate values.
        """
        start = time.perf_counter()
        if not config:
            return Evaluation.failure(FailureKind.INVALID, "the config is empty")
        result = evaluate(self.setup, {name: _one(value) for name, value in config.items()})
        row = _evaluations(result, breakdown=True).row(0)
        if row.ok:
            row = replace(
                row,
                breakdown={k: v for k, v in row.breakdown.items() if v},
                attributes=_attributes(self.setup, result),
            )
        return replace(row, cost_s=time.perf_counter() - start)

    def evaluate_batch(self, columns: Columns, *, breakdown: bool = False) -> Evaluations:
        """Measure n configs given as arrays of shape (n,), one per parameter."""
        start = time.perf_counter()
        result = evaluate(self.setup, columns)
        found = _evaluations(result, breakdown=breakdown)
        return replace(found, cost_s=time.perf_counter() - start)


def analytical(design_point: DesignPoint) -> AnalyticalObjective:
    """The analytical backend for a scenario.

    Args:
        design_point: Made by `objectives.scenario.design_point`.

    Raises:
        InvalidInput: With every problem of its content.
    """
    return AnalyticalObjective(setup=make_setup(scenario(design_point)))


def _one(value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, bool | int | float | str | np.generic):
        array = np.asarray([value])
        if array.dtype.kind in "biufU":
            return array
    boxed = np.empty(1, dtype=object)
    boxed[0] = value
    return boxed


def _evaluations(result: Result, *, breakdown: bool) -> Evaluations:
    return Evaluations(
        metrics=result.metrics,
        constraints=result.constraints,
        ok=result.ok,
        reasons=result.reasons,
        breakdown=result.terms if breakdown else {},
    )


def _attributes(setup: Setup, result: Result) -> Mapping[str, Any]:
    """Assumptions and memory by use, for whoever reads one result."""
    assumed = setup.reach.name
    return {
        "memory_bytes": {name: float(values[0]) for name, values in result.memory.items()},
        "model_flops_per_token": setup.model_flops_per_token,
        "usable_memory_fraction": setup.calibration.software.usable_memory,
        "freed_early": [
            "input and output of every pipeline stage",
            "inputs of normalisations (their backward pass uses the output)",
            "attention scores (fused attention)",
            "logits after their backward pass",
        ],
        "calibration": f"constants of {assumed}",
    }
