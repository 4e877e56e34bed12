"""How a call of `Study.optimize` ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Ending(StrEnum):
    """Why no further config is measured."""

    DONE = "done"
    EXHAUSTED = "space exhausted"
    INTERRUPTED = "interrupted"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one call did.

    Attributes:
        reason: Why it ended.
        new_trials: Slots that this call settled.
        new_failures: How many of those failed.
        settled: Slots of the budget that are settled now, by whomever.
        n_trials: The budget.
    """

    reason: Ending
    new_trials: int
    new_failures: int
    settled: int
    n_trials: int

    def __str__(self) -> str:
        failed = f" ({self.new_failures} failed)" if self.new_failures else ""
        return (
            f"{self.reason}: {self.new_trials} new trials{failed}, "
            f"{self.settled} of {self.n_trials} in all"
        )
