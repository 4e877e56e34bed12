from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState
from sqlalchemy import text

from autotune.errors import StorageRefused
from autotune.storage import Storage, open_storage
from autotune.storage.reader import read_heartbeats, read_queue, read_study_row, read_trials
from autotune.storage.rows import NewStudy, NewTrial
from autotune.storage.writer import (
    beat,
    finish_trial,
    insert_study,
    insert_trial,
    update_queue,
    update_study,
)
from autotune.testing.postgresql import NoServer, temporary_database, temporary_server

DISTRIBUTION = optuna.distributions.distribution_to_json(optuna.distributions.IntDistribution(0, 9))


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    try:
        with temporary_server() as url:
            yield url
    except NoServer as error:
        pytest.skip(str(error))


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    if request.param == "postgresql":
        with temporary_database(request.getfixturevalue("server")) as url:
            opened = open_storage(url)
            yield opened
            opened.close()
        return
    opened = open_storage("memory" if request.param == "memory" else tmp_path / "studies.db")
    yield opened
    opened.close()


def claim(**packed: Any) -> NewTrial:
    return NewTrial(
        state="RUNNING", params={"a": 3.0}, distributions={"a": DISTRIBUTION}, packed=packed
    )


def make_study(storage: Storage, name: str = "s") -> int:
    study = NewStudy(
        name=name,
        directions=("MINIMIZE", "MAXIMIZE"),
        metric_names=("time_s", "rate"),
        packed={"format": 1},
    )
    with storage.write() as connection:
        return insert_study(connection, study)


def test_what_is_written_is_read_by_us_and_by_optuna(storage: Storage) -> None:
    study_id = make_study(storage)
    with storage.write(study_id) as connection:
        row = insert_trial(connection, study_id, claim(slot=0))
    with storage.write(study_id) as connection:
        settled = finish_trial(
            connection,
            row,
            state="COMPLETE",
            packed={"slot": 0, "text": "ö\U0001f600"},
            values=[1.5, 2.5],
            constraints=[-1.0, 0.5],
        )
    with storage.read() as connection:
        assert read_trials(connection, study_id) == [settled]
    study = optuna.load_study(study_name="s", storage=storage.optuna())
    assert study.metric_names == ["time_s", "rate"]
    assert [d.name for d in study.directions] == ["MINIMIZE", "MAXIMIZE"]
    trial = study.trials[0]
    assert trial.params == {"a": 3}
    assert trial.values == [1.5, 2.5]
    assert trial.constraints == {"0": -1.0, "1": 0.5}
    assert trial.datetime_start is not None
    assert trial.datetime_complete is not None
    assert trial.datetime_complete >= trial.datetime_start


def test_optuna_may_write_too(storage: Storage) -> None:
    study_id = make_study(storage)
    with storage.write(study_id) as connection:
        insert_trial(connection, study_id, claim(slot=0))
    study = optuna.load_study(study_name="s", storage=storage.optuna())
    study.tell(study.ask(), [0.0, 0.0])
    with storage.write(study_id) as connection:
        row = insert_trial(connection, study_id, claim(slot=1))
    assert row.number == 2
    assert [t.number for t in study.get_trials()] == [0, 1, 2]
    with storage.read() as connection:
        assert [row.number for row in read_trials(connection, study_id)] == [0, 2]


def test_only_the_first_result_of_a_trial_counts(storage: Storage) -> None:
    study_id = make_study(storage)
    with storage.write(study_id) as connection:
        row = insert_trial(connection, study_id, claim(slot=0))
        assert finish_trial(connection, row, state="FAIL", packed={"slot": 0, "void": {}})
    with storage.write(study_id) as connection:
        late = finish_trial(
            connection, row, state="COMPLETE", packed={"slot": 0}, values=[1.0, 2.0]
        )
    assert late is None
    trial = optuna.load_study(study_name="s", storage=storage.optuna()).trials[0]
    assert trial.state is TrialState.FAIL
    assert trial.values is None


