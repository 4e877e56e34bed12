"""What a user names on the command line: installed studies, files, and parts of a sweep."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from autotune import plugins
from autotune.cli.user_code import faults_named
from autotune.errors import InvalidInput, UnknownName
from autotune.study import StudySpec

_FILE_MARK = ".py:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One study, or several that run in turn.

    Attributes:
        name: As the user wrote it.
        specs: At least one.
        is_sweep: Whether it was offered as a sequence, even of one.
    """

    name: str
    specs: tuple[StudySpec, ...]
    is_sweep: bool = False

    def only(self) -> StudySpec:
        """The single study.

        Raises:
            InvalidInput: If it is a sweep of several; lists its parts.
        """
        if len(self.specs) > 1:
            parts = ", ".join(f"{self.name}/{part_name(spec, self.name)}" for spec in self.specs)
            raise InvalidInput(
                f"study {self.name!r}",
                f"is a sweep of {len(self.specs)} studies, and one is needed here; name one of "
                f"them: {parts}",
            )
        return self.specs[0]


def resolve(text: str) -> Target:
    """Find what a user means.

    Args:
        text: ``NAME`` of an installed study, or ``FILE.py:ATTR``; either followed by ``/PART``
            for one study of a sweep.

    Raises:
        UnknownName: Lists the names that exist.
        InvalidInput: If what is found is no study, or fails; names the file and the line.
        BrokenPlugin: If an installed study cannot be loaded.
    """
    whole, value = _load(text)
    specs, is_sweep = _specs_of(value, whole)
    part = text[len(whole) + 1 :]
    if not part:
        return Target(name=text, specs=specs, is_sweep=is_sweep)
    if not is_sweep:
        raise InvalidInput(f"study {whole!r}", f"is one study without parts; leave /{part} out")
    named = {part_name(spec, whole): spec for spec in specs}
    if part not in named:
        raise UnknownName(f"part of {whole!r}", part, named)
    return Target(name=text, specs=(named[part],))


def part_name(spec: StudySpec, sweep: str) -> str:
    """How one study of a sweep is called: its name, without the sweep's where it starts so."""
    return spec.name.removeprefix(sweep).lstrip("/-") or spec.name


def installed_studies() -> list[str]:
    """The names that `resolve` knows."""
    return sorted(plugins.installed("autotune.studies"))


def _load(text: str) -> tuple[str, Any]:
    """What is named, without the part, and the object behind it."""
    if _FILE_MARK in text:
        file, _, rest = text.partition(_FILE_MARK)
        attribute = rest.partition("/")[0]
        path = Path(f"{file}.py")
        module = _import_file(path)
        if not hasattr(module, attribute):
            known = [name for name in vars(module) if not name.startswith("_")]
            raise UnknownName(f"attribute of {path}", attribute, known)
        return f"{file}{_FILE_MARK}{attribute}", getattr(module, attribute)
    whole = text if text in plugins.installed("autotune.studies") else text.partition("/")[0]
    if whole.endswith(".py"):
        raise InvalidInput(f"study {text!r}", f"must say which study of the file: {text}:ATTRIBUTE")
    return whole, plugins.load("autotune.studies", whole)


def _import_file(path: Path) -> ModuleType:
    """Run a file as the module that ``import`` would make of it from its folder."""
    if not path.is_file():
        raise InvalidInput(f"study file {path}", "must be an existing Python file")
    with faults_named(f"study file {path}", path):
        return _import_resolved(path.resolve())


@cache
def _import_resolved(path: Path) -> ModuleType:
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.append(folder)  # last: a file here must not stand in for an installed module
    name = path.stem
    if name in sys.modules or not name.isidentifier():
        found = None
    else:
        found = importlib.util.find_spec(name)
    if found is not None and found.origin == str(path):
        return importlib.import_module(name)
    # The name is taken, and worker processes would import something else under it. A module that
    # is not among the loaded ones is sent to them whole.
    name = f"autotune_study_{name}"
    module = _execute(path, name)
    del sys.modules[name]
    return module


def _execute(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None, "a file that ends in .py has a loader"
    assert spec.loader is not None, "a file that ends in .py has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up while it is being made
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _called(function: Callable[..., Any], name: str) -> Any:
    """What a study's function returns."""
    path = Path(f"{name.partition(_FILE_MARK)[0]}.py") if _FILE_MARK in name else None
    with faults_named(f"study {name!r}", path):
        try:
            inspect.signature(function).bind()
        except TypeError as error:
            code = getattr(function, "__code__", None)
            where = f", line {code.co_firstlineno}," if code else ""
            raise InvalidInput(
                f"study {name!r}", f"its function{where} must need no argument, got: {error}"
            ) from error
        except ValueError:  # a builtin that does not tell its arguments
            pass
        return function()


def _specs_of(value: Any, name: str) -> tuple[tuple[StudySpec, ...], bool]:
    if callable(value) and not isinstance(value, StudySpec):
        value = _called(value, name)
    if isinstance(value, StudySpec):
        return (value,), False
    if isinstance(value, Sequence) and value and all(isinstance(v, StudySpec) for v in value):
        names = [spec.name for spec in value]
        if twice := sorted({each for each in names if names.count(each) > 1}):
            raise InvalidInput(
                f"sweep {name!r}", f"each study needs a name of its own; got {twice} twice"
            )
        return tuple(value), True
    raise InvalidInput(
        f"study {name!r}",
        f"must be a StudySpec, a function without arguments that returns one, or a sequence of "
        f"them; got {type(value).__name__}",
    )
