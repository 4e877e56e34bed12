"""An opened storage: connections, transactions, and the same tables for Optuna's own tools."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from sqlalchemy import Connection, Engine, create_engine, event, select
from sqlalchemy.exc import DatabaseError, DBAPIError, IntegrityError, OperationalError

from autotune.errors import StorageRefused
from autotune.storage.checks import check_schema, check_sqlite_file, read_only_uri
from autotune.storage.location import Location, locate
from autotune.storage.schema import studies

if TYPE_CHECKING:
    from optuna.storages import RDBStorage

BUSY_TIMEOUT_S = 60.0
"""How long to wait for another process that is writing; a write takes milliseconds."""

_WRITES = "autotune_writes"
_CREATION_ATTEMPTS = 5
_CREATION_PAUSE_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """A database with Optuna's tables, checked when it was opened.

    Attributes:
        location: Where it is.
        read_only: Whether writing is refused.
    """

    location: Location
    read_only: bool = False
    engine: Engine = field(repr=False)

    def __str__(self) -> str:
        return str(self.location)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One consistent view of the storage."""
        with self._explained(), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self, study_id: int | None = None) -> Iterator[Connection]:
        """One transaction that no other writer overlaps; kept whole or not at all.

        Args:
            study_id: The study whose trials are added or changed. On PostgreSQL only writers of
                the same study wait for each other; Optuna takes the same lock.

        Raises:
            StorageRefused: If the storage was opened read-only or the disk does not allow it.
        """
        if self.read_only:
            raise StorageRefused(f"{self} was opened for reading only; open it for writing")
        writer = self.engine.execution_options(**{_WRITES: True})
        with self._explained(), writer.begin() as connection:
            if study_id is not None and connection.dialect.name == "postgresql":
                row = select(studies.c.study_id).where(studies.c.study_id == study_id)
                connection.execute(row.with_for_update())
            yield connection

    def optuna(self) -> RDBStorage:
        """The storage for Optuna's own tools, with the same transactions.

        It takes a moment; nothing here that is done for every trial goes through it.
        """
        from optuna.storages import RDBStorage

        storage = RDBStorage(_optuna_url(self.location), engine_kwargs=_engine_options(self))
        _prepare_engine(storage.engine, self.location, always_immediate=True)
        storage.engine.dispose()  # connections made before the listeners were there
        return storage

    def close(self) -> None:
        """Give all connections back; one in memory ends here."""
        self.engine.dispose()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            refusal = _refusal(error, self)
            if refusal is None:
                raise
            raise refusal from error


def open_storage(storage: str | Path | Storage, *, read_only: bool = False) -> Storage:
    """Open a storage, and make it where there is none yet.

    Args:
        storage: A path, a URL or ``memory``, see `locate`; one that is open is given back.
        read_only: Never write, and refuse what does not exist.

    Raises:
        StorageRefused: If it is foreign, damaged, of another schema version, on a network file
            system or not writable; it is not touched then.
    """
    if isinstance(storage, Storage):
        return storage
    location = locate(storage)
    exists = False
    if location.path is not None:
        exists = check_sqlite_file(location.path, for_writing=not read_only)
        if read_only and not exists:
            raise StorageRefused(f"there is no storage at {location}; `run` a study to make it")
    opened = _connect(location, read_only=read_only)
    try:
        if location.path is None:
            exists = _has_schema(opened)
            if read_only and not exists:
                raise StorageRefused(f"there is no study in {location} yet")
        if not exists:
            _create_tables(opened)
    except BaseException:
        opened.close()
        raise
    return opened


def _connect(location: Location, *, read_only: bool) -> Storage:
    url = location.url
    if location.path is not None and read_only:
        uri, _, query = read_only_uri(location.path, for_long=True).partition("?")
        url = url.set(database=uri, query={**dict(parse_qsl(query)), "uri": "true"})
    options = _driver_options(location)
    try:
        engine = create_engine(url, **options)
    except ImportError:
        raise StorageRefused(
            "PostgreSQL needs its driver: pip install 'scale-across-autotune[postgresql]'"
        ) from None
    _prepare_engine(engine, location, always_immediate=False)
    return Storage(location=location, read_only=read_only, engine=engine)


def _driver_options(location: Location) -> dict[str, Any]:
    if location.kind == "postgresql":
        return {"pool_pre_ping": True}
    # No implicit transactions: each begins as the listener below says.
    return {"connect_args": {"isolation_level": None, "timeout": BUSY_TIMEOUT_S}}


def _engine_options(storage: Storage) -> dict[str, Any]:
    return _driver_options(storage.location)


def _prepare_engine(engine: Engine, location: Location, *, always_immediate: bool) -> None:
    if location.kind == "postgresql":
        return

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _: object) -> None:
        # NORMAL: a crash of the program loses nothing, a power cut the last commits.
        connection.execute("PRAGMA synchronous=NORMAL")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = always_immediate or connection.get_execution_options().get(_WRITES, False)
        # A transaction that reads before it writes must hold the lock from the start, or two
        # processes read the same and both write.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _has_schema(storage: Storage) -> bool:
    with storage.read() as connection:
        return check_schema(connection, str(storage))


def _create_tables(storage: Storage) -> None:
    """Let Optuna make its tables; several processes may do so at once."""
    from optuna.exceptions import StorageInternalError
    from optuna.storages import RDBStorage

    if storage.location.kind == "sqlite":
        _use_write_ahead_log(storage)
    for attempt in range(1, _CREATION_ATTEMPTS + 1):
        try:
            made = RDBStorage(_optuna_url(storage.location))
            made.engine.dispose()
            return
        except (DatabaseError, IntegrityError, StorageInternalError):
            if attempt == _CREATION_ATTEMPTS:
                raise
            time.sleep(_CREATION_PAUSE_S)  # another process is half way through the same


def _use_write_ahead_log(storage: Storage) -> None:
    assert storage.location.path is not None
    connection = sqlite3.connect(storage.location.path, timeout=BUSY_TIMEOUT_S)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
    finally:
        connection.close()


def _optuna_url(location: Location) -> str:
    # Optuna formats the URL for a template of its own, so braces in a path must be doubled.
    url = location.url.render_as_string(hide_password=False)
    return url.replace("{", "{{").replace("}", "}}")


def _refusal(error: DBAPIError, storage: Storage) -> StorageRefused | None:
    """The plain words for what a driver says, where a user can do something about it."""
    said = str(error.orig)
    if storage.location.kind == "postgresql":
        # A connection that was never made: of options that the driver does not know, too.
        unmade = isinstance(error, OperationalError) or error.statement is None
        if unmade and error.connection_invalidated is False:
            return StorageRefused(f"{storage} cannot be used: {said.strip()}")
        return None
    if "readonly" in said:
        return StorageRefused(f"{storage} or its folder is read-only; change the permissions")
    if "malformed" in said or "not a database" in said:
        return StorageRefused(f"{storage} is damaged: {said}; restore a copy")
    if "disk is full" in said:
        return StorageRefused(f"the disk of {storage} is full; make room and run again")
    if "unable to open" in said:
        return StorageRefused(f"{storage} cannot be opened: {said}; check path and permissions")
    return None
