"""Whether this installation and this machine can run studies, and what to do where not."""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement

from autotune import plugins
from autotune.errors import AutotuneError, StorageRefused
from autotune.plugins import BrokenPlugin

if TYPE_CHECKING:
    from autotune.storage import Location

DISTRIBUTION = "scale-across-autotune"

_TOPICS: dict[plugins.Group, str] = {
    "autotune.objectives": "objective",
    "autotune.studies": "study",
    "autotune.exporters": "exporter",
}
_DEVELOPMENT_EXTRAS = ("test", "lint")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


class Verdict(StrEnum):
    """What a check found."""

    OK = "ok"
    ABSENT = "absent"
    """Optional, and not there."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at.

    Attributes:
        topic: What: ``python``, ``package optuna``, ``extra gp``, ``storage``, …
        verdict: Whether it is as it must be.
        detail: What was found.
        remedy: What to do; empty where all is well.
    """

    topic: str
    verdict: Verdict
    detail: str
    remedy: str = ""


def examine(storage: str) -> list[Check]:
    """Look at everything that a study needs.

    Args:
        storage: Where studies are to be kept; not changed.
    """
    return [
        check_python(),
        *check_packages(requires(DISTRIBUTION) or ()),
        *check_plugins(),
        check_storage(storage),
        check_machine(),
    ]


def check_python() -> Check:
    """The interpreter's version."""
    return Check(
        topic="python",
        verdict=Verdict.OK if sys.version_info >= (3, 11) else Verdict.FAILED,
        detail=f"{platform.python_version()} at {sys.executable}",
        remedy="" if sys.version_info >= (3, 11) else "install Python 3.11 or later",
    )


def check_packages(requirements: Sequence[str]) -> Iterator[Check]:
    """The packages that are needed, then those that an extra adds.

    Args:
        requirements: As in the package's metadata; those for developers are passed over.
    """
    yield _check_package(Requirement(DISTRIBUTION), extra="")
    for text in requirements:
        requirement = Requirement(text)
        match = _EXTRA.search(str(requirement.marker or ""))
        extra = match.group(1) if match else ""
        if extra not in _DEVELOPMENT_EXTRAS:
            yield _check_package(requirement, extra=extra)


def _check_package(requirement: Requirement, *, extra: str) -> Check:
    wanted = f"{DISTRIBUTION}[{extra}]" if extra else DISTRIBUTION
    install = f"pip install '{wanted}'"
    topic = f"extra {extra}" if extra else "package"
    try:
        found = version(requirement.name)
    except PackageNotFoundError:
        verdict = Verdict.ABSENT if extra else Verdict.FAILED
        return Check(
            topic=topic,
            verdict=verdict,
            detail=f"{requirement.name} is not installed",
            remedy=install,
        )
    if not requirement.specifier.contains(found, prereleases=True):
        detail = f"{requirement.name} {found}, needs {requirement.specifier}"
        return Check(topic=topic, verdict=Verdict.FAILED, detail=detail, remedy=install)
    return Check(topic=topic, verdict=Verdict.OK, detail=f"{requirement.name} {found}")


def check_plugins() -> Iterator[Check]:
    """Whether all objectives, studies and exporters that are installed can be loaded."""
    for group in _TOPICS:
        for name, point in plugins.installed(group).items():
            topic = f"{_TOPICS[group]} {name}"
            try:
                loaded = plugins.load(group, name)
                if group == "autotune.studies" and callable(loaded):
                    loaded()
            except (Exception, SystemExit) as error:  # whatever a third party's function raises
                fault = (error.__cause__ or error) if isinstance(error, BrokenPlugin) else error
                yield Check(
                    topic=topic,
                    verdict=Verdict.FAILED,
                    detail=f"{point.value} cannot be loaded: {type(fault).__name__}: {fault}",
                    remedy=f"reinstall or remove the package that offers {name!r}",
                )
            else:
                yield Check(topic=topic, verdict=Verdict.OK, detail=point.value)


def check_storage(storage: str) -> Check:
    """Whether studies can be kept there; makes no file that stays."""
    from autotune.storage import locate
    from autotune.storage.checks import check_sqlite_file

    try:
        location = locate(storage)
        if location.kind == "memory":
            detail = "in memory, lost at the end"
        elif location.path is None:
            detail = _check_server(location)
        elif check_sqlite_file(location.path, for_writing=True):
            detail = f"{location} can be read and written"
        else:
            with tempfile.TemporaryFile(dir=location.path.parent):
                detail = f"{location} will be made by the first run"
    except OSError as error:
        return Check(
            topic="storage",
            verdict=Verdict.FAILED,
            detail=f"{Path(storage).absolute().parent} cannot be written: {error.strerror}",
            remedy="choose another place with --storage",
        )
    except AutotuneError as error:
        remedy = "choose another place with --storage" if isinstance(error, StorageRefused) else ""
        return Check(topic="storage", verdict=Verdict.FAILED, detail=str(error), remedy=remedy)
    return Check(topic="storage", verdict=Verdict.OK, detail=detail)


def _check_server(location: Location) -> str:
    from sqlalchemy import create_engine
    from sqlalchemy.exc import SQLAlchemyError

    from autotune.storage.checks import check_schema

    try:
        engine = create_engine(location.url)
        with engine.connect() as connection:
            known = check_schema(connection, str(location))
        engine.dispose()
    except (SQLAlchemyError, ImportError) as error:
        raise StorageRefused(f"{location} cannot be reached: {error}") from error
    return f"{location} {'can be used' if known else 'will get its tables by the first run'}"


def check_machine() -> Check:
    """How many cores this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return Check(
        topic="machine",
        verdict=Verdict.OK,
        detail=f"{cores} cores for --n-jobs, {platform.system()} {platform.machine()}",
    )
