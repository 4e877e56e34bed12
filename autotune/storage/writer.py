"""Writes studies, claims and results, each inside the caller's transaction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Table, func, insert, select, update

from autotune.storage.rows import (
    CONSTRAINTS_KEY,
    HEARTBEAT_KEY,
    METRIC_NAMES_KEY,
    QUEUE_KEY,
    STUDY_KEY,
    TRIAL_KEY,
    NewStudy,
    NewTrial,
    State,
    TrialRow,
    aware_utc,
    dumps,
    naive_utc,
)
from autotune.storage.schema import (
    studies,
    study_directions,
    study_system_attributes,
    study_user_attributes,
    trial_params,
    trial_system_attributes,
    trial_user_attributes,
    trial_values,
    trials,
)


def insert_study(connection: Connection, study: NewStudy) -> int:
    """Add a study with what it starts with, and give its number.

    Raises:
        sqlalchemy.exc.IntegrityError: If the name is taken.
    """
    added = insert(studies).values(study_name=study.name).returning(studies.c.study_id)
    study_id = int(connection.execute(added).scalar_one())
    connection.execute(
        insert(study_directions),
        [
            {"study_id": study_id, "objective": i, "direction": direction}
            for i, direction in enumerate(study.directions)
        ],
    )
    _set(connection, study_user_attributes, "study_id", study_id, STUDY_KEY, study.packed)
    _set(
        connection,
        study_system_attributes,
        "study_id",
        study_id,
        METRIC_NAMES_KEY,
        list(study.metric_names),
    )
    insert_trials(connection, study_id, study.trials)
    return study_id


def update_study(connection: Connection, study_id: int, packed: Mapping[str, Any]) -> None:
    """Replace what is packed for a study."""
    _set(connection, study_user_attributes, "study_id", study_id, STUDY_KEY, packed)


def update_queue(connection: Connection, study_id: int, queue: Sequence[Any]) -> None:
    """Replace the configs that wait for a slot."""
    _set(connection, study_user_attributes, "study_id", study_id, QUEUE_KEY, list(queue))


def insert_trial(connection: Connection, study_id: int, trial: NewTrial) -> TrialRow:
    """Add a trial with everything that is known of it, and number it as Optuna does."""
    return insert_trials(connection, study_id, [trial])[0]


def insert_trials(connection: Connection, study_id: int, new: Sequence[NewTrial]) -> list[TrialRow]:
    """Add many trials as `insert_trial` adds one."""
    if not new:
        return []
    now = datetime.now(UTC)
    times = [
        (each.started or now, None if each.state == "RUNNING" else each.finished or now)
        for each in new
    ]
    count = select(func.count()).select_from(trials).where(trials.c.study_id == study_id)
    first = int(connection.execute(count).scalar_one())
    rows = [
        {
            "study_id": study_id,
            "number": first + i,
            "state": each.state,
            "datetime_start": naive_utc(started),
            "datetime_complete": naive_utc(finished),
        }
        for i, (each, (started, finished)) in enumerate(zip(new, times, strict=True))
    ]
    added = insert(trials).returning(trials.c.trial_id, sort_by_parameter_order=True)
    trial_ids = [int(trial_id) for trial_id in connection.execute(added, rows).scalars()]
    numbered = list(zip(trial_ids, new, strict=True))
    _insert_rows(connection, trial_params, [r for i, t in numbered for r in _param_rows(i, t)])
    packed = [_attribute(i, TRIAL_KEY, t.packed) for i, t in numbered]
    _insert_rows(connection, trial_user_attributes, packed)
    _insert_results(connection, [(i, t.values, t.constraints) for i, t in numbered])
    return [
        TrialRow(
            trial_id=trial_id,
            number=first + i,
            state=each.state,
            started=started,
            finished=finished,
            packed=each.packed,
        )
        for i, ((trial_id, each), (started, finished)) in enumerate(
            zip(numbered, times, strict=True)
        )
    ]


def _param_rows(trial_id: int, trial: NewTrial) -> list[dict[str, Any]]:
    return [
        {
            "trial_id": trial_id,
            "param_name": name,
            "param_value": value,
            "distribution_json": trial.distributions[name],
        }
        for name, value in trial.params.items()
    ]


def finish_trial(
    connection: Connection,
    row: TrialRow,
    *,
    state: State,
    packed: Mapping[str, Any],
    values: Sequence[float] = (),
    constraints: Sequence[float] | None = None,
) -> TrialRow | None:
    """Give a running trial its result; all of it becomes visible at once.

    Returns:
        The trial as it is now; None when somebody else finished it before, and nothing changed.
    """
    finished = datetime.now(UTC)
    changed = connection.execute(
        update(trials)
        .where(trials.c.trial_id == row.trial_id, trials.c.state == "RUNNING")
        .values(state=state, datetime_complete=naive_utc(finished))
    )
    if changed.rowcount != 1:
        return None
    connection.execute(
        update(trial_user_attributes)
        .where(
            trial_user_attributes.c.trial_id == row.trial_id,
            trial_user_attributes.c.key == TRIAL_KEY,
        )
        .values(value_json=dumps(packed))
    )
    _insert_results(connection, [(row.trial_id, values, constraints)])
    return TrialRow(
        trial_id=row.trial_id,
        number=row.number,
        state=state,
        started=row.started,
        finished=aware_utc(naive_utc(finished)),
        packed=packed,
    )


def beat(connection: Connection, trial_id: int, count: int) -> None:
    """Set the heartbeat counter of a trial."""
    _set(connection, trial_user_attributes, "trial_id", trial_id, HEARTBEAT_KEY, count)


def _insert_results(
    connection: Connection,
    results: Sequence[tuple[int, Sequence[float], Sequence[float] | None]],
) -> None:
    """Add values and constraints, by trial."""
    constraints = [
        _attribute(trial_id, CONSTRAINTS_KEY, list(listed))
        for trial_id, _, listed in results
        if listed is not None
    ]
    _insert_rows(connection, trial_system_attributes, constraints)
    rows: list[dict[str, Any]] = [
        {"trial_id": trial_id, "objective": i, "value": value, "value_type": "FINITE"}
        for trial_id, values, _ in results
        for i, value in enumerate(values)
    ]
    assert all(math.isfinite(row["value"]) for row in rows), "evaluations are finite"
    _insert_rows(connection, trial_values, rows)


def _attribute(trial_id: int, key: str, value: Any) -> dict[str, Any]:
    return {"trial_id": trial_id, "key": key, "value_json": dumps(value)}


def _insert_rows(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    if rows:
        connection.execute(insert(table), rows)


def _set(
    connection: Connection, table: Table, owner: str, owner_id: int, key: str, value: Any
) -> None:
    text = dumps(value)
    changed = connection.execute(
        update(table).where(table.c[owner] == owner_id, table.c.key == key).values(value_json=text)
    )
    if changed.rowcount == 0:
        connection.execute(insert(table).values({owner: owner_id, "key": key, "value_json": text}))
