"""Clusters from TOML files and presets."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autotune.errors import InvalidInput, Problem
from objectives.cluster.accelerators import accelerator_presets, with_presets
from objectives.cluster.buildings import buildings_of, missing_links
from objectives.cluster.cluster import Accelerator, Building, Cluster, Link
from objectives.cluster.tables import ACCELERATOR, LINKS
from objectives.files import preset_names, read_input
from objectives.reading import Field, by_name, read_table, table, text

__all__ = [
    "accelerator_presets",
    "cluster_presets",
    "load_cluster",
    "parse_cluster",
    "read_cluster",
]

_PACKAGE = "objectives.cluster"


def load_cluster(source: str | Path) -> Cluster:
    """Read a cluster from a preset's name or a TOML file.

    Raises:
        UnknownName: If it is neither; lists the presets.
        InvalidInput: With everything wrong with the file.
    """
    return parse_cluster(read_cluster(source), what=f"cluster {source}")


def read_cluster(source: str | Path) -> dict[str, Any]:
    """Read the tables of a preset or a TOML file as they stand, units as text.

    Raises:
        UnknownName: If it is neither; lists the presets.
        InvalidInput: If it is no TOML.
    """
    content = read_input(source, package=_PACKAGE, suffix=".toml", kind="cluster")
    try:
        return tomllib.loads(content)
    except (ValueError, RecursionError) as error:  # also endless nesting and numbers
        raise InvalidInput(f"cluster {source}", f"must be TOML: {error}") from error


def cluster_presets() -> list[str]:
    """Names of the clusters that ship with the package."""
    return preset_names(_PACKAGE, ".toml")


def parse_cluster(data: Mapping[str, Any], *, what: str = "cluster") -> Cluster:
    """Turn the tables of a cluster file into a `Cluster`.

    Args:
        data: The tables ``accelerator``, ``building`` and ``link``, quantities as text.
        what: The cluster, for errors.

    Raises:
        InvalidInput: With every problem, each under its path, such as
            ``link.between_buildings.capacity``.
    """
    problems: list[Problem] = []
    try:
        data = with_presets(data)
    except InvalidInput as error:
        problems.extend(error.problems)
    unreadable = tuple(problem.path.removesuffix("preset") for problem in problems)
    described = data.get("accelerator") if isinstance(data, Mapping) else None
    known = [*(described if isinstance(described, Mapping) else ()), *accelerator_presets()]
    fields = {
        "name": Field(convert=text, default=""),
        "accelerator": Field(convert=by_name(table(ACCELERATOR)), default={}),
        "building": Field(convert=buildings_of(known), example="[[building]]"),
        "link": Field(convert=table(LINKS), example="[link.node]"),
    }
    try:
        values = read_table(data, fields, what=what)
    except InvalidInput as error:
        problems.extend(p for p in error.problems if not p.path.startswith(unreadable))
    problems.extend(missing_links(data))
    if problems:
        raise InvalidInput(what, problems)
    return _cluster(values)


def _cluster(values: Mapping[str, Any]) -> Cluster:
    accelerators = {
        name: Accelerator(name=name, **figures) for name, figures in values["accelerator"].items()
    }
    buildings = tuple(
        Building(**{**row, "accelerator": accelerators[row["accelerator"]]})
        for row in values["building"]
    )
    links = values["link"]
    across: Link = links["building"] or links["zone"]
    name = values["name"] or "+".join(building.name for building in buildings)
    return Cluster(name=name, buildings=buildings, **{**links, "building": across})
