"""The buildings of a cluster file: sizes that divide, names that exist, links that join them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from autotune.errors import InvalidInput, Problem
from objectives.cluster.accelerators import accelerator_presets
from objectives.cluster.tables import BUILDING
from objectives.reading import Converter, each, nearest, table

_CUT_EXAMPLE = '{ capacity = "12.8 Tbit/s", distance = "10 km" }'


def buildings_of(accelerators: Sequence[str]) -> Converter:
    """Make the converter of the ``[[building]]`` tables.

    Args:
        accelerators: Names that the file or a preset describes.
    """

    def check(values: dict[str, Any]) -> list[Problem]:
        return [*_sizes(values), *_accelerator(values["accelerator"], accelerators)]

    def building(*, gpus_per_zone: int | None, **values: Any) -> dict[str, Any]:
        return {**values, "gpus_per_zone": gpus_per_zone or values["gpus"]}

    def convert(data: Any) -> tuple[dict[str, Any], ...]:
        rows: tuple[dict[str, Any], ...] = each(table(BUILDING, building, check=check), at_least=1)(
            data
        )
        counts = Counter(row["name"] for row in rows)
        repeated = [
            Problem(path=f"[{i}].name", message=f"must be unique, got {row['name']!r} again")
            for i, row in enumerate(rows)
            if counts[row["name"]] > 1 and row["name"] in [other["name"] for other in rows[:i]]
        ]
        if repeated:
            raise InvalidInput("building", repeated)
        return rows

    return convert


def _sizes(values: Mapping[str, Any]) -> list[Problem]:
    gpus, per_node, per_zone = (values[key] for key in ("gpus", "gpus_per_node", "gpus_per_zone"))
    checks = (
        ("gpus", gpus, per_node, f"gpus_per_node = {per_node}"),
        ("gpus_per_zone", per_zone, per_node, f"gpus_per_node = {per_node}"),
        ("gpus", gpus, per_zone, f"gpus_per_zone = {per_zone}"),
    )
    return [
        Problem(path=path, message=f"must be a multiple of {divisor}, got {value}")
        for path, value, by, divisor in checks
        if value is not None and by is not None and value % by
    ]


def _accelerator(name: str, known: Sequence[str]) -> list[Problem]:
    if name in known:
        return []
    presets = list(accelerator_presets())
    message = (
        f"must be a table [accelerator.{name}] of this file or one of {', '.join(presets)}; got "
        f"{name!r}{nearest(name, known)}"
    )
    return [Problem(path="accelerator", message=message)]


def missing_links(data: object) -> list[Problem]:
    """Links that a file's buildings need and that it does not describe.

    Args:
        data: The file's tables, not yet checked.
    """
    if not isinstance(data, Mapping) or not isinstance(data.get("building"), list | tuple):
        return []
    rows = [row for row in data["building"] if isinstance(row, Mapping)]
    links = data.get("link")
    given = links if isinstance(links, Mapping) else {}
    regions = Counter(str(row.get("region", "home")) for row in rows)
    needed = {
        "building": (
            any(row.get("gpus_per_zone", row.get("gpus")) != row.get("gpus") for row in rows),
            'a building has several zones; give it, such as { bandwidth = "400 Gbit/s", '
            'latency = "5 us", oversubscription = 7 }',
        ),
        "between_buildings": (
            any(count > 1 for count in regions.values()),
            f"a region has several buildings; give it, such as {_CUT_EXAMPLE}",
        ),
        "between_regions": (
            len(regions) > 1,
            f"there are {len(regions)} regions; give it, such as {_CUT_EXAMPLE}",
        ),
    }
    return [
        Problem(path=f"link.{link}", message=f"is missing: {why}")
        for link, (need, why) in needed.items()
        if need and link not in given
    ]
