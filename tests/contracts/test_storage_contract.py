"""The storage contract over memory, SQLite and, where one can be started, PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from autotune.storage import Storage, open_storage
from autotune.testing import StorageContract
from autotune.testing.postgresql import NoServer, temporary_database, temporary_server


class TestMemory(StorageContract):
    @pytest.fixture
    def storage(self) -> Storage:
        return open_storage("memory")


class TestSqlite(StorageContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Path:
        return tmp_path / "studies.db"


class TestSqliteUrl(StorageContract):
    """In a folder whose name would break a URL or a template that is put together by hand."""

    @pytest.fixture
    def storage(self, tmp_path: Path) -> str:
        folder = tmp_path / "a {b} ö"
        folder.mkdir()
        return f"sqlite:///{folder}/studies.db"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    try:
        with temporary_server() as url:
            yield url
    except NoServer as error:
        pytest.skip(str(error))


class TestPostgresql(StorageContract):
    @pytest.fixture
    def storage(self, server: str) -> Iterator[str]:
        with temporary_database(server) as url:
            yield url
