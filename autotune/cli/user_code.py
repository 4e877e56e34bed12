"""Running what a user's file or another package has written, and saying where it fails."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from autotune.errors import AutotuneError, InvalidInput


@contextmanager
def faults_named(what: str, path: Path | None = None) -> Iterator[None]:
    """Turn whatever the code inside raises into one message; errors of this package pass.

    Args:
        what: Whose code it is, such as ``study file mine.py``.
        path: The file that is looked for in the traceback; None for wherever it was raised.

    Raises:
        InvalidInput: In place of the exception, ``sys.exit`` included; names the line.
    """
    try:
        yield
    except (AutotuneError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        said = f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"
        if isinstance(error, SystemExit):
            said = f"it calls sys.exit({error.code!r}), which ends the program"
        raise InvalidInput(f"{what}{_place(error, path)}", said) from error


def _place(error: BaseException, path: Path | None) -> str:
    """``, line 3``; with the file where it is another one."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        place = (error.filename, error.lineno)
    else:
        frames = traceback.extract_tb(error.__traceback__)
        inside = [frame for frame in frames if path is None or _same(frame.filename, path)]
        # Code of its own comes after the frames of this module and of importlib.
        if not inside:
            return ""
        place = (inside[-1].filename, inside[-1].lineno)
    if path is not None and _same(place[0], path):
        return f", line {place[1]}"
    return f", {place[0]}, line {place[1]}"


def _same(name: str, path: Path) -> bool:
    return Path(name) == path.resolve()
