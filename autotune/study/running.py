"""The loop of a worker: claim, measure, settle, until there is nothing left to do."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

from autotune.errors import InvalidInput, Problem
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
        trial_limit_s: After how many seconds an evaluation is killed; None for never.
        on_settled: Called after every settled trial.
    """

    budget: int
    stop_at: float | None
    trial_limit_s: float | None = None
    on_settled: Callable[[TrialRow], None]

    def is_late(self) -> bool:
        """Whether the time is over."""
        return self.stop_at is not None and time.time() >= self.stop_at


def check_arguments(
    *, n_jobs: object, timeout_s: float | None, trial_timeout_s: float | None
) -> None:
    """Refuse what `optimize` cannot be asked for.

    Raises:
        InvalidInput: With everything that is out of range.
    """
    rules = {
        "n_jobs": (
            isinstance(n_jobs, int) and not isinstance(n_jobs, bool) and n_jobs >= 1,
            f"must be an int >= 1, got {n_jobs!r}",
        ),
        "timeout_s": (
            timeout_s is None or (_is_number(timeout_s) and timeout_s >= 0),
            f"must be a number of seconds >= 0, or None for no limit, got {timeout_s!r}",
        ),
        "trial_timeout_s": (
            trial_timeout_s is None or (_is_number(trial_timeout_s) and trial_timeout_s > 0),
            f"must be a number of seconds > 0, or None for no limit, got {trial_timeout_s!r}",
        ),
    }
    problems = [
        Problem(path=path, message=text) for path, (holds, text) in rules.items() if not holds
    ]
    if problems:
        raise InvalidInput("optimize", problems)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


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
