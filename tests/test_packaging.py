"""What the distribution promises: its name, dependencies, data files and entry points.

Building and installing the wheel takes a minute, so `.ci/run` does that.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("autotune", "objectives", "studies")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

MODULE_OF = {"scikit-learn": "sklearn", "optuna-dashboard": "optuna_dashboard"}
"""Where the distribution's name is not the module's."""

EXTRA_ONLY = {"autotune/testing": "test"}
"""Sub-packages that only work with an extra: parties that test their own backends have pytest."""


def test_the_name_is_free() -> None:
    """PyPI has an `autotune` already; installing both would overwrite one."""
    assert PROJECT["project"]["name"] != "autotune"
    assert PROJECT["project"]["requires-python"] == ">=3.11"


@pytest.mark.parametrize("package", PACKAGES)
def test_types_are_shipped(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()
    assert package in PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


def test_every_import_is_declared() -> None:
    """A module imported at the top of a file must be a dependency, not a lucky leftover."""
    declared = modules(PROJECT["project"]["dependencies"])
    allowed = sys.stdlib_module_names | set(PACKAGES) | declared
    undeclared = []
    for path in sources():
        extra = next((e for folder, e in EXTRA_ONLY.items() if folder in path.as_posix()), None)
        here = allowed | (
            modules(PROJECT["project"]["optional-dependencies"][extra]) if extra else set()
        )
        undeclared += [
            f"{path.relative_to(ROOT)}: {name}" for name in top_imports(path) if name not in here
        ]
    assert not undeclared


def test_every_dependency_is_used() -> None:
    used = {name for path in sources() for name in all_imports(path)}
    assert modules(PROJECT["project"]["dependencies"]) <= used


@pytest.mark.parametrize("extra", ["gp", "postgresql", "dashboard", "test", "lint"])
def test_extras_are_offered(extra: str) -> None:
    assert PROJECT["project"]["optional-dependencies"][extra]


def sources() -> list[Path]:
    return [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def modules(requirements: list[str]) -> set[str]:
    names = [re.match(r"[\w-]+", requirement).group() for requirement in requirements]  # type: ignore[union-attr]
    return {MODULE_OF.get(name, name.replace("-", "_")) for name in names}


def top_imports(path: Path) -> Iterator[str]:
    """Top-level names of absolute imports that run when the module is imported."""
    tree = ast.parse(path.read_text())
    statements = [
        child
        for node in tree.body
        for child in ([node] if not isinstance(node, ast.Try) else node.body)
    ]
    yield from names_of(statements)


def all_imports(path: Path) -> Iterator[str]:
    yield from names_of(ast.walk(ast.parse(path.read_text())))


def names_of(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0]
