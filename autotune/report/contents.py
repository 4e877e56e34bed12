"""Everything the page shows, worked out before any HTML is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from autotune.explain import Change
from autotune.importance import Importances
from autotune.report.findings import Findings

NUM_TOP_CHANGES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What one page is made from.

    Attributes:
        findings: The study's trials, front and baselines.
        changes: All changes of the best config against the baseline, as `ablate` orders them.
        changes_note: Why there are none, where that must be said.
        importances: One per metric that could be explained.
        written: When, in UTC.
    """

    findings: Findings
    changes: Sequence[Change] = ()
    changes_note: str = ""
    importances: Sequence[Importances] = ()
    written: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def top_changes(self) -> list[Change]:
        """The few changes that matter most."""
        return top(self.changes, self.findings)

    @property
    def idle_changes(self) -> list[Change]:
        """The changes that improve no metric and that nothing needs."""
        return idle(self.changes, self.findings)


def top(changes: Sequence[Change], findings: Findings) -> list[Change]:
    """The first changes of all that improve a metric or are needed."""
    return [change for change in changes if _matters(change, findings)][:NUM_TOP_CHANGES]


def idle(changes: Sequence[Change], findings: Findings) -> list[Change]:
    """Those that improve no metric and that nothing needs."""
    return [change for change in changes if not _matters(change, findings)]


def _matters(change: Change, findings: Findings) -> bool:
    return change.needed or any(
        change.affects(metric) and change.gain(metric) > 0 for metric in findings.metrics
    )
