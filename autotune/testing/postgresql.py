"""A PostgreSQL server that lives as long as a test run, where one is installed."""

from __future__ import annotations

import getpass
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

SERVER_VARIABLE = "AUTOTUNE_TEST_POSTGRESQL"
"""Environment variable with the URL of a server to use instead, such as
``postgresql+psycopg://user:password@host/postgres``; the user must be able to make databases."""

_START_TIMEOUT_S = 30.0


class NoServer(Exception):
    """No PostgreSQL can be started here; says why."""


@contextmanager
def temporary_server() -> Iterator[str]:
    """Run a server on a Unix socket of its own, without durability; gone at the end.

    Yields:
        The URL of its database ``postgres``.

    Raises:
        NoServer: If PostgreSQL or its driver is missing or does not start.
    """
    if url := os.environ.get(SERVER_VARIABLE):
        yield url
        return
    binaries = _binaries()
    account = _account()
    # Not pytest's folder: the path of a socket must stay below 108 characters.
    folder = Path(tempfile.mkdtemp(prefix="autotune-pg-"))
    server = None
    try:
        shutil.chown(folder, account)
        _initialise(binaries, folder / "data", account)
        server = _start(binaries, folder, account)
        url = f"postgresql+psycopg://{account}@/postgres?host={folder}"
        _wait(url, server, folder / "log")
        yield url
    finally:
        if server is not None:
            server.send_signal(signal.SIGINT)  # does not wait for clients, unlike SIGTERM
            server.wait(timeout=_START_TIMEOUT_S)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def temporary_database(server: str) -> Iterator[str]:
    """Make an empty database on a server and drop it at the end.

    Args:
        server: As yielded by `temporary_server`.

    Yields:
        The URL of the database.
    """
    name = f"autotune_{uuid4().hex[:12]}"
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        yield engine.url.set(database=name).render_as_string(hide_password=False)
        with engine.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    finally:
        engine.dispose()


def _binaries() -> Path:
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise NoServer(
            "psycopg is not installed: pip install 'scale-across-autotune[postgresql]'"
        ) from error
    # Debian keeps initdb outside the PATH, one folder a version.
    folders = [
        *(Path(folder) for folder in os.get_exec_path()),
        *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True),
    ]
    for folder in folders:
        if (folder / "initdb").is_file() and (folder / "postgres").is_file():
            return folder
    raise NoServer("PostgreSQL is not installed: neither initdb nor postgres was found")


def _account() -> str:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return getpass.getuser()
    accounts = {entry.pw_name for entry in pwd.getpwall()}
    for name in ("postgres", "nobody"):
        if name in accounts:
            return name
    raise NoServer("PostgreSQL does not run as root, and there is no account postgres or nobody")


def _initialise(binaries: Path, data: Path, account: str) -> None:
    command = [
        str(binaries / "initdb"), "--pgdata", str(data), "--username", account,
        "--auth", "trust", "--no-sync", "--encoding", "UTF8", "--locale", "C",
    ]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, user=_switch(account), cwd="/", check=False
    )
    if done.returncode:
        raise NoServer(f"initdb failed: {done.stderr.strip()}")


def _start(binaries: Path, folder: Path, account: str) -> subprocess.Popen[bytes]:
    settings = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "listen_addresses=")
    command = [str(binaries / "postgres"), "-D", str(folder / "data"), "-k", str(folder)]
    for setting in settings:
        command += ["-c", setting]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, user=_switch(account), cwd="/")


def _switch(account: str) -> str | None:
    return account if os.geteuid() == 0 else None


def _wait(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    engine = create_engine(url)
    deadline = time.monotonic() + _START_TIMEOUT_S
    while True:
        try:
            engine.connect().close()
        except OperationalError as error:
            if server.poll() is not None or time.monotonic() > deadline:
                said = log.read_text(errors="replace")
                raise NoServer(f"PostgreSQL did not start: {said}") from error
            time.sleep(0.05)
        else:
            return
        finally:
            engine.dispose()
