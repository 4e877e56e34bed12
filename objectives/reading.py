"""Reading tables of a user's file: every value checked, every problem reported at once.

A table is described by a mapping from its keys to `Field`; converters are plain functions that
return the value or raise a `ValueError` that starts with what must hold. Tables nest, because
`table` makes a converter of a whole table.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from autotune.errors import InvalidInput, Problem
from objectives.units import EXAMPLES, parse_quantity

Converter = Callable[[Any], Any]
"""Turns a raw value into a checked one, or raises `ValueError`."""

Check = Callable[[dict[str, Any]], list[Problem]]
"""What is wrong between the values of a table that are right one by one."""

REQUIRED = object()
"""The default of a key that must be given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One key of a table.

    Attributes:
        convert: Checks and converts the value.
        default: Used as it is where the key is missing; `REQUIRED` makes that a problem.
        name: Key of the result; the table's own key when empty.
        example: Shown where the key is missing.
    """

    convert: Converter
    default: Any = REQUIRED
    name: str = ""
    example: str = ""


def read_table(
    data: object,
    fields: Mapping[str, Field],
    *,
    what: str,
    check: Check | None = None,
    others_allowed: bool = False,
) -> dict[str, Any]:
    """Read a table.

    Args:
        data: What should be a mapping with the keys of ``fields``.
        fields: The keys that it may have.
        what: The table, for the error.
        check: Looks at the converted values, by the fields' names, once each of them is right.
        others_allowed: Whether keys that are not in ``fields`` are ignored.

    Returns:
        Converted values and defaults by the fields' names.

    Raises:
        InvalidInput: With every problem of the table and the tables in it.
    """
    if not isinstance(data, Mapping):
        raise InvalidInput(what, f"must be a table, got {shown(data)}")
    problems: list[Problem] = []
    values: dict[str, Any] = {}
    for key, field in fields.items():
        name = field.name or key
        if key not in data:
            if field.default is REQUIRED:
                problems.append(Problem(path=key, message=_missing(key, field, data, fields)))
            values[name] = field.default
            continue
        try:
            values[name] = field.convert(data[key])
        except ValueError as error:
            problems.extend(problems_of(error, key))
    if check is not None and not problems:
        problems.extend(check(values))
    if not others_allowed:
        problems.extend(unknown_keys(data, fields))
    if problems:
        raise InvalidInput(what, problems)
    return values


def unknown_keys(data: Mapping[str, Any], known: Iterable[str]) -> list[Problem]:
    """A problem for every key that is not known, with the nearest known one."""
    names = list(known)
    return [
        Problem(path=str(key), message=f"is not a known key; {_alternatives(str(key), names)}")
        for key in data
        if key not in names
    ]


def problems_of(error: ValueError, path: str) -> list[Problem]:
    """The problems that an error carries, at a path."""
    if isinstance(error, InvalidInput):
        return [
            Problem(path=joined(path, problem.path), message=problem.message)
            for problem in error.problems
        ]
    return [Problem(path=path, message=str(error))]


def joined(path: str, key: str) -> str:
    """The path of a key inside a path: ``link`` and ``node`` give ``link.node``."""
    if not path or not key or key.startswith("["):
        return path + key
    return f"{path}.{key}"


def shown(value: object) -> str:
    """A value as an error shows it: short."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def text(value: Any) -> str:
    """Accept text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"must be text, got {shown(value)}")
    return value


def flag(value: Any) -> bool:
    """Accept true or false."""
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, got {shown(value)}")
    return value


def whole(*, minimum: int) -> Converter:
    """Accept whole numbers of at least a minimum; 3.0 and true are none."""

    def convert(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            raise ValueError(f"must be a whole number of at least {minimum}, got {shown(value)}")
        return value

    return convert


def number(*, minimum: float = -math.inf, maximum: float = math.inf) -> Converter:
    """Accept finite plain numbers in a range, and percentages as text."""

    def convert(value: Any) -> float:
        result = parse_quantity(value, "1")
        if not minimum <= result <= maximum:
            raise ValueError(f"must be {_range(minimum, maximum)}, got {shown(value)}")
        return result

    return convert


def quantity(unit: str, *, positive: bool = True) -> Converter:
    """Accept text with a unit, above zero or, where not ``positive``, at least zero."""

    def convert(value: Any) -> float:
        result = parse_quantity(value, unit)
        if result < 0 or (positive and result == 0):
            bound = "more than zero" if positive else "at least zero"
            raise ValueError(f'must be {bound}, such as "{EXAMPLES[unit]}", got {shown(value)}')
        return result

    return convert


def choice(*values: str) -> Converter:
    """Accept one of some texts."""

    def convert(value: Any) -> str:
        if value not in values or not isinstance(value, str):
            hint = nearest(str(value), values)
            known = ", ".join(f'"{v}"' for v in values)
            raise ValueError(f"must be one of {known}, got {shown(value)}{hint}")
        return value

    return convert


def optional(convert: Converter) -> Converter:
    """Accept also null, as None."""
    return lambda value: None if value is None else convert(value)


def table(
    fields: Mapping[str, Field], build: Callable[..., Any] = dict, *, check: Check | None = None
) -> Converter:
    """Accept a table and build something of its values, given by keyword."""
    return lambda data: build(**read_table(data, fields, what="table", check=check))


def each(convert: Converter, *, at_least: int = 0) -> Converter:
    """Accept a list and convert its items into a tuple."""

    def convert_all(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple) or len(value) < at_least:
            raise ValueError(f"must be a list of at least {at_least}, got {shown(value)}")
        items = {f"[{i}]": item for i, item in enumerate(value)}
        return tuple(_converted(items, convert).values())

    return convert_all


def by_name(convert: Converter, *, name: Converter = text) -> Converter:
    """Accept a table whose keys are free, or as ``name`` has them, and convert its values."""

    def convert_all(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise ValueError(f"must be a table, got {shown(value)}")
        return _converted(value, convert, name)

    return convert_all


def _converted(
    items: Mapping[str, Any], convert: Converter, name: Converter = text
) -> dict[str, Any]:
    problems: list[Problem] = []
    values: dict[str, Any] = {}
    for key, item in items.items():
        try:
            values[name(key)] = convert(item)
        except ValueError as error:
            problems.extend(problems_of(error, key))
    if problems:
        raise InvalidInput("table", problems)
    return values


def _missing(key: str, field: Field, data: Mapping[str, Any], fields: Mapping[str, Field]) -> str:
    example = f"; give it, such as {field.example}" if field.example else ""
    return f"is missing{example}{nearest(key, [str(k) for k in data if k not in fields])}"


def _alternatives(key: str, names: list[str]) -> str:
    return f"known: {', '.join(names)}{nearest(key, names)}"


def nearest(key: str, names: Iterable[str]) -> str:
    """The end of an error: the nearest of some names, or nothing where none is near."""
    folded = {name.lower(): name for name in names}
    wanted = key.lower()
    near = [name for name in folded if wanted and name.startswith(wanted)]
    near = near or difflib.get_close_matches(wanted, folded, n=1)
    return f'; did you mean "{folded[near[0]]}"?' if near else ""


def _range(minimum: float, maximum: float) -> str:
    if math.isinf(maximum):
        return f"at least {minimum:g}"
    if math.isinf(minimum):
        return f"at most {maximum:g}"
    return f"from {minimum:g} to {maximum:g}"
