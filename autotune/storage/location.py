"""Where a storage is: what users may write for it, as one checked form."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from uuid import uuid4

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from autotune.errors import StorageRefused

Kind = Literal["sqlite", "postgresql", "memory"]

_SHOWN_PARAMETERS = frozenset(
    {"application_name", "connect_timeout", "host", "hostaddr", "port", "service", "sslmode"}
)
"""Of a URL; the value of any other one is hidden, for it may be a password or meant as one."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")

_MISTYPED = re.compile(
    r"(postgres|postgresql|sqlite|mysql|mariadb|oracle|mssql|redis|https?|file)(\+\w+)?:"
    r"|(?![./~])[^@]*:[^@]*@",
    re.IGNORECASE,
)
"""A URL without its slashes, or text with a user and a password; an absolute path is neither."""

_FORMS = (
    "the path of a file such as studies.db, sqlite:///studies.db, "
    "postgresql+psycopg://user@host/database, or memory"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A storage that exists or is to be made.

    Attributes:
        kind: What keeps it.
        url: For SQLAlchemy; may hold a password and is never shown.
        path: The file of an SQLite storage, None for others.
    """

    kind: Kind
    url: URL = field(repr=False)
    path: Path | None = None

    def __str__(self) -> str:
        """How to name it to a user: the path or the URL, without any password."""
        if self.kind == "memory":
            return "memory"
        if self.path is not None:
            return str(self.path)
        hidden = {key: "***" for key in self.url.query if key not in _SHOWN_PARAMETERS}
        return self.url.update_query_dict(hidden).render_as_string(hide_password=True)


def locate(storage: str | Path) -> Location:
    """Understand what a user wrote for a storage; touches nothing.

    Args:
        storage: A path, an ``sqlite:///`` or ``postgresql+psycopg://`` URL, or ``memory`` for
            one that ends with the process and is shared by nobody.

    Raises:
        StorageRefused: If it is none of these.
    """
    if storage == "memory":
        return _memory()
    if isinstance(storage, str) and "://" in storage:
        return _from_url(storage)
    if not str(storage).strip():
        raise StorageRefused(f"a storage must be {_FORMS}; got an empty text")
    if _MISTYPED.match(str(storage)):
        # Not repeated: what looks like a URL may hold a password.
        raise StorageRefused(
            f"a storage must be {_FORMS}; got what looks like a URL and has no '://' after its "
            "scheme (a file of such a name is given as ./NAME)"
        )
    return _sqlite(Path(storage))


def _from_url(text: str) -> Location:
    scheme = text.partition("://")[0]
    if not _SCHEME.fullmatch(scheme):
        raise StorageRefused(
            f"a storage must be {_FORMS}; got a text with '://' and no scheme of a URL before it"
        )
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # Its own message would repeat the text, password and all.
        raise StorageRefused(
            f"the {scheme}:// URL of the storage cannot be read; it must be {_FORMS}"
        ) from None
    backend = url.get_backend_name()
    if backend == "sqlite":
        if url.host or url.username or url.password or url.port:
            raise StorageRefused(
                "an sqlite:// URL must have no user, password or host, for SQLite is a file; "
                "write sqlite:///studies.db, with three slashes, or the path alone"
            )
        if url.database in (None, "", ":memory:"):
            return _memory()
        assert url.database is not None
        return _sqlite(Path(url.database))
    if backend == "postgresql":
        return Location(kind="postgresql", url=url.set(drivername="postgresql+psycopg"))
    raise StorageRefused(f"a storage must be {_FORMS}; got a URL with the scheme {scheme!r}")


def _sqlite(path: Path) -> Location:
    path = path.expanduser().absolute()
    url = URL.create("sqlite", database=str(path))
    return Location(kind="sqlite", url=url, path=path)


def _memory() -> Location:
    # SQLite's memdb is one database for all connections of a process, with ordinary locks;
    # ":memory:" would be another one for every thread.
    database = f"file:/autotune-{uuid4().hex}"
    url = URL.create("sqlite", database=database, query={"vfs": "memdb", "uri": "true"})
    return Location(kind="memory", url=url)
