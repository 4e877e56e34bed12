"""Several slots measured at once, through joblib; all writing stays in this thread.

Each running evaluation is one call of `joblib.Parallel` with one task, in a thread of its own:
one call with all tasks would take proposals from its generator long before they are measured, so
that they would know less. joblib's registered backends (Dask, Ray) run the tasks on many machines
in the same way. With a time limit for each trial the processes are `Cells` of this machine.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial

from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor

from autotune.evaluation import Evaluation, FailureKind
from autotune.objective import Objective
from autotune.study.cells import Cells
from autotune.study.lease import Heart
from autotune.study.ledger import Claim, Ledger, NoClaim
from autotune.study.measuring import Measurement, measure_apart
from autotune.study.outcome import Ending
from autotune.study.running import POLL_S, Run, pause, settle
from autotune.study.signals import Interrupts

_logger = logging.getLogger(__name__)

_ENDINGS = {NoClaim.DONE: Ending.DONE, NoClaim.EXHAUSTED: Ending.EXHAUSTED}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Landing:
    """What came of an evaluation: a measurement, or why there is none."""

    claim: Claim
    measurement: Measurement | None = None
    error: BaseException | None = None


@dataclass(slots=True, kw_only=True)
class _Crew:
    """The evaluations in flight, and those that must be flown alone.

    When a worker process dies, joblib gives up all tasks and cannot tell which one killed it. So
    each is measured once more with nothing beside it; the one that kills again is to blame.
    """

    objective: Objective
    n_jobs: int
    stop_at: float | None
    cells: Cells | None
    flying: dict[int, Claim] = field(default_factory=dict)
    suspects: list[Claim] = field(default_factory=list)
    alone: int | None = None
    landed: queue.SimpleQueue[_Landing] = field(default_factory=queue.SimpleQueue)

    @property
    def claims(self) -> list[Claim]:
        """Everything claimed and not settled."""
        return [*self.flying.values(), *self.suspects]

    def has_room(self) -> bool:
        """Whether another claim can be measured now."""
        return not self.suspects and self.alone is None and len(self.flying) < self.n_jobs

    def start(self, claim: Claim) -> None:
        """Begin to measure."""
        self.flying[claim.row.trial_id] = claim
        measure: Callable[[Claim], Measurement]
        if self.cells is not None:
            measure = partial(self._measure_in_cell, self.cells)
        else:
            # Made here: which backend joblib is told to use is a setting of the calling thread.
            measure = partial(self._measure, Parallel(n_jobs=max(self.n_jobs, 2), batch_size=1))
        threading.Thread(target=self._fly, args=(measure, claim), daemon=True).start()

    def start_suspect(self) -> None:
        """Measure the next suspect when nothing else is in flight."""
        if self.suspects and not self.flying:
            claim = self.suspects.pop(0)
            self.alone = claim.row.trial_id
            self.start(claim)

    def kill(self) -> None:
        """End the worker processes at once."""
        if self.cells is not None:
            self.cells.close()
        elif self.flying:
            get_reusable_executor(reuse=True).shutdown(wait=False, kill_workers=True)

    def _fly(self, measure: Callable[[Claim], Measurement], claim: Claim) -> None:
        try:
            landing = _Landing(claim=claim, measurement=measure(claim))
        except BaseException as error:
            landing = _Landing(claim=claim, error=error)
        self.landed.put(landing)

    def _measure(self, parallel: Callable[..., list[Measurement]], claim: Claim) -> Measurement:
        call = delayed(measure_apart)
        task = call(self.objective, claim.config, seed=claim.seed, stop_at=self.stop_at)
        return parallel([task])[0]

    def _measure_in_cell(self, cells: Cells, claim: Claim) -> Measurement:
        return cells.measure(self.objective, claim.config, seed=claim.seed, stop_at=self.stop_at)


def run_in_parallel(
    run: Run,
    ledger: Ledger,
    objective: Objective,
    heart: Heart,
    interrupts: Interrupts,
    n_jobs: int,
) -> Ending:
    """Measure up to `n_jobs` configs at once, each in a process of its own."""
    cells = None if run.trial_limit_s is None else Cells(limit_s=run.trial_limit_s)
    crew = _Crew(objective=objective, n_jobs=n_jobs, stop_at=run.stop_at, cells=cells)
    ending: Ending | None = None
    try:
        while True:
            crew.start_suspect()
            if ending is None:
                ending = _fill(run, ledger, heart, crew, interrupts)
            if not crew.flying and not crew.suspects:
                if ending is not None:
                    return ending
                pause(interrupts)
                continue
            landing = _next(crew, interrupts)
            if landing is not None:
                ending = _land(run, ledger, heart, crew, landing, interrupts) or ending
    except KeyboardInterrupt:
        _abandon(ledger, heart, crew, "interrupted by the user")
        return Ending.INTERRUPTED
    except BaseException:
        _abandon(ledger, heart, crew, "its worker was told to exit")
        raise
    finally:
        if cells is not None:
            cells.close()


def _fill(
    run: Run, ledger: Ledger, heart: Heart, crew: _Crew, interrupts: Interrupts
) -> Ending | None:
    while crew.has_room():
        if interrupts.requested:
            raise KeyboardInterrupt
        if run.is_late():
            return Ending.TIMEOUT
        claim = ledger.claim(run.budget)
        if isinstance(claim, NoClaim):
            return _ENDINGS.get(claim)
        heart.add(claim.row.trial_id)
        crew.start(claim)
    return None


def _next(crew: _Crew, interrupts: Interrupts) -> _Landing | None:
    with interrupts.allowed():
        try:
            return crew.landed.get(timeout=POLL_S)
        except queue.Empty:
            return None


def _land(
    run: Run,
    ledger: Ledger,
    heart: Heart,
    crew: _Crew,
    landing: _Landing,
    interrupts: Interrupts,
) -> Ending | None:
    claim = crew.flying.pop(landing.claim.row.trial_id)
    measurement = landing.measurement
    if measurement is None:
        measurement = _judge(crew, claim, landing.error)
        if measurement is None:
            return None
    if crew.alone == claim.row.trial_id:
        crew.alone = None
    heart.remove(claim.row.trial_id)
    return settle(run, ledger, claim, measurement, interrupts)


def _judge(crew: _Crew, claim: Claim, error: BaseException | None) -> Measurement | None:
    """What an evaluation without a result means; None when it is to be tried again."""
    if not isinstance(error, BrokenProcessPool):
        crew.flying[claim.row.trial_id] = claim  # to be released with the others
        assert error is not None, "what has no measurement has an error"
        raise error
    if crew.alone != claim.row.trial_id:
        _logger.warning(
            "a worker process died; measuring slot %d once more, alone", claim.row.packed["slot"]
        )
        crew.suspects.append(claim)
        return None
    reason = f"the worker process died twice while measuring this config: {error}"
    return Measurement(evaluation=Evaluation.failure(FailureKind.CRASH, reason), wall_s=0.0)


def _abandon(ledger: Ledger, heart: Heart, crew: _Crew, why: str) -> None:
    crew.kill()
    for claim in crew.claims:
        heart.remove(claim.row.trial_id)
    ledger.release(crew.claims, why)
