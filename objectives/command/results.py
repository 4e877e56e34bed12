"""Reading numbers out of what a program printed or wrote."""

from __future__ import annotations

import json
import math
import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from objectives.command.definition import Definition, Reading
from objectives.reading import nearest, shown

_READ_BYTES = 1 << 20
"""How much of the end of an output is looked at."""


class Unusable(ValueError):
    """A result that is missing, not a number, or not finite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The ends of what a program printed."""

    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """The values of one run, all finite."""

    metrics: Mapping[str, float]
    constraints: Mapping[str, float]
    breakdown: Mapping[str, float]


def read_output(stdout: Path, stderr: Path) -> Output:
    """Read the ends of both output files."""
    return Output(stdout=_end_of(stdout), stderr=_end_of(stderr))


def read_results(definition: Definition, output: Output, run_directory: Path) -> Results:
    """Read every metric and constraint.

    Raises:
        Unusable: Naming the first one that is not there or not a finite number.
    """
    readings = (*definition.metric_readings, *definition.constraint_readings)
    needs_json = definition.breakdown_key or any(reading.pattern is None for reading in readings)
    data = _json_object(definition, output, run_directory) if needs_json else {}
    return Results(
        metrics=_values(definition.metric_readings, data, output),
        constraints=_values(definition.constraint_readings, data, output),
        breakdown=_breakdown(definition.breakdown_key, data),
    )


def _values(
    readings: Sequence[Reading], data: Mapping[str, Any], output: Output
) -> dict[str, float]:
    return {
        reading.name: _finite(reading.name, _found(reading, data, output)) - reading.at_most
        for reading in readings
    }


def _found(reading: Reading, data: Mapping[str, Any], output: Output) -> Any:
    if reading.pattern is None:
        return _at(data, reading.key)
    match = _last_match(reading.pattern, output.stdout) or _last_match(
        reading.pattern, output.stderr
    )
    if match is None:
        raise Unusable(f"{reading.name}: nothing in the output matches {reading.pattern.pattern!r}")
    try:
        return float(match[1])
    except (TypeError, ValueError) as error:
        raise Unusable(f"{reading.name} must be a number, got {shown(match[1])}") from error


def _last_match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    # A queue of one keeps the last without holding them all.
    last = deque(pattern.finditer(text), maxlen=1)
    return last[0] if last else None


def _json_object(definition: Definition, output: Output, run_directory: Path) -> dict[str, Any]:
    if definition.result_file is None:
        data = _last_json_line(output.stdout)
        if data is None:
            raise Unusable(
                "the output has no line that is a JSON object; the program must print one with "
                f"the keys {', '.join(_keys(definition))}"
            )
        return data
    path = run_directory / definition.result_file
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Unusable(
            f"the result file {definition.result_file} is not readable: {error}"
        ) from error
    data = _parsed(text) or _last_json_line(text)
    if data is None:
        raise Unusable(
            f"the result file {definition.result_file} must hold a JSON object, got {shown(text)}"
        )
    return data


def _last_json_line(text: str) -> dict[str, Any] | None:
    for line in reversed(text.splitlines()):
        if line.lstrip().startswith("{") and (data := _parsed(line)) is not None:
            return data
    return None


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _keys(definition: Definition) -> list[str]:
    readings = (*definition.metric_readings, *definition.constraint_readings)
    return [reading.key for reading in readings if reading.pattern is None]


def _at(data: Mapping[str, Any], key: str) -> Any:
    if key in data:  # a key may itself have a dot
        return data[key]
    place: Any = data
    for part in key.split("."):
        if not isinstance(place, Mapping) or part not in place:
            known = list(place) if isinstance(place, Mapping) else []
            got = shown(known) if known else shown(place)
            raise Unusable(f"the result has no {key}, got {got}{nearest(part, known)}")
        place = place[part]
    return place


def _finite(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unusable(f"{name} must be a number, got {shown(value)}")
    try:
        result = float(value)
    except OverflowError as error:
        raise Unusable(f"{name} must be finite, got {shown(value)}") from error
    if not math.isfinite(result):
        raise Unusable(f"{name} must be finite, got {result}")
    return result


def _breakdown(key: str | None, data: Mapping[str, Any]) -> dict[str, float]:
    if key is None:
        return {}
    terms = _at(data, key)
    if not isinstance(terms, Mapping):
        raise Unusable(f"{key} must be an object of seconds by term, got {shown(terms)}")
    return {str(term): _finite(f"{key}.{term}", seconds) for term, seconds in terms.items()}


def _end_of(path: Path) -> str:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _READ_BYTES))
        return file.read().decode("utf-8", errors="replace")
