from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from autotune.errors import StorageRefused
from autotune.storage import checks, integrity_problems, open_storage
from autotune.storage.reader import read_studies, read_study_row


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE customers (name TEXT)")
    connection.close()


def foreign_in_wal_mode(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE customers (name TEXT)")
    connection.commit()
    connection.close()


def foreign_with_our_names(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE studies (id INTEGER PRIMARY KEY, title TEXT)")
        connection.execute("CREATE TABLE trials (id INTEGER PRIMARY KEY, dose REAL)")
    connection.close()


def foreign_beside_our_names(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE studies (study_id INTEGER, study_name TEXT)")
        connection.execute("CREATE TABLE patients (name TEXT)")
    connection.close()


def foreign_with_our_columns_and_rows(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE studies (study_id INTEGER, study_name TEXT)")
        connection.execute("INSERT INTO studies VALUES (1, 'aspirin')")
    connection.close()


def foreign_before_its_first_revision(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
        for name in ("studies", "trials", "customers"):
            connection.execute(f"CREATE TABLE {name} (id INTEGER)")
    connection.close()


def only_a_version_table(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
    connection.close()


def only_a_view(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE VIEW answer AS SELECT 42")
    connection.close()


def our_version_and_other_tables(path: Path) -> None:
    open_storage(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE trials RENAME COLUMN number TO dose")
    connection.close()


def no_database(path: Path) -> None:
    path.write_text("name,step_time_s\n" * 100)


def nearly_empty(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\x00")


def truncated(path: Path) -> None:
    open_storage(path).close()
    path.write_bytes(path.read_bytes()[:-8192])


def overwritten(path: Path) -> None:
    open_storage(path).close()
    data = bytearray(path.read_bytes())
    data[100:4000] = b"\xff" * 3900
    path.write_bytes(data)


def other_version(path: Path) -> None:
    open_storage(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'v9.9.0.a'")
    connection.close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (foreign, "another program"),
        (foreign_in_wal_mode, "another program"),
        (foreign_with_our_names, "another program.*other columns"),
        (foreign_beside_our_names, "another program"),
        (foreign_with_our_columns_and_rows, "another program"),
        (foreign_before_its_first_revision, "another program"),
        (only_a_version_table, "another program"),
        (only_a_view, "another program"),
        (our_version_and_other_tables, "trials are others or missing"),
        (no_database, "no SQLite database"),
        (nearly_empty, "damaged"),
        (truncated, "damaged"),
        (overwritten, "damaged"),
        (other_version, "v9.9.0.a"),
    ],
)
@pytest.mark.parametrize("read_only", [True, False])
def test_refused_and_left_as_it_was(
    tmp_path: Path, make: Callable[[Path], None], said: str, read_only: bool
) -> None:
    path = tmp_path / "given.db"
    make(path)
    before, beside = path.read_bytes(), set(os.listdir(tmp_path))
    modified = path.stat().st_mtime_ns
    with pytest.raises(StorageRefused, match=said):
        open_storage(path, read_only=read_only)
    assert path.read_bytes() == before
    assert path.stat().st_mtime_ns == modified
    assert set(os.listdir(tmp_path)) == beside


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageRefused, match="no regular file"):
        open_storage(tmp_path)


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageRefused, match="make it first"):
        open_storage(tmp_path / "no" / "studies.db")


def test_nothing_is_made_to_read_it(tmp_path: Path) -> None:
    with pytest.raises(StorageRefused, match="no storage"):
        open_storage(tmp_path / "studies.db", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_a_write_protected_file_is_refused_for_writing_only(tmp_path: Path) -> None:
    path = tmp_path / "studies.db"
    open_storage(path).close()
    path.chmod(0o444)
    with pytest.raises(StorageRefused, match="read-only"):
        open_storage(path)
    open_storage(path, read_only=True).close()


@pytest.mark.parametrize("protected", ["file", "folder"])
def test_nothing_is_left_beside_what_is_only_read(tmp_path: Path, protected: str) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    path = folder / "studies.db"
    open_storage(path).close()
    before = path.read_bytes()
    (path if protected == "file" else folder).chmod(0o555)
    with closing(open_storage(path, read_only=True)) as storage, storage.read() as connection:
        assert read_studies(connection) == []
    folder.chmod(0o755)
    assert os.listdir(folder) == ["studies.db"]
    assert path.read_bytes() == before


def test_what_is_in_the_log_of_a_write_protected_file_is_read(tmp_path: Path) -> None:
    path, copy = tmp_path / "studies.db", tmp_path / "copy.db"
    open_storage(path).close()
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("INSERT INTO studies VALUES (1, 'new')")
        writer.commit()
        for end in ("", "-wal"):  # as a program that was killed leaves them
            shutil.copy(f"{path}{end}", f"{copy}{end}")
    copy.chmod(0o444)
    with closing(open_storage(copy, read_only=True)) as storage, storage.read() as connection:
        assert read_study_row(connection, "new") is not None


@pytest.mark.parametrize("made", [1, 4, 12])
def test_the_making_of_tables_goes_on_where_it_was_cut_short(tmp_path: Path, made: int) -> None:
    whole, path = tmp_path / "whole.db", tmp_path / "studies.db"
    open_storage(whole).close()
    with closing(sqlite3.connect(whole)) as source:
        rows = source.execute("SELECT sql FROM sqlite_master WHERE type = 'table'").fetchall()
    with closing(sqlite3.connect(path)) as connection:
        for (statement,) in rows[:made]:
            connection.execute(statement)
    open_storage(path).close()
    open_storage(path, read_only=True).close()


def test_an_empty_file_becomes_a_storage(tmp_path: Path) -> None:
    path = tmp_path / "studies.db"
    path.touch()
    open_storage(path).close()
    assert list(integrity_problems(path)) == []


def test_network_file_systems_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "file_system", lambda _: "nfs4")
    with pytest.raises(StorageRefused, match=r"network file system \(nfs4\).*PostgreSQL"):
        open_storage(tmp_path / "studies.db")


def test_file_system_is_that_of_the_deepest_mount() -> None:
    assert checks.file_system(Path("/proc/self")) == "proc"


def test_integrity_problems_of_a_damaged_page(tmp_path: Path) -> None:
    path = tmp_path / "studies.db"
    open_storage(path).close()
    data = bytearray(path.read_bytes())
    data[3 * 4096 : 4 * 4096] = os.urandom(4096)
    path.write_bytes(data)
    assert list(integrity_problems(path))
