"""Studies: defined by a spec, kept in a storage, shared by any number of workers."""

from __future__ import annotations

from autotune.study.lease import LeaseTimes
from autotune.study.opening import open_study
from autotune.study.outcome import Ending, Outcome
from autotune.study.packing import StudyRecord
from autotune.study.reading import StoredStudy, list_studies, read_study
from autotune.study.spec import StudySpec
from autotune.study.study import Study

__all__ = [
    "Ending",
    "LeaseTimes",
    "Outcome",
    "StoredStudy",
    "Study",
    "StudyRecord",
    "StudySpec",
    "list_studies",
    "open_study",
    "read_study",
]
