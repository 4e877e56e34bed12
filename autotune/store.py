"""The history of all studies on one storage: what there is, and what resembles a new scenario."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from autotune import pareto
from autotune.design_point import DesignPoint
from autotune.storage import Storage, open_storage
from autotune.study import StoredStudy, StudyRecord, list_studies, read_study
from autotune.trial import Trial, TrialState

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySummary:
    """A stored study at a glance.

    Attributes:
        record: What it was opened with.
        counts: Trials by state; claims that were given up are left out.
        n_feasible: Complete trials that break no constraint.
        best: The best feasible value of every metric; empty while nothing is feasible.
        last_finished: UTC; None before the first result.
    """

    record: StudyRecord
    counts: Mapping[TrialState, int]
    n_feasible: int
    best: Mapping[str, float]
    last_finished: datetime | None

    @property
    def name(self) -> str:
        """Its name in the storage, ``NAME@OBJECTIVE``."""
        return self.record.storage_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A stored study and how far its design point is from the one asked for.

    Attributes:
        study: The study.
        distance: 0 for the same content; else the root mean square over the features of their
            differences, each in units of the feature's spread over the storage. 1 is as far as
            stored design points are from each other.
        differences: There minus here, in the feature's own unit; features that only one of the
            two has are missing.
    """

    study: StudySummary
    distance: float
    differences: Mapping[str, float]


class StudyStore:
    """Reads every study of a storage; changes nothing.

    Attributes:
        storage: Where it reads.
    """

    def __init__(self, storage: str | Path | Storage) -> None:
        """Open a storage for reading.

        Args:
            storage: A path, a URL or an opened storage.

        Raises:
            StorageRefused: If there is none, or none that can be read safely.
        """
        self.storage = open_storage(storage, read_only=True)

    def __repr__(self) -> str:
        return f"<StudyStore {self.storage}>"

    def studies(self) -> list[StudySummary]:
        """All studies, oldest first."""
        return [self._summary(record) for record in self._records()]

    def find(
        self,
        *,
        name: str | None = None,
        design_point: str | DesignPoint | None = None,
        objective: str | None = None,
        tags: Collection[str] = (),
    ) -> list[StudySummary]:
        """The studies that fit everything asked for, oldest first.

        Args:
            name: As in the spec, or as in the storage.
            design_point: Its name, or one with the same content under any name.
            objective: The backend's name.
            tags: A study must have all of them.
        """
        return [
            self._summary(record)
            for record in self._records()
            if (name is None or name in (record.name, record.storage_name))
            and (design_point is None or _is_at(record, design_point))
            and (objective is None or objective == record.objective)
            and set(tags) <= set(record.tags)
        ]

    def nearest(
        self,
        design_point: DesignPoint,
        n: int = 3,
        *,
        objective: str | None = None,
        exclude: Collection[str] = (),
    ) -> list[Match]:
        """The studies whose design points resemble one most, nearest first.

        Args:
            design_point: What is asked about; need not be stored.
            n: How many at most.
            objective: Only studies of this backend.
            exclude: Names in the storage to leave out, such as the new study's own.

        Returns:
            Only studies with a feasible trial: the others have nothing to hand on. Of equally
            near ones the newest comes first.
        """
        records = [
            record
            for record in self._records()
            if record.storage_name not in exclude and objective in (None, record.objective)
        ]
        spread = _spread([design_point, *(record.design_point for record in records)])
        far = {
            record.storage_name: distance(record.design_point, design_point, spread)
            for record in records
        }
        records.sort(key=lambda record: (far[record.storage_name], -record.study_id))
        matches: list[Match] = []
        for record in records:
            if len(matches) >= n:
                break
            summary = self._summary(record)
            if summary.n_feasible:
                here, there = design_point.features, record.design_point.features
                differences = {key: there[key] - here[key] for key in here if key in there}
                matches.append(
                    Match(
                        study=summary,
                        distance=far[record.storage_name],
                        differences=differences,
                    )
                )
        return matches

    def read(self, name: str) -> StoredStudy:
        """One study with its trials, see `autotune.study.read_study`."""
        return read_study(self.storage, name)

    def trials(self, name: str) -> list[Trial]:
        """The trials of one study, as `Study.trials` gives them."""
        return list(self.read(name).trials)

    def best_trials(self, name: str, n: int = 5) -> list[Trial]:
        """The trials worth handing on: the front, then the next front, until there are n.

        Args:
            name: See `autotune.study.read_study`.
            n: How many at most.

        Returns:
            Feasible trials. Of a front with more than is needed they are spread evenly along it.
        """
        study = self.read(name)
        metrics, constraints = study.record.metrics, study.record.constraints
        left = pareto.rankable(study.trials, metrics, constraints=constraints)
        chosen: list[Trial] = []
        while left and len(chosen) < n:
            front = pareto.pareto_front(left, metrics, constraints=constraints)
            numbers = {trial.number for trial in front}
            left = [trial for trial in left if trial.number not in numbers]
            chosen += _evenly(front, n - len(chosen))
        return chosen

    def frame(self) -> pd.DataFrame:
        """The studies as a table, one row each."""
        import pandas as pd

        return pd.DataFrame([_row(summary) for summary in self.studies()])

    def _records(self) -> list[StudyRecord]:
        return list_studies(self.storage)

    def _summary(self, record: StudyRecord) -> StudySummary:
        trials = self.read(record.storage_name).trials
        best = {
            metric.name: pareto.best(trials, metric, constraints=record.constraints)
            for metric in record.recorded
        }
        return StudySummary(
            record=record,
            counts=Counter(trial.state for trial in trials),
            n_feasible=sum(trial.feasible for trial in trials),
            best={
                name: trial.evaluation.metrics[name]
                for name, trial in best.items()
                if trial is not None and trial.evaluation is not None
            },
            last_finished=max((t.finished for t in trials if t.finished), default=None),
        )


