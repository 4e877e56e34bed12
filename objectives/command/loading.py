"""Definitions of commands from TOML files and tables, every problem reported at once."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from autotune.errors import InvalidInput, Problem
from autotune.evaluation import FailureKind
from autotune.jsonable import fingerprint
from autotune.metric import Metric
from objectives.command.definition import OUTPUT_FILES, Definition, FailureRule, Reading
from objectives.command.templates import RESERVED, placeholders
from objectives.reading import (
    Field,
    by_name,
    choice,
    each,
    flag,
    number,
    quantity,
    read_table,
    shown,
    table,
    text,
    whole,
)


def _argv(value: Any) -> tuple[str, ...]:
    argv: tuple[str, ...] = each(_argument, at_least=1)(value)
    if outside := [name for name in placeholders(argv[0]) if name not in RESERVED]:
        message = (
            f"must not depend on a parameter, got {{{outside[0]}}}: a config chooses arguments, "
            "never the program"
        )
        raise InvalidInput("argv", [Problem(path="[0]", message=message)])
    return argv


def _argument(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f'must be text, such as "--size={{size}}", got {shown(value)}')
    if "\0" in value:
        raise ValueError("must not have a null character")
    return value


def inside(value: Any) -> str:
    """Accept a relative path that stays inside the run directory."""
    path = PurePosixPath(text(value))
    if path.is_absolute() or ".." in path.parts or path == PurePosixPath():
        raise ValueError(f"must be a relative path inside the run directory, got {shown(value)}")
    if str(path) in OUTPUT_FILES:
        raise ValueError(f"must not be one of {', '.join(OUTPUT_FILES)}, which hold the output")
    return str(path)


def _variable(value: Any) -> str:
    name = text(value)
    if "=" in name or "\0" in name:
        raise ValueError(f"must be the name of an environment variable, got {shown(value)}")
    return name


def _pattern(value: Any) -> re.Pattern[str]:
    try:
        return re.compile(text(value), re.MULTILINE)
    except re.error as error:
        raise ValueError(f"must be a regular expression, got {shown(value)}: {error}") from error


def _capturing(value: Any) -> re.Pattern[str]:
    pattern = _pattern(value)
    if pattern.groups == 0:
        raise ValueError(f"must have a group (…) around the value, got {shown(value)}")
    return pattern


def _exit_codes(value: Any) -> tuple[int, ...]:
    many = value if isinstance(value, list | tuple) else [value]
    codes: tuple[int, ...] = each(whole(minimum=0))(many)
    return codes


def _recognisable(values: dict[str, Any]) -> list[Problem]:
    if values["exit_codes"] or values["pattern"]:
        return []
    message = "is missing; give an exit_code, a pattern or both"
    return [Problem(path="exit_code", message=message)]


def _rule(*, kind: str, **rest: Any) -> FailureRule:
    return FailureRule(kind=FailureKind(kind), **rest)


_FOUND = {
    "key": Field(convert=text, default=None),
    "pattern": Field(convert=_capturing, default=None),
}

_METRIC = {
    **_FOUND,
    "unit": Field(convert=lambda value: value if value == "" else text(value), default=""),
    "direction": Field(convert=choice("minimize", "maximize"), default="minimize"),
    "label": Field(convert=text, default=""),
}

_CONSTRAINT = {**_FOUND, "at_most": Field(convert=number(), default=0.0)}

_FAILURE = {
    "kind": Field(convert=choice(*FailureKind), example='"oom"'),
    "exit_code": Field(convert=_exit_codes, default=(), name="exit_codes"),
    "pattern": Field(convert=_pattern, default=None),
}

_DEFINITION = {
    "name": Field(convert=text, default="command"),
    "version": Field(convert=text, default="1"),
    "argv": Field(convert=_argv, example='["python", "train.py", "--size={size}"]'),
    "environment": Field(convert=by_name(_argument, name=_variable), default={}),
    "inherit_environment": Field(convert=flag, default=True),
    "working_directory": Field(convert=text, default=None),
    "files": Field(convert=by_name(_argument, name=inside), default={}),
    "result_file": Field(convert=inside, default=None),
    "metric": Field(convert=by_name(table(_METRIC)), example="[metric.step_time_s]"),
    "constraint": Field(convert=by_name(table(_CONSTRAINT)), default={}),
    "breakdown": Field(convert=text, default=None, name="breakdown_key"),
    "failure": Field(
        convert=each(table(_FAILURE, _rule, check=_recognisable)), default=(), name="failures"
    ),
    "timeout": Field(convert=quantity("s"), default=3600.0, name="timeout_s"),
    "grace": Field(convert=quantity("s", positive=False), default=5.0, name="grace_s"),
    "retries": Field(convert=whole(minimum=0), default=0),
    "retry_delay": Field(convert=quantity("s", positive=False), default=1.0, name="retry_delay_s"),
    "memory_limit": Field(convert=quantity("byte"), default=None, name="memory_limit_bytes"),
    "output_limit": Field(convert=quantity("byte"), default=64e6, name="output_limit_bytes"),
    "deterministic": Field(convert=flag, default=False),
    "cost": Field(convert=quantity("s"), default=1.0, name="cost_s"),
    "artifacts": Field(convert=text, default=None),
}


def read_definition(path: str | Path) -> Definition:
    """Read a definition from a TOML file; its relative directories start at the file.

    Raises:
        InvalidInput: With everything wrong with the file.
    """
    path = Path(path)
    what = f"command {path}"
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(what, f"must be a readable UTF-8 file: {error}") from error
    except (ValueError, RecursionError) as error:  # also endless nesting and numbers
        raise InvalidInput(what, f"must be TOML: {error}") from error
    return parse_definition(data, directory=path.resolve().parent, what=what)


def parse_definition(
    data: Mapping[str, Any], *, directory: Path | None = None, what: str = "command"
) -> Definition:
    """Turn the table of a definition into a `Definition`.

    Args:
        data: Keys as in the TOML file: the attributes of `Definition`, quantities as text.
        directory: That relative directories start at, and that ``{definition_directory}``
            stands for; None for the current directory and no such placeholder.
        what: The definition, for errors.

    Raises:
        InvalidInput: With every problem, each under its path.
    """

    def check(values: dict[str, Any]) -> list[Problem]:
        return [*_misfits(values), *(_placeless(values) if directory is None else ())]

    values = read_table(data, _DEFINITION, what=what, check=check)
    metrics, constraints = values.pop("metric"), values.pop("constraint")
    return Definition(
        **{
            **values,
            "working_directory": _based(values["working_directory"], directory),
            "artifacts": _based(values["artifacts"], directory),
        },
        metrics=tuple(
            Metric(name=name, unit=m["unit"], direction=m["direction"], label=m["label"])
            for name, m in metrics.items()
        ),
        metric_readings=tuple(
            Reading(name=name, key=m["key"] or name, pattern=m["pattern"])
            for name, m in metrics.items()
        ),
        constraint_readings=tuple(
            Reading(name=name, key=c["key"] or name, pattern=c["pattern"], at_most=c["at_most"])
            for name, c in constraints.items()
        ),
        directory=directory,
        # Where artifacts go changes no result.
        fingerprint=fingerprint({key: item for key, item in data.items() if key != "artifacts"}),
    )


def _misfits(values: dict[str, Any]) -> list[Problem]:
    problems = []
    metrics, constraints = values["metric"], values["constraint"]
    if not metrics:
        message = "must have at least one metric, such as [metric.step_time_s]"
        problems.append(Problem(path="metric", message=message))
    problems.extend(
        Problem(path=f"constraint.{name}", message="must not have the name of a metric")
        for name in constraints
        if name in metrics
    )
    for group, readings in (("metric", metrics), ("constraint", constraints)):
        problems.extend(
            Problem(path=f"{group}.{name}", message="must have a key or a pattern, got both")
            for name, reading in readings.items()
            if reading["key"] and reading["pattern"]
        )
    return problems


def _placeless(values: dict[str, Any]) -> list[Problem]:
    """Templates that want the definition's directory where it has none."""
    templates = {f"argv[{i}]": template for i, template in enumerate(values["argv"])}
    for group in ("environment", "files"):
        templates |= {f"{group}.{key}": template for key, template in values[group].items()}
    message = "must not use {definition_directory}: a definition that is no file has no directory"
    return [
        Problem(path=path, message=message)
        for path, template in templates.items()
        if "definition_directory" in placeholders(template)
    ]


def _based(path: str | None, directory: Path | None) -> Path | None:
    return None if path is None else (directory or Path.cwd()) / Path(path).expanduser()
