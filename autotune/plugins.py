"""Objectives, studies and exporters found through entry points."""

from __future__ import annotations

import logging
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from autotune.errors import AutotuneError, UnknownName

Group = Literal["autotune.objectives", "autotune.studies", "autotune.exporters"]

_KIND = {
    "autotune.objectives": "objective",
    "autotune.studies": "study",
    "autotune.exporters": "exporter",
}


class BrokenPlugin(AutotuneError):
    """An installed package offers what cannot be loaded: its module is missing or fails."""


_logger = logging.getLogger(__name__)


@cache
def installed(group: Group) -> dict[str, EntryPoint]:
    """Every entry point of a group by name; a second one of a name is warned of and ignored."""
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=group):
        if point.name in found and found[point.name].value != point.value:
            _logger.warning(
                "%s %r is offered twice; using %s, ignoring %s",
                group,
                point.name,
                found[point.name].value,
                point.value,
            )
        found.setdefault(point.name, point)
    return found


def load(group: Group, name: str) -> Any:
    """Load what an installed package offers under a name.

    Raises:
        UnknownName: If no installed package offers it; lists those that are.
        BrokenPlugin: If loading it fails, for whatever reason.
    """
    points = installed(group)
    if name not in points:
        raise UnknownName(_KIND[group], name, points)
    point = points[name]
    try:
        return point.load()
    except (Exception, SystemExit) as error:  # whatever a third party's module raises
        package = f" of {point.dist.name}" if point.dist else ""
        raise BrokenPlugin(
            f"{_KIND[group]} {name!r}{package} cannot be loaded from {point.value}: "
            f"{type(error).__name__}: {error}; reinstall or remove the package that offers it"
        ) from error
