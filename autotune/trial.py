"""One line of a study's history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from autotune.evaluation import Evaluation


class TrialState(StrEnum):
    """Where a trial is; only ``complete`` and ``failed`` count in the budget."""

    RUNNING = "running"
    COMPLETE = "complete"
    FAILED = "failed"
    PRUNED = "pruned"
    VOID = "void"
    """Lost its slot to another worker, or its worker died: counts nowhere."""


class Origin(StrEnum):
    """Where a config came from."""

    BASELINE = "baseline"
    TRANSFER = "transfer"
    ENQUEUED = "enqueued"
    STARTUP = "startup"
    SAMPLER = "sampler"
    IMPORTED = "imported"
    REPEAT = "repeat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A config, how it was chosen and what measuring it gave.

    Attributes:
        number: Optuna's trial number in the study.
        slot: Position in the budget; None outside it (imported, repeats).
        attempt: 1, or 2 when the first try was interrupted.
        state: See `TrialState`.
        origin: Where the config came from.
        label: Name of a baseline or source study; empty otherwise.
        config: The whole config, in the space's own values.
        evaluation: What was measured; None while running or void.
        seed: Given to the objective.
        started: UTC; None when unknown.
        finished: UTC; None while running.
        attributes: Provenance and repair notes (versions, host, commit, …).
    """

    number: int
    slot: int | None
    attempt: int = 1
    state: TrialState
    origin: Origin
    label: str = ""
    config: Mapping[str, Any]
    evaluation: Evaluation | None = None
    seed: int = 0
    started: datetime | None = None
    finished: datetime | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def feasible(self) -> bool:
        """Measured, and every constraint holds."""
        return (
            self.state is TrialState.COMPLETE
            and self.evaluation is not None
            and self.evaluation.feasible
        )
