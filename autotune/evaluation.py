"""The result of measuring configs: one `Evaluation`, or `Evaluations` for many at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Status(StrEnum):
    """How an evaluation ended."""

    OK = "ok"
    FAILED = "failed"
    STOPPED = "stopped"
    """Ended early because `report` answered "stop"."""


class FailureKind(StrEnum):
    """Why a measurement failed; each kind teaches the search something else."""

    OOM = "oom"
    TIMEOUT = "timeout"
    INVALID = "invalid"
    CRASH = "crash"
    INFRASTRUCTURE = "infrastructure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What one measurement of one config gave.

    Attributes:
        status: ``ok`` with finite metrics and constraints, or how it ended otherwise.
        metrics: Finite values by metric name; empty unless ``ok``.
        constraints: Finite values by constraint name, feasible when <= 0; empty unless ``ok``.
        cost_s: What the measurement cost, in seconds.
        failure_kind: Set exactly when ``failed``.
        reason: Why it failed or stopped, in words a user can act on.
        breakdown: Where the time went, in seconds by term.
        attributes: Anything else worth keeping, as JSON values.
    """

    status: Status = Status.OK
    metrics: Mapping[str, float] = field(default_factory=dict)
    constraints: Mapping[str, float] = field(default_factory=dict)
    cost_s: float = 0.0
    failure_kind: FailureKind | None = None
    reason: str = ""
    breakdown: Mapping[str, float] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.status is Status.FAILED) != (self.failure_kind is not None):
            raise ValueError(
                f"a failure kind must be given exactly when the status is 'failed', got status "
                f"{self.status.value!r} with kind {self.failure_kind!r}"
            )
        for group in (self.metrics, self.constraints, self.breakdown, {"cost_s": self.cost_s}):
            for name, value in group.items():
                if not math.isfinite(value):
                    raise ValueError(
                        f"{name} must be finite, got {value}; report a failure instead"
                    )

    @property
    def ok(self) -> bool:
        """Whether the measurement gave values."""
        return self.status is Status.OK

    @property
    def feasible(self) -> bool:
        """Whether it gave values and every constraint holds."""
        return self.ok and all(value <= 0 for value in self.constraints.values())

    @classmethod
    def failure(cls, kind: FailureKind, reason: str, *, cost_s: float = 0.0) -> Evaluation:
        """A measurement that gave no values."""
        return cls(status=Status.FAILED, failure_kind=kind, reason=reason, cost_s=cost_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluations:
    """What one vectorised call gave for n configs.

    Attributes:
        metrics: Arrays of shape (n,) by metric name, finite where ``ok``.
        constraints: Arrays of shape (n,) by constraint name, finite where ``ok``.
        ok: Shape (n,), False where the backend refuses the config.
        reasons: Why a row is refused, by row number.
        breakdown: Arrays of shape (n,) in seconds by term; empty unless asked for.
        cost_s: Seconds the whole call took.
    """

    metrics: Mapping[str, NDArray[np.float64]]
    constraints: Mapping[str, NDArray[np.float64]]
    ok: NDArray[np.bool_]
    reasons: Mapping[int, str] = field(default_factory=dict)
    breakdown: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    cost_s: float = 0.0

    def __len__(self) -> int:
        return len(self.ok)

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Shape (n,): measured and every constraint <= 0."""
        mask = self.ok.copy()
        for values in self.constraints.values():
            mask &= values <= 0
        return mask

    def row(self, i: int) -> Evaluation:
        """The i-th result on its own."""
        cost_s = self.cost_s / max(len(self), 1)
        if not self.ok[i]:
            reason = self.reasons.get(i, "refused by the backend")
            return Evaluation.failure(FailureKind.INVALID, reason, cost_s=cost_s)
        return Evaluation(
            metrics={name: float(values[i]) for name, values in self.metrics.items()},
            constraints={name: float(values[i]) for name, values in self.constraints.items()},
            breakdown={name: float(values[i]) for name, values in self.breakdown.items()},
            cost_s=cost_s,
        )
