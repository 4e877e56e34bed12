"""Where a measurement comes from: versions, commit, host."""

from __future__ import annotations

import platform
import socket
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

_DISTRIBUTIONS = ("scale-across-autotune", "optuna", "numpy")
_GIT_TIMEOUT_S = 5.0


@cache
def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide what is proposed."""
    found = {"python": platform.python_version()}
    for name in _DISTRIBUTIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # run from a source tree that was never installed
            found[name] = "unknown"
    return found


@cache
def provenance() -> dict[str, Any]:
    """What is recorded with every trial of this process."""
    return {"versions": versions(), "git_commit": git_commit(), "host": socket.gethostname()}


@cache
def git_commit() -> str | None:
    """Commit of the repository this process was started in; None outside of one."""
    command = ["git", "rev-parse", "HEAD"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_GIT_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
