"""The accelerators that ship with the package, and their place in a cluster file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from autotune.errors import InvalidInput, Problem
from objectives.reading import nearest


def accelerator_presets() -> dict[str, dict[str, Any]]:
    """The shipped accelerators by name, as they would stand in a cluster file."""
    return {name: dict(figures) for name, figures in _presets().items()}


@cache
def _presets() -> dict[str, dict[str, Any]]:
    content = files("objectives.cluster").joinpath("accelerators.toml").read_text(encoding="utf-8")
    return tomllib.loads(content)


def with_presets(data: Mapping[str, Any]) -> dict[str, Any]:
    """Write the presets that a cluster file names into its own accelerator tables.

    So the file's content is complete: editing a figure works, and a new version of a preset
    does not change a stored scenario. A table ``[accelerator.NAME]`` of the file goes before a
    preset of that name, and takes what it does not say from ``preset = "…"``.

    Raises:
        InvalidInput: If a table builds on a preset that does not exist.
    """
    tables = data.get("accelerator", {}) if isinstance(data, Mapping) else None
    if not isinstance(tables, Mapping):
        return data  # type: ignore[return-value]  # the reader says what is wrong with it
    problems: list[Problem] = []
    complete: dict[str, Any] = {}
    for name, figures in tables.items():
        base = figures.get("preset") if isinstance(figures, Mapping) else None
        if base is None:
            complete[name] = figures
        elif base in _presets():
            own = {key: value for key, value in figures.items() if key != "preset"}
            complete[name] = {**_presets()[base], **own}
        else:
            problems.append(Problem(path=f"accelerator.{name}.preset", message=_unknown(base)))
    if problems:
        raise InvalidInput("cluster", problems)
    for name in _used(data):
        if name not in complete and name in _presets():
            complete[name] = dict(_presets()[name])
    return {**data, "accelerator": complete} if complete else dict(data)


def _used(data: Mapping[str, Any]) -> list[str]:
    rows = data.get("building")
    rows = rows if isinstance(rows, list | tuple) else []
    named = [row.get("accelerator") for row in rows if isinstance(row, Mapping)]
    return [name for name in dict.fromkeys(named) if isinstance(name, str)]


def _unknown(name: object) -> str:
    names = list(_presets())
    return f"must be one of {', '.join(names)}; got {name!r}{nearest(str(name), names)}"
