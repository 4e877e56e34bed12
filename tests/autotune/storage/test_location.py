from __future__ import annotations

from pathlib import Path

import pytest

from autotune.errors import StorageRefused
from autotune.storage import locate, open_storage

SECRET = "s3cr3t"


@pytest.mark.parametrize("text", ["a/studies.db", "sqlite:///a/studies.db", Path("a/studies.db")])
def test_paths_and_urls_mean_the_same_file(text: str | Path) -> None:
    location = locate(text)
    assert location.kind == "sqlite"
    assert location.path == Path("a/studies.db").absolute()
    assert str(location) == str(location.path)


@pytest.mark.parametrize("text", ["memory", "sqlite://", "sqlite:///:memory:"])
def test_memory(text: str) -> None:
    first, second = locate(text), locate(text)
    assert first.kind == "memory"
    assert first.url != second.url


def test_postgresql_gets_the_installed_driver() -> None:
    assert locate("postgresql://u@h/d").url.drivername == "postgresql+psycopg"


@pytest.mark.parametrize(
    "text", ["", "mysql://u@h/d", "redis://h", "postgresql://u:p@h:port/d", "journal.log://x"]
)
def test_everything_else_is_refused_with_what_is_possible(text: str) -> None:
    with pytest.raises(StorageRefused, match=r"postgresql\+psycopg://user@host/database"):
        locate(text)


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://u:{SECRET}@localhost:1/d",
        f"postgresql://u@localhost:1/d?password={SECRET}",
        f"postgresql://u:{SECRET}@localhost:port/d",
        f"mysql://u:{SECRET}@h/d",
        f"postgresql:/u:{SECRET}@h/d",
        f"postgresql:u:{SECRET}@h/d",
        f"postgres:/u:{SECRET}@h/d",
        f"PostgreSQL+psycopg:/u:{SECRET}@h/d",
        f"u:{SECRET}@h/d",
        f"u:{SECRET}@h://d",
        f"u:{SECRET}/more@h://d",
        f"sqlite://u:{SECRET}@h/x.db",
        f"sqlite:u:{SECRET}@h/x.db",
        f"postgresql://u:{SECRET}@localhost:1/d?nosuch=1",
        f"postgresql://u:{SECRET}@localhost:1/d?nosuch={SECRET}",
        Path(f"postgresql://u:{SECRET}@h/d"),
    ],
)
def test_no_message_has_the_password(
    text: str | Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StorageRefused) as caught:
        open_storage(text)
    assert list(tmp_path.iterdir()) == []
    error: BaseException | None = caught.value
    while error is not None:
        assert SECRET not in str(error)
        error = error.__cause__


@pytest.mark.parametrize("name", ["./a:b@c.db", "/data/a:b@c.db", "run-12:30.db", "me@home.db"])
def test_odd_names_of_files_stay_possible(name: str) -> None:
    assert locate(name).path == Path(name).absolute()


def test_a_url_of_a_file_has_no_host() -> None:
    with pytest.raises(StorageRefused, match="three slashes"):
        locate("sqlite://folder/studies.db")


def test_no_repr_has_the_password() -> None:
    location = locate(f"postgresql://u:{SECRET}@h/d?password={SECRET}")
    assert SECRET not in str(location) + repr(location)
