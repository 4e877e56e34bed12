"""Finding an input by path or by the name of a preset that ships with the package."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from autotune.errors import InvalidInput, UnknownName


def preset_names(package: str, suffix: str) -> list[str]:
    """The presets that a package ships, such as ``objectives.model`` with suffix ``.json``."""
    names = [entry.name for entry in _presets(package).iterdir()]
    return sorted(name.removesuffix(suffix) for name in names if name.endswith(suffix))


def read_input(source: str | Path, *, package: str, suffix: str, kind: str) -> str:
    """The text of a preset or a file.

    Args:
        source: A preset's name, or a path; a directory stands for the one file that ``kind``
            has in it, such as ``config.json``.
        package: Whose folder ``presets`` has the presets.
        suffix: Of the presets' files.
        kind: What the input is, for errors, such as ``model``.

    Raises:
        UnknownName: If it is neither a preset nor a path; lists the presets.
        InvalidInput: If the file cannot be read.
    """
    if isinstance(source, str) and source in preset_names(package, suffix):
        return _presets(package).joinpath(f"{source}{suffix}").read_text(encoding="utf-8")
    path = Path(source)
    if path.is_dir():
        path = path / f"config{suffix}"
    if not path.exists():
        looks_like_path = isinstance(source, Path) or path.suffix == suffix or len(path.parts) > 1
        if looks_like_path:
            raise InvalidInput(f"{kind} {source}", f"must be a readable file; {path} is missing")
        raise UnknownName(f"{kind} preset or file", str(source), preset_names(package, suffix))
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{kind} {source}", f"must be a readable UTF-8 file: {error}") from error


def _presets(package: str) -> Traversable:
    return files(package).joinpath("presets")
