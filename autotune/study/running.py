"""The loop of a worker: claim, measure, settle, until there is nothing left to do."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from autotune.objective import Objective
from autotune.storage import TrialRow
from autotune.study.lease import Heart
from autotune.study.ledger import Claim, Ledger, NoClaim
from autotune.study.measuring import Measurement, measure
from autotune.study.outcome import Ending
from autotune.study.signals import Interrupts

_logger = logging.getLogger(__name__)

POLL_S = 0.2
"""How often to look whether other workers have finished or died."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a call of `optimize` was asked for.

    Attributes:
        budget: Total number of slots.
        stop_at: Wall-clock time (``time.time()``) from when on nothing new is begun; None for
            never.
        on_settled: Called after every settled trial.
    """

    budget: int
    stop_at: float | None
    on_settled: Callable[[TrialRow], None]

    def is_late(self) -> bool:
        """Whether the time is over."""
        return self.stop_at is not None and time.time() >= self.stop_at


def run_serially(
    run: Run, ledger: Ledger, objective: Objective, heart: Heart, interrupts: Interrupts
) -> Ending:
    """Measure in this process, one config after the other."""
    waited = False
    while True:
        if interrupts.requested:
            return Ending.INTERRUPTED
        if run.is_late():
            return Ending.TIMEOUT
        claim = ledger.claim(run.budget)
        if claim is NoClaim.DONE:
            return Ending.DONE
        if claim is NoClaim.EXHAUSTED:
            return Ending.EXHAUSTED
        if isinstance(claim, NoClaim):
            if not waited:
                _logger.info("waiting for other workers to finish the last slots")
            waited = True
            pause(interrupts)
            continue
        ending = _measure_one(run, claim, ledger, objective, heart, interrupts)
        if ending is not None:
            return ending


def pause(interrupts: Interrupts) -> None:
    """Wait a moment; a signal ends the wait."""
    try:
        with interrupts.allowed():
            time.sleep(POLL_S)
    except KeyboardInterrupt:
        interrupts.requested = True


def _measure_one(
    run: Run,
    claim: Claim,
    ledger: Ledger,
    objective: Objective,
    heart: Heart,
    interrupts: Interrupts,
) -> Ending | None:
    heart.add(claim.row.trial_id)
    try:
        with interrupts.allowed():
            measurement = measure(
                objective,
                claim.config,
                seed=claim.seed,
                stop_at=run.stop_at,
                interrupted=lambda: interrupts.requested,
            )
    except KeyboardInterrupt:
        ledger.release([claim], "interrupted by the user")
        return Ending.INTERRUPTED
    except BaseException:
        ledger.release([claim], "its worker was told to exit")
        raise
    finally:
        heart.remove(claim.row.trial_id)
    return settle(run, ledger, claim, measurement, interrupts)


def settle(
    run: Run, ledger: Ledger, claim: Claim, measurement: Measurement, interrupts: Interrupts
) -> Ending | None:
    """Store a result, or give the slot back where the config is not to blame for it.

    Returns:
        Why nothing new is to be begun; None to go on.
    """
    if interrupts.requested and not measurement.evaluation.ok:
        # The objective was interrupted and made another error of it, or a failure.
        ledger.release([claim], "interrupted by the user")
        return Ending.INTERRUPTED
    if measurement.stopped_by_study:
        ledger.release([claim], "the time was over")
        return Ending.TIMEOUT
    row = ledger.settle(claim, measurement)
    if row is not None:
        run.on_settled(row)
    return None
