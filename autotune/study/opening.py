"""Opens a study: makes it, resumes it, or says why it is another one."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from autotune.errors import StudyMismatch
from autotune.jsonable import fingerprint, to_jsonable
from autotune.objective import Objective
from autotune.storage import Storage, StudyRow, open_storage
from autotune.storage.reader import read_study_row
from autotune.storage.rows import Direction, NewStudy, NewTrial
from autotune.storage.writer import insert_study, update_study
from autotune.study.lease import LeaseTimes
from autotune.study.migration import adopted_trials, differences
from autotune.study.packing import StudyRecord, pack_study, unpack_study
from autotune.study.spec import StudySpec, identity, optimised_metrics, storage_name
from autotune.study.study import Study

_logger = logging.getLogger(__name__)

_CREATION_ATTEMPTS = 3
_DIRECTIONS: dict[str, Direction] = {"minimize": "MINIMIZE", "maximize": "MAXIMIZE"}


def open_study(
    spec: StudySpec,
    storage: str | Path | Storage,
    *,
    migrate: bool = False,
    reset_sampler: bool = False,
    lease: LeaseTimes | None = None,
) -> Study:
    """Make a study, or resume it where the storage has it.

    Args:
        spec: What it is.
        storage: Path of an SQLite file, a PostgreSQL URL, ``memory``, or an opened storage.
        migrate: Where the stored study differs, start a successor that takes its trials over as
            far as they fit.
        reset_sampler: Where sampler or seed differ, go on with those of the spec.
        lease: When other workers count as dead; the defaults suit all but tests.

    Raises:
        StudyMismatch: If the storage has a study of this name that measures something else, or
            has another sampler or seed; names both and what to do.
        StorageRefused: If the storage cannot be used; it is left as it was.
        UnknownName: If the objective or sampler does not exist.
        Unsupported: If the objective does not measure a metric of the spec, or the sampler needs
            a package that is not installed.
    """
    objective = spec.make_objective()
    opened = open_storage(storage)
    wanted = _Wanted(spec=spec, objective=objective, migrate=migrate, reset_sampler=reset_sampler)
    record = _resume(wanted, opened) or _write(wanted, opened)
    return Study(spec, objective, opened, record, lease=lease or LeaseTimes())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    spec: StudySpec
    objective: Objective
    migrate: bool
    reset_sampler: bool

    @property
    def name(self) -> str:
        return storage_name(self.spec, self.objective)

    @property
    def fingerprint(self) -> str:
        return fingerprint(identity(self.spec, self.objective))


def _resume(wanted: _Wanted, storage: Storage) -> StudyRecord | None:
    """The study as stored, where nothing has to be written; None otherwise."""
    with storage.read() as connection:
        row = _matching(_family(connection, wanted.name), wanted)
    if row is None or _changed(row, wanted):
        return None
    return unpack_study(row)


def _write(wanted: _Wanted, storage: Storage) -> StudyRecord:
    for _ in range(_CREATION_ATTEMPTS):
        try:
            with storage.write() as connection:
                return unpack_study(_update_or_insert(wanted, storage, connection))
        except IntegrityError:
            continue  # on PostgreSQL another process may make the study at the same moment
    raise StudyMismatch(f"study {wanted.name!r} cannot be made in {storage}: its name is taken")


def _update_or_insert(wanted: _Wanted, storage: Storage, connection: Connection) -> StudyRow:
    family = _family(connection, wanted.name)
    row = _matching(family, wanted)
    if row is not None:
        changed = {**row.packed, **_changed(row, wanted)}
        update_study(connection, row.study_id, changed)
        return StudyRow(study_id=row.study_id, name=row.name, packed=changed)
    if not family:
        return _insert(wanted, connection, wanted.name)
    if not wanted.migrate:
        raise StudyMismatch(_mismatch(family[-1], wanted, storage))
    name = f"{wanted.name}~{len(family) + 1}"
    trials = adopted_trials(connection, family[-1], wanted.spec, wanted.objective)
    _logger.info("%s takes over %d trials of %s", name, len(trials), family[-1].name)
    return _insert(wanted, connection, name, predecessor=family[-1].name, trials=trials)


def _insert(
    wanted: _Wanted,
    connection: Connection,
    name: str,
    *,
    predecessor: str | None = None,
    trials: tuple[NewTrial, ...] = (),
) -> StudyRow:
    metrics = optimised_metrics(wanted.spec, wanted.objective)
    study = NewStudy(
        name=name,
        directions=tuple(_DIRECTIONS[metric.direction] for metric in metrics),
        metric_names=tuple(metric.name for metric in metrics),
        packed=pack_study(wanted.spec, wanted.objective, predecessor=predecessor),
        trials=trials,
    )
    study_id = insert_study(connection, study)
    return StudyRow(study_id=study_id, name=name, packed=study.packed)


def _family(connection: Connection, name: str) -> list[StudyRow]:
    """The study of a name and its successors, oldest first."""
    found: list[StudyRow] = []
    while True:
        suffix = f"~{len(found) + 1}" if found else ""
        row = read_study_row(connection, name + suffix)
        if row is None:
            return found
        if not row.packed:
            raise StudyMismatch(
                f"the storage has a study {row.name!r} that was made by another program; give "
                "this one another name, or use another storage"
            )
        found.append(row)


def _matching(family: list[StudyRow], wanted: _Wanted) -> StudyRow | None:
    same = [row for row in family if row.packed["fingerprint"] == wanted.fingerprint]
    return same[-1] if same else None


def _changed(row: StudyRow, wanted: _Wanted) -> dict[str, Any]:
    """What a stored study has to take over from the spec.

    Raises:
        StudyMismatch: If sampler or seed differ and nobody said that they may.
    """
    spec = wanted.spec
    asked = {"sampler": spec.sampler, "seed": spec.seed}
    differing = {name: value for name, value in asked.items() if row.packed[name] != value}
    if differing and not wanted.reset_sampler:
        stored = ", ".join(f"{name} {row.packed[name]!r}" for name in differing)
        new = ", ".join(f"{name} {value!r}" for name, value in differing.items())
        raise StudyMismatch(
            f"study {row.name!r} was started with {stored}, and the spec has {new}; pass "
            "reset_sampler=True (`--reset-sampler`) to go on with the new one, or keep the old"
        )
    later = {
        "description": spec.description,
        "tags": list(spec.tags),
        "baselines": to_jsonable(spec.baselines, "baselines"),
        "n_trials": max(spec.n_trials, row.packed["n_trials"]),
    }
    return differing | {n: v for n, v in later.items() if not _is_same(row.packed[n], v)}


def _is_same(stored: Any, new: Any) -> bool:
    # The first baseline is the one that is compared with: their order counts.
    return bool(stored == new) and (not isinstance(new, dict) or list(stored) == list(new))


def _mismatch(row: StudyRow, wanted: _Wanted, storage: Storage) -> str:
    lines = "\n".join(f"  - {line}" for line in differences(row, wanted.spec, wanted.objective))
    return (
        f"{storage} has a study {row.name!r} with the fingerprint {row.packed['fingerprint']}, "
        f"and the spec's is {wanted.fingerprint}:\n{lines}\n"
        "Pass migrate=True (`--migrate`) to start a successor that takes over the trials that "
        "still fit, give the study another name, or go back to the stored definition"
    )
