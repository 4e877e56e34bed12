"""Evaluations with a time limit: each in a process that can be ended without harm to any other.

One worker process per cell, in a process group of its own: what hangs is killed with the programs
that it has started, and only the cell it hangs in is made anew.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from joblib.externals.loky import BrokenProcessPool, ProcessPoolExecutor

from autotune.evaluation import Evaluation, FailureKind
from autotune.objective import Config, Objective
from autotune.study.measuring import Measurement, measure_apart

_WATCH_S = 1.0


@dataclass(slots=True, kw_only=True)
class Cells:
    """Processes that measure, each one config at a time and no longer than the limit.

    Attributes:
        limit_s: Time for one evaluation, in seconds; starting the process is not counted.
    """

    limit_s: float
    _idle: queue.SimpleQueue[_Cell] = field(default_factory=queue.SimpleQueue)
    _alive: set[_Cell] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _closed: bool = False

    def measure(
        self, objective: Objective, config: Config, *, seed: int, stop_at: float | None
    ) -> Measurement:
        """As `measure_apart`, ended when the limit has passed; waits for it.

        Raises:
            Exception: If the objective cannot be sent to a process.
        """
        with self._cell(objective) as cell:
            future = cell.executor.submit(
                measure_apart, objective, config, seed=seed, stop_at=stop_at
            )
            try:
                measurement: Measurement = future.result(timeout=self.limit_s)
                return measurement
            except TimeoutError:
                self._end(cell)
                return _too_long(self.limit_s)
            except BrokenProcessPool as error:
                self._end(cell)
                reason = f"the process that measured this config died: {error}"
                failed = Evaluation.failure(FailureKind.CRASH, reason)
                return Measurement(evaluation=failed, wall_s=0.0)

    def close(self) -> None:
        """End all processes at once, whatever they do."""
        with self._lock:
            self._closed = True
            cells = list(self._alive)
        for cell in cells:
            self._end(cell)

    @contextmanager
    def _cell(self, objective: Objective) -> Iterator[_Cell]:
        try:
            cell = self._idle.get_nowait()
        except queue.Empty:
            cell = self._new(objective)
        try:
            yield cell
        finally:
            with self._lock:
                usable = cell in self._alive
            if usable:
                self._idle.put(cell)

    def _new(self, objective: Objective) -> _Cell:
        executor = ProcessPoolExecutor(max_workers=1)
        try:
            group = executor.submit(_begin, objective).result()
        except BaseException:
            executor.shutdown(wait=False, kill_workers=True)
            raise
        cell = _Cell(executor=executor, group=group)
        with self._lock:
            self._alive.add(cell)
            closed = self._closed
        if closed:  # meanwhile the study was interrupted
            self._end(cell)
        return cell

    def _end(self, cell: _Cell) -> None:
        with self._lock:
            if cell not in self._alive:
                return
            self._alive.remove(cell)
        # The programs go with the process: it leads their group.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(cell.group, signal.SIGKILL)
        cell.executor.shutdown(wait=False, kill_workers=True)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Cell:
    """One process.

    Attributes:
        executor: Has this process only.
        group: Number of its process group.
    """

    executor: ProcessPoolExecutor
    group: int


def _begin(_: Objective) -> int:
    """Make the process the leader of a group; getting the objective imports what it needs."""
    os.setpgid(0, 0)
    watch = threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True)
    watch.start()
    return os.getpgid(0)


def _end_with_parent(parent: int) -> None:
    """End the group when the study's process is gone: nobody else would, nor wants the result."""
    while os.getppid() == parent:
        time.sleep(_WATCH_S)
    os.killpg(0, signal.SIGKILL)


def _too_long(limit_s: float) -> Measurement:
    reason = (
        f"it took longer than {limit_s:g} s, the limit for one trial, and was killed; raise "
        "trial_timeout_s (`--trial-timeout`) if configs like this one are to be measured"
    )
    failed = Evaluation.failure(FailureKind.TIMEOUT, reason, cost_s=limit_s)
    return Measurement(evaluation=failed, wall_s=limit_s)
