"""A Bayesian/black-box autotuner: search spaces, objectives, studies and their history."""

from __future__ import annotations

from autotune.design_point import DesignPoint
from autotune.errors import (
    AutotuneError,
    InvalidInput,
    Problem,
    StorageRefused,
    StudyMismatch,
    UnknownName,
    Unsupported,
)
from autotune.evaluation import Evaluation, Evaluations, FailureKind, Status
from autotune.metric import Metric
from autotune.objective import BatchObjective, Columns, Config, Objective, Report, objective
from autotune.trial import Origin, Trial, TrialState

__all__ = [
    "AutotuneError",
    "BatchObjective",
    "Columns",
    "Config",
    "DesignPoint",
    "Evaluation",
    "Evaluations",
    "FailureKind",
    "InvalidInput",
    "Metric",
    "Objective",
    "Origin",
    "Problem",
    "Report",
    "Status",
    "StorageRefused",
    "StudyMismatch",
    "Trial",
    "TrialState",
    "UnknownName",
    "Unsupported",
    "objective",
]
