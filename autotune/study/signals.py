"""Ctrl-C and SIGTERM: stop between two writes, never inside one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived; code that cleans up after Ctrl-C cleans up after this too."""


class Interrupts:
    """While entered, the signals ask a study to stop instead of ending the process.

    Inside `allowed` they raise at once; elsewhere they are noted, so that a result that is being
    written is written. Outside the main thread nothing is installed, for Python forbids it.
    """

    def __init__(self) -> None:
        self.requested = False
        self._allowed = False
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                previous = signal.getsignal(number)
                # Ignored, as under nohup, or handled by something that is not Python.
                if previous not in (signal.SIG_IGN, None):
                    self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, previous in self._previous.items():
            signal.signal(number, previous)
        self._previous.clear()

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Here a signal interrupts at once.

        Raises:
            KeyboardInterrupt: When one arrives, or has arrived before.
        """
        self._allowed = True
        try:
            if self.requested:
                raise KeyboardInterrupt
            yield
        finally:
            self._allowed = False

    def _handle(self, number: int, _: FrameType | None) -> None:
        self.requested = True
        if self._allowed:
            self._allowed = False
            raise Terminated if number == signal.SIGTERM else KeyboardInterrupt
