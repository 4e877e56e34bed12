"""What is kept of a study and of a trial: plain JSON in one packed attribute each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

STUDY_KEY = "autotune:study"
"""Study attribute with everything the study was opened with."""

QUEUE_KEY = "autotune:queue"
"""Study attribute with the configs that wait for a slot, oldest first."""

TRIAL_KEY = "autotune:trial"
"""Trial attribute with the claim and, once settled, the result."""

HEARTBEAT_KEY = "autotune:heartbeat"
"""Trial attribute with a counter that rises while an evaluation lasts."""

CONSTRAINTS_KEY = "constraints"
"""Optuna's list of constraint values; the only form that optuna-dashboard shows."""

METRIC_NAMES_KEY = "study:metric_names"
"""Optuna's study attribute with the names of the values."""

State = Literal["RUNNING", "COMPLETE", "PRUNED", "FAIL", "WAITING"]
Direction = Literal["MINIMIZE", "MAXIMIZE"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRow:
    """A study as stored.

    Attributes:
        study_id: Optuna's number of it in this storage.
        name: Its name in this storage.
        packed: The content of `STUDY_KEY`.
    """

    study_id: int
    name: str
    packed: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    """A trial as stored.

    Attributes:
        trial_id: Optuna's number of it in this storage.
        number: Optuna's number of it in its study.
        state: Optuna's state.
        started: UTC.
        finished: UTC; None while running.
        packed: The content of `TRIAL_KEY`.
    """

    trial_id: int
    number: int
    state: State
    started: datetime | None
    finished: datetime | None
    packed: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTrial:
    """A trial to be inserted.

    Attributes:
        state: Running for a claim; complete or failed for what is taken over.
        params: Optuna's internal number of each parameter.
        distributions: Optuna's JSON text of each parameter's distribution.
        packed: The content of `TRIAL_KEY`.
        values: The optimised metrics, in order, where there is a result.
        constraints: The constraint values, in order, where there is a result.
        started: UTC; now when not given.
        finished: UTC; now when not given and not running.
    """

    state: State
    params: Mapping[str, float]
    distributions: Mapping[str, str]
    packed: Mapping[str, Any]
    values: tuple[float, ...] = ()
    constraints: tuple[float, ...] | None = None
    started: datetime | None = None
    finished: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStudy:
    """A study to be inserted.

    Attributes:
        name: Unique in the storage.
        directions: One for each value.
        metric_names: Names of the values, for dashboards.
        packed: The content of `STUDY_KEY`.
        trials: What it starts with.
    """

    name: str
    directions: tuple[Direction, ...]
    metric_names: tuple[str, ...]
    packed: Mapping[str, Any]
    trials: tuple[NewTrial, ...] = field(default=(), repr=False)


def dumps(value: Any) -> str:
    """JSON as stored; NaN and infinity are refused."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def naive_utc(moment: datetime | None) -> datetime | None:
    """A time as Optuna's tables keep it."""
    return None if moment is None else moment.astimezone(UTC).replace(tzinfo=None)


def aware_utc(moment: datetime | None) -> datetime | None:
    """A time of Optuna's tables with its zone."""
    return None if moment is None else moment.replace(tzinfo=UTC)
