"""Reads stored studies without the code that defined them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from autotune import pareto
from autotune.errors import UnknownName
from autotune.storage import Storage, StudyRow, open_storage
from autotune.storage.reader import read_studies, read_trials
from autotune.study import results
from autotune.study.packing import StudyRecord, to_trial, unpack_study
from autotune.trial import Trial

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStudy:
    """A study and its trials as they were when read.

    Attributes:
        record: What it is.
        trials: In the order of slots, without claims that were given up; then what is outside
            the budget.
    """

    record: StudyRecord
    trials: tuple[Trial, ...] = field(repr=False)

    def frame(self) -> pd.DataFrame:
        """As `Study.frame`."""
        return results.to_frame(self.trials)

    def front(self) -> list[Trial]:
        """As `Study.front`."""
        constraints = self.record.constraints
        return pareto.pareto_front(self.trials, self.record.metrics, constraints=constraints)

    def best(self, metric: str | None = None) -> Trial | None:
        """As `Study.best`."""
        return results.find_best(self.trials, self.record, metric)

    def baseline(self, name: str | None = None) -> Trial | None:
        """As `Study.baseline`."""
        return results.find_baseline(self.trials, self.record.baselines, name)


def list_studies(storage: str | Path | Storage) -> list[StudyRecord]:
    """All studies of a storage that this package made, oldest first.

    Raises:
        StorageRefused: If there is no such storage, or it cannot be used.
    """
    with _reading(storage) as connection:
        return [unpack_study(row) for row in read_studies(connection)]


def read_study(storage: str | Path | Storage, name: str) -> StoredStudy:
    """Read a study with all its trials.

    Args:
        storage: See `open_study`; only read from.
        name: Its name in the storage, such as ``NAME@OBJECTIVE``, or the spec's name alone where
            only one objective has a study of it; the newest successor then.

    Raises:
        UnknownName: If there is none, or several objectives have one; lists those there are.
        StorageRefused: If there is no such storage, or it cannot be used.
    """
    with _reading(storage) as connection:
        row = find_study(read_studies(connection), name)
        rows = read_trials(connection, row.study_id)
    trials = results.visible([to_trial(each) for each in rows])
    return StoredStudy(record=unpack_study(row), trials=tuple(trials))


@contextmanager
def _reading(storage: str | Path | Storage) -> Iterator[Connection]:
    opened = open_storage(storage, read_only=True)
    try:
        with opened.read() as connection:
            yield connection
    finally:
        if opened is not storage:
            opened.close()


def find_study(rows: list[StudyRow], name: str) -> StudyRow:
    """The study of a name among those of a storage, see `read_study`."""
    exact = [row for row in rows if row.name == name]
    if exact:
        return exact[0]
    same = [row for row in rows if name in (row.packed["name"], row.name.partition("~")[0])]
    objectives = {row.packed["objective"] for row in same}
    if len(objectives) != 1:
        raise UnknownName("study", name, [row.name for row in same or rows])
    return same[-1]
