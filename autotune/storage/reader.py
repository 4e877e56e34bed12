"""Reads studies and trials in bulk, straight from the tables."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, and_, func, select

from autotune.storage.rows import (
    HEARTBEAT_KEY,
    QUEUE_KEY,
    STUDY_KEY,
    TRIAL_KEY,
    StudyRow,
    TrialRow,
    aware_utc,
)
from autotune.storage.schema import (
    studies,
    study_user_attributes,
    trial_user_attributes,
    trials,
)

_IN_CHUNK = 500
"""Trials named in one query; SQLite before 3.32 takes at most 999 parameters."""


def read_studies(connection: Connection) -> list[StudyRow]:
    """All studies made by this package, oldest first; others are left out."""
    rows = connection.execute(_studies().order_by(studies.c.study_id))
    return [
        StudyRow(study_id=study_id, name=name, packed=json.loads(packed))
        for study_id, name, packed in rows
        if packed is not None
    ]


def read_study_row(connection: Connection, name: str) -> StudyRow | None:
    """One study by its name in the storage; None where there is none.

    A study of that name that this package did not make has empty `packed`.
    """
    row = connection.execute(_studies().where(studies.c.study_name == name)).one_or_none()
    if row is None:
        return None
    study_id, stored_name, packed = row
    return StudyRow(
        study_id=study_id, name=stored_name, packed=json.loads(packed) if packed else {}
    )


def _studies() -> Any:
    attributes = study_user_attributes
    joined = studies.outerjoin(
        attributes,
        and_(attributes.c.study_id == studies.c.study_id, attributes.c.key == STUDY_KEY),
    )
    columns = (studies.c.study_id, studies.c.study_name, attributes.c.value_json)
    return select(*columns).select_from(joined)


def read_queue(connection: Connection, study_id: int) -> list[dict[str, Any]]:
    """The configs that were enqueued, oldest first, used ones included."""
    attributes = study_user_attributes
    text = connection.execute(
        select(attributes.c.value_json).where(
            attributes.c.study_id == study_id, attributes.c.key == QUEUE_KEY
        )
    ).scalar_one_or_none()
    return list(json.loads(text)) if text else []


def read_trials(
    connection: Connection,
    study_id: int,
    *,
    after: int = -1,
    again: Collection[int] = (),
) -> list[TrialRow]:
    """The trials of one study, oldest first; those that Optuna's tools added are left out.

    Args:
        connection: To the storage.
        study_id: Optuna's number of the study.
        after: Only trials with a larger `trial_id`.
        again: Trials to read all the same.
    """
    found = _select_trials(
        connection, and_(trials.c.study_id == study_id, trials.c.trial_id > after)
    )
    for chunk in _chunks(sorted(again)):
        found += _select_trials(connection, trials.c.trial_id.in_(chunk))
    return sorted(found, key=lambda row: row.trial_id)


def _select_trials(connection: Connection, which: Any) -> list[TrialRow]:
    attributes = trial_user_attributes
    rows = connection.execute(
        select(
            trials.c.trial_id,
            trials.c.number,
            trials.c.state,
            trials.c.datetime_start,
            trials.c.datetime_complete,
            attributes.c.value_json,
        )
        .join_from(
            trials,
            attributes,
            and_(attributes.c.trial_id == trials.c.trial_id, attributes.c.key == TRIAL_KEY),
        )
        .where(which)
    )
    return [
        TrialRow(
            trial_id=trial_id,
            number=number,
            state=state,
            started=aware_utc(started),
            finished=aware_utc(finished),
            packed=json.loads(packed),
        )
        for trial_id, number, state, started, finished, packed in rows
    ]


def read_heartbeats(connection: Connection, trial_ids: Sequence[int]) -> dict[int, int]:
    """The heartbeat counters of trials; those that never beat are missing."""
    attributes = trial_user_attributes
    found: dict[int, int] = {}
    for chunk in _chunks(list(trial_ids)):
        rows = connection.execute(
            select(attributes.c.trial_id, attributes.c.value_json).where(
                attributes.c.trial_id.in_(chunk), attributes.c.key == HEARTBEAT_KEY
            )
        )
        found |= {trial_id: int(text) for trial_id, text in rows}
    return found


def count_trials(connection: Connection, study_id: int) -> int:
    """All trials in the tables, whoever added them."""
    query = select(func.count()).select_from(trials).where(trials.c.study_id == study_id)
    return int(connection.execute(query).scalar_one())


def _chunks(items: Sequence[int]) -> Iterable[Sequence[int]]:
    return (items[i : i + _IN_CHUNK] for i in range(0, len(items), _IN_CHUNK))