def test_a_transaction_is_kept_whole_or_not_at_all(storage: Storage) -> None:
    study_id = make_study(storage)

    def write_half() -> None:
        with storage.write(study_id) as connection:
            insert_trial(connection, study_id, claim(slot=0))
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError):
        write_half()
    with storage.read() as connection:
        assert read_trials(connection, study_id) == []


def test_only_what_is_new_is_read(storage: Storage) -> None:
    study_id = make_study(storage)
    with storage.write(study_id) as connection:
        rows = [insert_trial(connection, study_id, claim(slot=i)) for i in range(4)]
    with storage.read() as connection:
        found = read_trials(connection, study_id, after=rows[2].trial_id, again=[rows[0].trial_id])
    assert [row.number for row in found] == [0, 3]


def test_heartbeats_queue_and_study_are_replaced(storage: Storage) -> None:
    study_id = make_study(storage)
    with storage.write(study_id) as connection:
        row = insert_trial(connection, study_id, claim(slot=0))
        for count in (1, 2):
            beat(connection, row.trial_id, count)
            update_queue(connection, study_id, [{"n": count}])
            update_study(connection, study_id, {"format": count})
    with storage.read() as connection:
        assert read_heartbeats(connection, [row.trial_id]) == {row.trial_id: 2}
        assert read_queue(connection, study_id) == [{"n": 2}]
        stored = read_study_row(connection, "s")
    assert stored is not None
    assert stored.packed == {"format": 2}


def test_writers_never_overlap(storage: Storage) -> None:
    """Reading and then writing in one transaction: nobody else writes in between."""
    study_id = make_study(storage)

    def work(_: int) -> None:
        for _ in range(10):
            with storage.write(study_id) as connection:
                queue = read_queue(connection, study_id)
                update_queue(connection, study_id, [*queue, len(queue)])
                insert_trial(connection, study_id, claim(slot=len(queue)))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    with storage.read() as connection:
        assert read_queue(connection, study_id) == list(range(40))
        assert [row.number for row in read_trials(connection, study_id)] == list(range(40))


def test_optunas_own_waiting_trials_are_claimed_once(tmp_path: Path) -> None:
    """The race of four processes for one WAITING trial, through the storage Optuna gets here."""
    path = tmp_path / "studies.db"
    study = optuna.create_study(study_name="w", storage=open_storage(path).optuna())
    for i in range(24):
        study.enqueue_trial({"x": i})
    claimed: list[int] = []
    lock = threading.Lock()

    def work(_: int) -> None:
        mine = optuna.load_study(study_name="w", storage=open_storage(path).optuna())
        for _ in range(6):
            number = mine.ask().number
            with lock:
                claimed.append(number)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert sorted(claimed) == list(range(24))


def test_sqlite_settings(tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "studies.db")
    with storage.read() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        assert connection.execute(text("PRAGMA synchronous")).scalar() == 1
    with storage.write() as connection, pytest.raises(sqlite3.OperationalError, match="locked"):
        sqlite3.connect(tmp_path / "studies.db", timeout=0).execute("BEGIN IMMEDIATE")


def test_reading_only_is_kept_to(tmp_path: Path) -> None:
    path = tmp_path / "studies.db"
    open_storage(path).close()
    storage = open_storage(path, read_only=True)
    with pytest.raises(StorageRefused, match="for reading only"), storage.write():
        pass
    with pytest.raises(StorageRefused, match="read-only"), storage.read() as connection:
        connection.execute(text("DELETE FROM studies"))


def test_processes_that_make_a_storage_at_once(tmp_path: Path) -> None:
    code = "import sys; from autotune.storage import open_storage; open_storage(sys.argv[1])"
    command = [sys.executable, "-c", code, str(tmp_path / "studies.db")]
    workers = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for worker in workers:
        _, said = worker.communicate()
        assert worker.returncode == 0, said


def test_postgresql_that_does_not_answer_is_explained() -> None:
    with pytest.raises(StorageRefused, match="cannot be used"):
        open_storage("postgresql://user:secret@127.0.0.1:1/none")
