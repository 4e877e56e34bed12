"""Reasons to refuse a storage, found without changing it."""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection, inspect, select

from autotune.errors import StorageRefused
from autotune.storage.contents import has_tables
from autotune.storage.schema import metadata

NETWORK_FILE_SYSTEMS = frozenset(
    {
        "afs", "beegfs", "ceph", "cifs", "davfs", "fuse.cephfs", "fuse.gcsfuse",
        "fuse.glusterfs", "fuse.juicefs", "fuse.s3fs", "fuse.sshfs", "glusterfs", "gpfs",
        "lustre", "ncpfs", "nfs", "nfs4", "orangefs", "smb3", "smbfs",
    }
)  # fmt: skip
"""File systems on which SQLite's locks or its shared memory do not hold between machines."""

_HEADER = b"SQLite format 3\x00"
_HEADER_BYTES = 100
_WAL_FORMAT = 2


def check_sqlite_file(path: Path, *, for_writing: bool) -> bool:
    """Refuse a file that is no storage of ours, or that cannot be one.

    Args:
        path: Absolute; need not exist.
        for_writing: Whether trials are to be added.

    Returns:
        Whether the file has Optuna's tables already; False where it is still to be made.

    Raises:
        StorageRefused: With what to do; the file is as it was.
    """
    _check_folder(path)
    if not path.exists():
        return False
    if not path.is_file():
        raise StorageRefused(f"{path} is no regular file; give the path of an SQLite database")
    if for_writing:
        _check_writable(path)
    if path.stat().st_size == 0:
        return False
    _check_header(path)
    return _check_tables(path)


def check_schema(connection: Connection, shown: str) -> bool:
    """Refuse a database whose tables are not Optuna's, at the one revision that is known.

    Args:
        connection: To the database; only read from.
        shown: The storage as named to the user.

    Returns:
        Whether the tables are there; False in an empty database.
    """
    found = inspect(connection)
    columns = {
        name: frozenset(column["name"] for column in found.get_columns(name))
        for name in (*found.get_table_names(), *found.get_view_names())
    }

    def read(name: str) -> list[object]:
        table = metadata.tables[name]
        return list(connection.execute(select(next(iter(table.columns)))).scalars())

    return has_tables(columns, read, shown)


def _check_folder(path: Path) -> None:
    folder = path.parent
    if not folder.is_dir():
        raise StorageRefused(f"the folder {folder} of the storage does not exist; make it first")
    kind = file_system(folder)
    if kind in NETWORK_FILE_SYSTEMS:
        raise StorageRefused(
            f"{path} is on a network file system ({kind}), where SQLite loses or corrupts data "
            "as soon as two machines write; use a local disk, or PostgreSQL for several machines"
        )


def file_system(folder: Path) -> str | None:
    """The kind of file system a folder is on, such as ``ext4``; None where that is unknown."""
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    resolved = folder.resolve()
    best: tuple[int, str | None] = (-1, None)
    for line in mounts.splitlines():
        fields = line.split()
        point = Path(fields[1].replace("\\040", " "))
        # Of two mounts on one point the later one is seen.
        if (point == resolved or point in resolved.parents) and len(point.parts) >= best[0]:
            best = (len(point.parts), fields[2])
    return best[1]


def _check_writable(path: Path) -> None:
    if not _is_writable(path):
        raise StorageRefused(
            f"{path} or its folder is read-only, and a study needs to write to it; change the "
            "permissions, or copy the file to a place where you may write"
        )


def _is_writable(path: Path) -> bool:
    # Root may write anywhere: a file that nobody is allowed to write was made so on purpose.
    allowed = bool(path.stat().st_mode & 0o222) and os.access(path, os.W_OK)
    return allowed and bool(path.parent.stat().st_mode & 0o222) and os.access(path.parent, os.W_OK)


def _check_header(path: Path) -> None:
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    if not header.startswith(_HEADER):
        raise StorageRefused(
            f"{path} is no SQLite database; it was left as it was. Give a path that does not "
            "exist yet, or the storage that you meant"
        )
    size = path.stat().st_size
    if len(header) < _HEADER_BYTES:
        raise _corrupt(path, f"it ends after {size} bytes")
    page_size, pages, changed, valid_for = _sizes(header)
    # The page count is only right when the last writer knew it (SQLite file format, 1.3.7).
    if changed == valid_for and pages * page_size > size and not _wal(path).exists():
        raise _corrupt(path, f"it should have {pages * page_size} bytes and has {size}")


def _sizes(header: bytes) -> tuple[int, int, int, int]:
    page_size = struct.unpack(">H", header[16:18])[0]
    changed, pages = struct.unpack(">II", header[24:32])
    valid_for = struct.unpack(">I", header[92:96])[0]
    return 65536 if page_size == 1 else page_size, pages, changed, valid_for


def _check_tables(path: Path) -> bool:
    try:
        with closing(sqlite3.connect(read_only_uri(path), uri=True)) as connection:
            return _has_tables(connection, str(path))
    except sqlite3.DatabaseError as error:
        raise _corrupt(path, str(error)) from error


def _has_tables(connection: sqlite3.Connection, shown: str) -> bool:
    names = connection.execute(
        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE "
        "'sqlite\\_%' ESCAPE '\\'"
    )
    columns = {
        name: frozenset(
            column
            for (column,) in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))
        )
        for (name,) in names.fetchall()
    }

    def read(name: str) -> list[object]:
        first = next(iter(metadata.tables[name].columns)).name
        return [row[0] for row in connection.execute(f"SELECT {first} FROM {name}")]

    return has_tables(columns, read, shown)


def read_only_uri(path: Path, *, for_long: bool = False) -> str:
    """A URI that opens a database without creating any file beside it where that can be helped.

    Args:
        path: An existing file.
        for_long: Others may write to it before the connection is closed, if anybody may.
    """
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    in_wal_mode = len(header) > 19 and header[18] == _WAL_FORMAT
    # Opening a database in WAL mode makes files beside it, even to read, unless it is said to
    # be immutable; which it may only be while nobody has anything in the log.
    quiet = in_wal_mode and not _has_log(path) and not (for_long and _is_writable(path))
    return f"{path.as_uri()}?mode=ro" + ("&immutable=1" if quiet else "")


def _has_log(path: Path) -> bool:
    log = _wal(path)
    return log.exists() and log.stat().st_size > 0


def _wal(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _corrupt(path: Path, why: str) -> StorageRefused:
    return StorageRefused(
        f"{path} is damaged: {why}. It was left as it was; restore a copy, or save what is left "
        f"with `sqlite3 {path.name} .recover`"
    )


def integrity_problems(path: Path) -> Iterator[str]:
    """Everything SQLite finds wrong in a whole file; reads all of it.

    Args:
        path: An existing SQLite database.
    """
    try:
        with closing(sqlite3.connect(read_only_uri(path), uri=True)) as connection:
            for (line,) in connection.execute("PRAGMA integrity_check"):
                if line != "ok":
                    yield line
    except sqlite3.DatabaseError as error:
        yield str(error)
