"""Whether what a database holds is Optuna's tables at the one revision that is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from autotune.errors import StorageRefused
from autotune.storage.schema import COLUMNS, REVISION

_LEFT = "it was left as it was"
_INSTEAD = "Give a path that does not exist yet, or a storage of this program or of Optuna"
_LISTED = 5


def has_tables(
    columns: Mapping[str, frozenset[str]], read: Callable[[str], Sequence[object]], shown: str
) -> bool:
    """Refuse a database that another program, or another version of Optuna, has made.

    Names alone say little: many programs have a table named ``trials``.

    Args:
        columns: Names of the columns, by table or view; all there are.
        read: Gives the first column of a table; only asked of Optuna's.
        shown: The storage as named to the user.

    Returns:
        Whether the tables are there; False where they are still to be made, in an empty database
        or in one where the making was cut short.

    Raises:
        StorageRefused: With what is wrong and what to do.
    """
    if not columns:
        return False
    odd = [name for name in COLUMNS if name in columns and not COLUMNS[name] <= columns[name]]
    versioned = "alembic_version" in columns and "alembic_version" not in odd
    revisions = [str(each) for each in read("alembic_version")] if versioned else []
    if revisions and revisions != [REVISION] and {"studies", "version_info"} <= set(columns):
        raise _other_revision(revisions, shown)
    if revisions == [REVISION]:
        if wrong := [*odd, *(name for name in COLUMNS if name not in columns)]:
            raise StorageRefused(
                f"{shown} says that it has Optuna's schema {REVISION}, and its tables "
                f"{', '.join(wrong)} are others or missing; {_LEFT}. {_INSTEAD}"
            )
        return True
    if revisions or not _is_half_made(columns, read):
        raise _of_another_program(columns, odd, shown)
    return False


def _is_half_made(
    columns: Mapping[str, frozenset[str]], read: Callable[[str], Sequence[object]]
) -> bool:
    """Whether another process is making the tables right now, or was ended while it did."""
    if any(COLUMNS.get(name) != held for name, held in columns.items()):
        return False
    # The version comes last; by itself it belongs to any of the programs that use Alembic.
    if "alembic_version" in columns and set(columns) != set(COLUMNS):
        return False
    return not any(read(name) for name in ("studies", "trials") if name in columns)


def _other_revision(revisions: Sequence[str], shown: str) -> StorageRefused:
    return StorageRefused(
        f"{shown} has Optuna's schema at revision {', '.join(revisions)}, and this version needs "
        f"{REVISION}; {_LEFT}. An older one is brought up by `optuna storage upgrade --storage "
        "URL` (make a copy first); a newer one needs a newer release of this program"
    )


def _of_another_program(
    columns: Mapping[str, frozenset[str]], odd: Sequence[str], shown: str
) -> StorageRefused:
    foreign = sorted(set(columns) - set(COLUMNS))
    listing = ", ".join((foreign or sorted(columns))[:_LISTED])
    named = f"; {', '.join(odd)} have Optuna's names and other columns" if odd else ""
    return StorageRefused(
        f"{shown} is the database of another program (tables: {listing}{named}); {_LEFT}. "
        f"{_INSTEAD}"
    )
