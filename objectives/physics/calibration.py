"""What machines and trainers reach of their nominal figures, from the table beside this file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

OTHER = "other"
"""The entry for accelerators that nobody has measured here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorCalibration:
    """What one kind of accelerator reaches of its data sheet.

    Attributes:
        name: The entry of the table; `OTHER` where all of it is assumed.
        cores: Streaming multiprocessors.
        matmul_burst: Best matrix product over peak, by precision.
        sustained: Of that, what GPUs hold in training.
        spread: Standard deviation of that between GPUs, over their mean.
        attention_forward: Of peak that a fused attention kernel reaches forward.
        attention_backward: The same backward.
    """

    name: str
    cores: int
    matmul_burst: Mapping[str, float]
    sustained: float
    spread: float
    attention_forward: float
    attention_backward: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCalibration:
    """Constants of kernels; sources stand in ``calibration.toml``.

    Attributes:
        wave_scale: Waves of tiles at which a product has 63 % of its full rate.
        inner_half: Inner elements that cost as much as filling and draining a tile's pipeline.
        launch_s: Per kernel.
        memory_efficiency: Of the nominal memory bandwidth that streaming kernels reach.
        host_link_efficiency: Of the host link's nominal bandwidth.
        host_memory_efficiency: Of the host memory's nominal bandwidth.
    """

    wave_scale: float
    inner_half: float
    launch_s: float
    memory_efficiency: float
    host_link_efficiency: float
    host_memory_efficiency: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftwareCalibration:
    """Constants of the trainer; sources stand in ``calibration.toml``.

    Attributes:
        overlap_slowdown: Seconds that compute loses per second of communication beside it.
        async_tensor_hidden: Share of tensor-parallel traffic that asynchronous TP can hide.
        expert_imbalance: Tokens of the busiest expert rank over the mean.
        usable_memory: Share of device memory that a job can fill.
        fixed_memory_bytes: Of every process, whatever it trains.
    """

    overlap_slowdown: float
    async_tensor_hidden: float
    expert_imbalance: float
    usable_memory: float
    fixed_memory_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The whole table."""

    accelerators: Mapping[str, AcceleratorCalibration]
    kernel: KernelCalibration
    software: SoftwareCalibration

    def accelerator(self, name: str) -> AcceleratorCalibration:
        """The entry whose name starts the accelerator's, or `OTHER`.

        Args:
            name: Such as ``H100-SXM``.
        """
        known = [entry for entry in self.accelerators if name.upper().startswith(entry)]
        return self.accelerators[max(known, key=len) if known else OTHER]


@cache
def calibration() -> Calibration:
    """The shipped table."""
    text = Path(__file__).with_name("calibration.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    return Calibration(
        accelerators={name: _accelerator(name, row) for name, row in table["accelerator"].items()},
        kernel=KernelCalibration(**_values(KernelCalibration, table["kernel"])),
        software=SoftwareCalibration(**_values(SoftwareCalibration, table["software"])),
    )


def _accelerator(name: str, row: Mapping[str, Any]) -> AcceleratorCalibration:
    known = {field.name for field in fields(AcceleratorCalibration)}
    return AcceleratorCalibration(name=name, **{k: v for k, v in row.items() if k in known})


def _values(kind: type, rows: Mapping[str, Any]) -> dict[str, float]:
    return {field.name: float(rows[field.name]["value"]) for field in fields(kind)}
