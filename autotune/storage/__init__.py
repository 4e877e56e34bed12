"""Where studies live: Optuna's tables on SQLite or PostgreSQL, read and written in bulk."""

from __future__ import annotations

from autotune.storage.checks import integrity_problems
from autotune.storage.database import Storage, open_storage
from autotune.storage.location import Location, locate
from autotune.storage.rows import StudyRow, TrialRow

__all__ = [
    "Location",
    "Storage",
    "StudyRow",
    "TrialRow",
    "integrity_problems",
    "locate",
    "open_storage",
]
