"""The options that a named version of a program takes, and checking values against them.

The lists under ``data/`` hold facts only: the name of every option with its type or choices, and
the version and commit they were read from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from autotune import InvalidInput, Problem

Options = Mapping[str, Any]
"""Values by option name."""

OptionType = str | Sequence[Any]
"""A type's name (``int``, ``list[str]``, alternatives with ``|``), or the values allowed."""

_SCALARS: Mapping[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "str": (str,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionList:
    """Every option of one version of a program.

    Attributes:
        project: ``owner/name`` of its repository.
        version: The release it was read from.
        commit: The commit of that release.
        options: Type of each option by name.
        facts: Other facts of that version that an exporter needs, by name.
    """

    project: str
    version: str
    commit: str
    options: Mapping[str, OptionType]
    facts: Mapping[str, Any]

    @property
    def title(self) -> str:
        """Name and version, as people say it."""
        return f"{self.project.split('/')[1]} {self.version}"

    def check(self, values: Options) -> None:
        """Make sure that the program takes these options.

        Raises:
            InvalidInput: Naming every option it does not have and every value of a wrong type.
        """
        problems = []
        for name, value in values.items():
            if name not in self.options:
                problems.append(Problem(path=name, message=f"{self.title} has no such option"))
            elif not fits(value, self.options[name]):
                message = f"must be {_described(self.options[name])}, got {value!r}"
                problems.append(Problem(path=name, message=message))
        if problems:
            raise InvalidInput(f"options of {self.title}", problems)


@cache
def option_list(name: str) -> OptionList:
    """Read a list that comes with this package.

    Args:
        name: File name under ``data/`` without its ending, such as ``torchtitan-v0.2.2``.
    """
    content = json.loads((files(__package__) / "data" / f"{name}.json").read_text("utf-8"))
    known = ("project", "version", "commit", "options")
    return OptionList(
        **{key: content[key] for key in known},
        facts={key: value for key, value in content.items() if key not in known},
    )


def fits(value: Any, option_type: OptionType) -> bool:
    """Whether a value has an option's type; True and False are no numbers."""
    if not isinstance(option_type, str):
        return any(value == choice and type(value) is type(choice) for choice in option_type)
    return any(_fits_one(value, alternative) for alternative in option_type.split("|"))


def _fits_one(value: Any, name: str) -> bool:
    if name.startswith("list["):
        return isinstance(value, list) and all(_fits_one(item, name[5:-1]) for item in value)
    if name == "bool":
        return isinstance(value, bool)
    if name == "flag":
        return value is True
    return isinstance(value, _SCALARS[name]) and not isinstance(value, bool)


def _described(option_type: OptionType) -> str:
    if isinstance(option_type, str):
        return option_type.replace("|", " or ")
    return "one of " + ", ".join(repr(choice) for choice in option_type)
