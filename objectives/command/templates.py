"""Texts with ``{name}`` in them, filled from a config without ever making two texts of one."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from autotune.jsonable import canonical_json

RESERVED = (
    "run_directory",
    "config_file",
    "design_point_file",
    "definition_directory",
    "python",
    "seed",
)
"""Names that stand for something else than a parameter.

``run_directory`` is a fresh directory of this run; ``config_file`` and ``design_point_file`` are
JSON files in it with the whole config and the design point's content; ``definition_directory`` is
where the definition's file is; ``python`` is this interpreter; ``seed`` is the evaluation's.
"""

# {{name}} stays as {name}; any other brace is literal, so that JSON and TOML need no escapes.
_PLACEHOLDER = re.compile(r"\{\{([A-Za-z_][\w.-]*)\}\}|\{([A-Za-z_][\w.-]*)\}")


class Unfillable(ValueError):
    """A template that a config cannot fill; says which and why."""


def placeholders(template: str) -> list[str]:
    """Names that a template refers to, in order."""
    return [match[2] for match in _PLACEHOLDER.finditer(template) if match[2]]


def fill(template: str, values: Mapping[str, Any]) -> str:
    """Put values in place of their names.

    Raises:
        Unfillable: If a name has no value, or a value no text.
    """

    def value(match: re.Match[str]) -> str:
        literal, name = match.groups()
        if literal:
            return f"{{{literal}}}"
        if name not in values:
            known = ", ".join(values)
            raise Unfillable(
                f"{{{name}}} in {template!r} is no parameter of the config; known: {known}"
            )
        return as_text(name, values[name])

    return _PLACEHOLDER.sub(value, template)


def fill_argument(template: str, values: Mapping[str, Any]) -> str:
    """Fill a template of one command-line argument.

    Raises:
        Unfillable: Also where a value would turn a positional argument into an option.
    """
    filled = fill(template, values)
    starts_with_value = _PLACEHOLDER.match(template) is not None
    if starts_with_value and filled.startswith("-"):
        name = placeholders(template)[0] if placeholders(template) else template
        raise Unfillable(
            f"the argument {template!r} would become {filled!r}, which programs take for an "
            f'option; write it as "--{name}={{{name}}}"'
        )
    return filled


def fill_all(templates: Sequence[str], values: Mapping[str, Any]) -> list[str]:
    """Fill the program and its arguments, one argument for each template."""
    return [fill_argument(template, values) for template in templates]


def as_text(name: str, value: Any) -> str:
    """A parameter's value as a program reads it: ``true``, ``0.5``, ``ring``, ``[8, 1]``.

    Raises:
        Unfillable: If it has no such text: not a finite number, or with a null character.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        raise Unfillable(f"parameter {name} must be finite, got {value}")
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        if "\0" in value:
            raise Unfillable(f"parameter {name} must not have a null character, got {value!r}")
        return value
    if isinstance(value, list | tuple | Mapping):
        return canonical_json(value)
    raise Unfillable(
        f"parameter {name} must be a number, text, true or false, got {type(value).__name__}"
    )