def distance(there: DesignPoint, here: DesignPoint, spread: Mapping[str, float]) -> float:
    """How far two design points are from each other, see `Match`.

    Args:
        there: One.
        here: The other.
        spread: What counts as far, by feature, in its unit; one of spread 0 tells nothing.

    Returns:
        A feature that only one of them has counts as one spread. Infinity where neither has any
        and the contents differ.
    """
    if there.fingerprint == here.fingerprint:
        return 0.0
    features = there.features.keys() | here.features.keys()
    if not features:
        return math.inf
    squares = []
    for name in features:
        if name not in there.features or name not in here.features:
            squares.append(1.0)
        elif spread.get(name, 0.0) > 0:
            squares.append(((there.features[name] - here.features[name]) / spread[name]) ** 2)
        else:
            squares.append(0.0)
    return math.sqrt(math.fsum(squares) / len(squares))


def _spread(points: Iterable[DesignPoint]) -> dict[str, float]:
    """Standard deviation of every feature over the distinct design points that have it."""
    distinct = {point.fingerprint: point.features for point in points}.values()
    names = {name for features in distinct for name in features}
    return {
        name: float(np.std([features[name] for features in distinct if name in features]))
        for name in names
    }


def _is_at(record: StudyRecord, design_point: str | DesignPoint) -> bool:
    if isinstance(design_point, DesignPoint):
        return record.design_point.fingerprint == design_point.fingerprint
    return record.design_point.name == design_point


def _evenly(front: Sequence[Trial], n: int) -> list[Trial]:
    if len(front) <= n:
        return list(front)
    picks = np.linspace(0, len(front) - 1, n).round().astype(int)
    return [front[i] for i in picks]


def _row(summary: StudySummary) -> dict[str, object]:
    record = summary.record
    return {
        "study": summary.name,
        "design_point": record.design_point.name,
        "objective": record.objective,
        "objective_version": record.objective_version,
        "tags": ", ".join(record.tags),
        "created": record.created,
        "last_finished": summary.last_finished,
        "n_trials": record.n_trials,
        **{state.value: summary.counts.get(state, 0) for state in _SHOWN_STATES},
        "feasible": summary.n_feasible,
        **{f"best {name}": value for name, value in summary.best.items()},
    }


_SHOWN_STATES = (TrialState.COMPLETE, TrialState.FAILED, TrialState.RUNNING, TrialState.PRUNED)
