"""A Bayesian/black-box autotuner: search spaces, objectives, studies and their history."""

from __future__ import annotations

import autotune.cli.starting  # noqa: F401  # first: Ctrl-C may come during all that follows
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
from autotune.space import Compound, Condition, Divides, Predicate, Product, SearchSpace
from autotune.store import StudyStore
from autotune.study import Outcome, StoredStudy, Study, StudySpec, open_study, read_study
from autotune.trial import Origin, Trial, TrialState

__all__ = [
    "AutotuneError",
    "BatchObjective",
    "Columns",
    "Compound",
    "Condition",
    "Config",
    "DesignPoint",
    "Divides",
    "Evaluation",
    "Evaluations",
    "FailureKind",
    "InvalidInput",
    "Metric",
    "Objective",
    "Origin",
    "Outcome",
    "Predicate",
    "Problem",
    "Product",
    "Report",
    "SearchSpace",
    "Status",
    "StorageRefused",
    "StoredStudy",
    "Study",
    "StudyMismatch",
    "StudySpec",
    "StudyStore",
    "Trial",
    "TrialState",
    "UnknownName",
    "Unsupported",
    "objective",
    "open_study",
    "read_study",
]
