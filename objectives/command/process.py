"""Running a program in a process group of its own, and ending all of it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from objectives.command import guard

_LAUNCH_WITH_LIMIT = """
import os, resource, sys
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    print(f"{sys.argv[2]}: {error.strerror}", file=sys.stderr)
    sys.exit(127)
"""
# A limit set between fork and exec by a callback is not safe where threads run, so that a small
# interpreter sets it on itself and becomes the program.

_LOOK_EVERY_S = 0.2


class Ending(StrEnum):
    """How a program came to its end."""

    EXITED = "exited"
    TIMED_OUT = "timed out"
    FLOODED = "flooded"
    """Printed more than it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A program that has ended.

    Attributes:
        ending: Why it ended.
        exit_code: Its own, or 128 + n after signal n, as shells count.
        seconds: From start to end.
    """

    ending: Ending
    exit_code: int
    seconds: float


def run_program(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    working_directory: Path,
    stdout: Path,
    stderr: Path,
    timeout_s: float,
    grace_s: float,
    memory_limit_bytes: float | None = None,
    output_limit_bytes: float = float("inf"),
) -> Finished:
    """Run a program to its end or its timeout; nothing of its process group outlives it.

    Output goes to files and not through pipes, so that a child that keeps a pipe open cannot
    hold anything up. On any exception, Ctrl-C included, the group is ended too, and so it is where
    this process, or the tuner that it works for, is killed by SIGKILL.

    Args:
        argv: Program and arguments; no shell.
        environment: All its variables.
        working_directory: Must exist.
        stdout: File for its output; overwritten.
        stderr: File for its errors; overwritten.
        timeout_s: From the start; then SIGTERM goes to the group.
        grace_s: Until SIGKILL.
        memory_limit_bytes: Address space of each process.
        output_limit_bytes: Of each file; beyond it the program is ended.

    Raises:
        OSError: If it cannot be started.
        ValueError: If an argument or variable has a null character.
    """
    if memory_limit_bytes is not None:
        limit = str(int(memory_limit_bytes))
        argv = [sys.executable, "-I", "-S", "-c", _LAUNCH_WITH_LIMIT, limit, *argv]
    start = time.monotonic()
    with stdout.open("wb") as out, stderr.open("wb") as err:
        process = subprocess.Popen(
            list(argv),
            env=dict(environment),
            cwd=working_directory,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
    ending = None
    try:
        guard.add(process.pid)
        ending = _wait(process, start + timeout_s, (stdout, stderr), output_limit_bytes)
    finally:
        if ending is not Ending.EXITED:
            _end_group(process, grace_s)
        # What the program left running would disturb the next measurement.
        _signal_group(process.pid, signal.SIGKILL)
        guard.remove(process.pid)
    code = process.returncode
    return Finished(
        ending=ending,
        exit_code=128 - code if code < 0 else code,
        seconds=time.monotonic() - start,
    )


def _wait(
    process: subprocess.Popen[bytes], deadline: float, outputs: Sequence[Path], limit: float
) -> Ending:
    while True:
        remaining = deadline - time.monotonic()
        try:
            process.wait(timeout=max(0.0, min(remaining, _LOOK_EVERY_S)))
        except subprocess.TimeoutExpired:
            if remaining <= 0:
                return Ending.TIMED_OUT
            if any(path.stat().st_size > limit for path in outputs):
                return Ending.FLOODED
            if guard.is_orphan():
                raise KeyboardInterrupt from None  # nobody is left who wants a result
        else:
            return Ending.EXITED


def _end_group(process: subprocess.Popen[bytes], grace_s: float) -> None:
    _signal_group(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=grace_s)
    _signal_group(process.pid, signal.SIGKILL)
    process.wait()


def _signal_group(group: int, number: signal.Signals) -> None:
    # macOS answers EPERM for a group that has only zombies left.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
