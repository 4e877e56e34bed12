"""Ending the programs of a process that is killed before it can end them itself."""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import subprocess
import sys
import threading

_WATCH = """
import os, signal, sys
groups = set()
for line in sys.stdin.buffer:
    (groups.add if line[:1] == b"+" else groups.discard)(int(line[1:]))
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
"""
# SIGKILL cannot be handled, and what Linux offers (PR_SET_PDEATHSIG) reaches the program but not
# the processes that it has started. The end of a pipe, however, is seen whatever ended its writer.


class _Watcher:
    """A small process that is told which groups run, and kills them when this one is gone.

    One is enough for all programs. It has a session of its own, so that Ctrl-C spares it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None

    def add(self, group: int) -> None:
        with self._lock:
            self._running.add(group)
            self._tell(f"+{group}\n")

    def remove(self, group: int) -> None:
        with self._lock:
            self._running.discard(group)
            if self._process is not None:
                with contextlib.suppress(BrokenPipeError):  # the next program starts another
                    _write(self._process, f"-{group}\n")

    def close(self) -> None:
        """Let it end as this process does."""
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def forget(self) -> None:
        """In a fork: the watcher and its groups are the parent's, whose death it must see."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        self._lock, self._running, self._process = threading.Lock(), set(), None

    def _tell(self, line: str) -> None:
        try:
            if self._process is not None:
                _write(self._process, line)
                return
        except BrokenPipeError:  # somebody has ended it
            self.close()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _WATCH],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        _write(self._process, "".join(f"+{group}\n" for group in self._running))


def _write(process: subprocess.Popen[bytes], text: str) -> None:
    assert process.stdin is not None, "it was started with a pipe"
    os.write(process.stdin.fileno(), text.encode())


_watcher = _Watcher()
_parent = os.getppid()


def _forked() -> None:
    global _parent
    _parent = os.getppid()
    _watcher.forget()


atexit.register(_watcher.close)
os.register_at_fork(after_in_child=_forked)


def add(group: int) -> None:
    """Kill a process group should this process be killed.

    Args:
        group: Of a program that this process has started.
    """
    _watcher.add(group)


def remove(group: int) -> None:
    """Leave a group alone that has ended: its number may be given to another."""
    _watcher.remove(group)


def is_orphan() -> bool:
    """Whether this is a worker process whose tuner is gone, so that nobody wants its results."""
    # Not what multiprocessing knows of the parent: in loky's workers it knows nothing. Only in
    # workers, for a tuner itself may outlive the shell that has started it.
    return multiprocessing.parent_process() is not None and os.getppid() != _parent
