"""What ``run`` tells people at its end."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from autotune import plugins
from autotune.cli import commands, output, tables
from autotune.cli.stored import Stored
from autotune.errors import AutotuneError
from autotune.explain import Change
from autotune.quantity import format_quantity
from autotune.report.contents import idle, top
from autotune.report.findings import Findings
from autotune.report.sentences import headlines, values_of
from autotune.study import Ending, Outcome
from autotune.trial import Trial

if TYPE_CHECKING:
    from rich.console import Console

MAX_TRIED = 20
"""How many configs of the front are offered to the exporters."""

_logger = logging.getLogger(__name__)


def show_study(findings: Findings, outcome: Outcome, changes: Sequence[Change]) -> None:
    """How the run ended, what was found, the front, and the changes that matter most."""
    console = output.results()
    console.print(Text(how_it_ended(findings, outcome)))
    console.print()
    for i, sentence in enumerate(headlines(findings)):
        console.print(Text(sentence, style="bold" if i == 0 else ""))
    if findings.front:
        console.print(tables.front_table(findings))
        if len(findings.front) > tables.MAX_ROWS:
            hidden = len(findings.front) - tables.MAX_ROWS
            console.print(Text(f"{hidden} more on the front: autotune front", style="dim"))
    if findings.best is not None:
        _show_changes(console, findings, changes)


def _show_changes(console: Console, findings: Findings, changes: Sequence[Change]) -> None:
    shown, useless = top(changes, findings), idle(changes, findings)
    assert findings.best is not None, "changes are those of the best config"
    if shown:
        count = {1: "change", 2: "two changes"}.get(len(shown), "three changes")
        verb = "matters" if len(shown) == 1 else "matter"
        console.print(Text(f"The {count} that {verb} most in trial {findings.best.number}:"))
        console.print(tables.changes_text(shown, findings.metrics), end="")
    if useless:
        names = ", ".join(knob.name for change in useless for knob in change.knobs)
        console.print(Text(f"Changed without benefit: {names}.", style="dim"))
    if shown or useless:
        console.print()


def how_it_ended(findings: Findings, outcome: Outcome) -> str:
    """One line on budget and trials."""
    counts = findings.counts
    kinds = ", ".join(f"{n} {kind}" for kind, n in counts.failed_by_kind.items())
    trials = f"{counts.feasible} feasible, {counts.infeasible} infeasible, {counts.failed} failed"
    trials += f" ({kinds})" if kinds else ""
    done = f"{outcome.settled} of {outcome.n_trials}"
    match outcome.reason:
        case Ending.DONE if outcome.new_trials == 0:
            start = (
                f"{findings.study}: the budget of {outcome.n_trials} trials is spent, nothing to "
                f"do; a larger --n-trials goes on"
            )
        case Ending.DONE:
            start = f"{findings.study}: {done} trials, {outcome.new_trials} of them new"
        case Ending.EXHAUSTED:
            start = f"{findings.study}: every config of the space is measured, {done} trials"
        case Ending.TIMEOUT:
            start = f"{findings.study}: the time is over after {done} trials"
        case Ending.INTERRUPTED:
            start = f"{findings.study}: interrupted after {done} trials"
    return f"{start}. {trials}."


def show_next_steps(stored: Stored, named: str, storage: str, page: Path | None) -> None:
    """Where the page is, how to see more, and how to get a config out."""
    console = output.results()
    if page is not None:
        console.print(Text.assemble(("Report: ", "bold"), str(page)), soft_wrap=True)
    if storage == "memory":
        return  # nothing is left that could be read
    place = [] if storage == commands.DEFAULT_STORAGE else ["--storage", storage]
    more = shlex.join(["autotune", "front", named, *place])
    line = Text.assemble(("More: ", "bold"), f"{more} (or best, compare, show TRIAL, dashboard)")
    console.print(line, soft_wrap=True)
    trial, exporters = exportable(stored)
    if trial is None:
        return
    is_best = trial is stored.findings.best
    words = ["autotune", "export", named, "--to", exporters[0], "--trial"]
    words += ["best" if is_best else str(trial.number), "-o", "DIR", *place]
    others = f" (or {', '.join(exporters[1:])})" if exporters[1:] else ""
    line = Text.assemble(("Export: ", "bold"), f"{shlex.join(words)}{others}")
    console.print(line, soft_wrap=True)
    if not is_best:
        remark = (
            f"Trial {trial.number} is the best on the front that so many exporters can express."
        )
        console.print(Text(remark, style="dim"))


def exportable(stored: Stored) -> tuple[Trial | None, list[str]]:
    """The best of the front that most exporters can express, and their names."""
    found: tuple[Trial | None, list[str]] = (None, [])
    for trial in stored.findings.front[:MAX_TRIED]:
        able = _able_exporters(stored, trial)
        if len(able) > len(found[1]):
            found = trial, able
    return found


def _able_exporters(stored: Stored, trial: Trial) -> list[str]:
    able = []
    for name in sorted(plugins.installed("autotune.exporters")):
        try:
            plugins.load("autotune.exporters", name)(stored.record.design_point, trial.config)
        except AutotuneError as error:
            _logger.debug("exporter %s, trial %d: %s", name, trial.number, error)
        except Exception:  # a third party's exporter must not end a run
            _logger.debug("exporter %s has a fault", name, exc_info=True)
        else:
            able.append(name)
    return able


def show_sweep(parts: Sequence[Findings]) -> None:
    """The studies of a sweep beside each other."""
    lead = parts[0].metrics[0]
    columns = ("study", f"baseline {lead.title}", f"best {lead.title}", "result")
    table = tables.plain_table(*columns, right=columns[1:3])
    for findings in parts:
        trials = (findings.baseline, findings.best)
        cells = [
            format_quantity(values_of(trial)[lead.name], lead.unit)
            if trial is not None and trial.feasible
            else "-"
            for trial in trials
        ]
        table.add_row(Text(findings.study), *cells, Text(headlines(findings)[0]))
    output.results().print(table)
