"""Signs of life: a counter that a worker raises, and who stopped raising it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from sqlalchemy.exc import SQLAlchemyError

from autotune.errors import StorageRefused
from autotune.storage import Storage
from autotune.storage.writer import beat

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimes:
    """How often a worker shows that it lives, and when another one stops believing it.

    Attributes:
        beat_s: Evaluations that are shorter show nothing.
        lease_s: A counter that stays the same so long belongs to a dead worker; several beats.
    """

    beat_s: float = 10.0
    lease_s: float = 60.0


@dataclass(slots=True)
class Watch:
    """What this process has seen of other workers' counters.

    Only the observer's own monotonic clock enters: clocks of machines differ and jump.
    """

    lease_s: float
    clock: Callable[[], float] = time.monotonic
    _seen: dict[int, tuple[int, float]] = field(default_factory=dict)

    def expired(self, trial_id: int, counter: int) -> bool:
        """Note a counter, and tell whether it has stood still for a whole lease."""
        now = self.clock()
        known = self._seen.get(trial_id)
        if known is None or known[0] != counter:
            self._seen[trial_id] = (counter, now)
            return False
        return now - known[1] >= self.lease_s

    def forget(self, trial_id: int) -> None:
        """The trial is settled."""
        self._seen.pop(trial_id, None)


class Heart:
    """A thread that raises the counters of this process's long evaluations; a context manager.

    Args:
        storage: Where the trials are.
        beat_s: Time between beats, and before the first one.
    """

    def __init__(self, storage: Storage, beat_s: float) -> None:
        self._storage = storage
        self._beat_s = beat_s
        self._lock = threading.Lock()
        self._due: dict[int, float] = {}
        self._counts: dict[int, int] = {}
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="autotune-heart", daemon=True)

    def __enter__(self) -> Heart:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def add(self, trial_id: int) -> None:
        """An evaluation begins."""
        with self._lock:
            self._due[trial_id] = time.monotonic() + self._beat_s

    def remove(self, trial_id: int) -> None:
        """It ended."""
        with self._lock:
            self._due.pop(trial_id, None)
            self._counts.pop(trial_id, None)

    def _run(self) -> None:
        while not self._end.wait(self._beat_s / 2):
            now = time.monotonic()
            with self._lock:
                due = [trial_id for trial_id, at in self._due.items() if at <= now]
            for trial_id in due:
                self._beat(trial_id, now)

    def _beat(self, trial_id: int, now: float) -> None:
        count = self._counts.get(trial_id, 0) + 1
        try:
            with self._storage.write() as connection:
                beat(connection, trial_id, count)
        except (SQLAlchemyError, StorageRefused) as error:
            _logger.warning("could not show that trial %d is alive: %s", trial_id, error)
            return
        with self._lock:
            if trial_id in self._due:
                self._due[trial_id] = now + self._beat_s
                self._counts[trial_id] = count
