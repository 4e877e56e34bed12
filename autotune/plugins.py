"""Objectives, studies and exporters found through entry points."""

from __future__ import annotations

import logging
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from autotune.errors import UnknownName

Group = Literal["autotune.objectives", "autotune.studies", "autotune.exporters"]

_KIND = {
    "autotune.objectives": "objective",
    "autotune.studies": "study",
    "autotune.exporters": "exporter",
}

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
    """
    points = installed(group)
    if name not in points:
        raise UnknownName(_KIND[group], name, points)
    return points[name].load()
