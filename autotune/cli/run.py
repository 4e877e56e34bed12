"""``autotune run``: starts a study, resumes it, or says that there is nothing left to do."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from autotune import progress
from autotune.cli import commands, output, shapes, summary
from autotune.cli.stored import Stored, load
from autotune.cli.targets import Target, resolve
from autotune.errors import InvalidInput
from autotune.explain import Change
from autotune.report.stored import changes_of, contents_of
from autotune.study import Ending, Outcome, Study, StudySpec, open_study

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What ``run`` was asked for, beside the study; None where the study decides.

    Attributes:
        storage: Where studies are.
        n_trials: Budget.
        n_jobs: Configs measured at once.
        timeout_s: From when on nothing new is begun.
        trial_timeout_s: How long one evaluation may take.
        migrate: Whether a changed study's trials are taken over.
        reset_sampler: Whether another sampler or seed than the stored one is meant.
        report: The page, or the folder of a sweep's pages.
        no_report: Whether none is written.
        page_suffix: What tells the pages of two backends apart.
    """

    storage: str
    n_trials: int | None
    n_jobs: int
    timeout_s: float | None
    trial_timeout_s: float | None
    migrate: bool
    reset_sampler: bool
    report: Path | None
    no_report: bool
    page_suffix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One study after its run.

    Attributes:
        stored: What is in the storage now.
        outcome: How the run ended.
        changes: What each of the best config's changes is worth.
        page: The report; None where there is none.
        measured_s: How long measuring took.
    """

    stored: Stored
    outcome: Outcome
    changes: Sequence[Change]
    page: Path | None
    measured_s: float

    @property
    def interrupted(self) -> bool:
        """Whether a signal ended the run."""
        return self.outcome.reason is Ending.INTERRUPTED

    @property
    def nothing_worked(self) -> bool:
        """Whether there is not a single measurement that gave values."""
        counts = self.stored.findings.counts
        return counts.measured > 0 and counts.failed == counts.measured

    def shape(self) -> dict[str, Any]:
        """The JSON line of ``run`` for one study.

        ``{"study", "storage", "outcome", "new_trials", "budget", …standing_shape, "changes":
        [change_shape], "report", "seconds"}``; outcome is ``done``, ``space exhausted``,
        ``interrupted`` or ``timeout``, report a path or null, seconds what measuring took;
        changes are explained where something new was measured.
        """
        return {
            "study": self.stored.record.name,
            "storage": self.stored.storage,
            "outcome": self.outcome.reason.value,
            "new_trials": self.outcome.new_trials,
            "budget": self.outcome.n_trials,
            **shapes.standing_shape(self.stored.findings),
            "changes": [shapes.change_shape(change) for change in self.changes],
            "report": str(self.page) if self.page else None,
            "seconds": round(self.measured_s, 3),
        }


def run(
    study: commands.Study,
    storage: commands.Storage = commands.DEFAULT_STORAGE,
    n_trials: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Budget in all; a larger one goes on from where the study is.",
            show_default="the study's",
        ),
    ] = None,
    n_jobs: Annotated[int, typer.Option(min=1, help="Configs measured at the same time.")] = 1,
    sampler: Annotated[
        str | None, typer.Option(help="tpe, nsga2, random, qmc or gp.", show_default="the study's")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Decides all proposals.", min=0, show_default="the study's"),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(help="Another installed backend to measure with.", show_default="the study's"),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(min=0.0, metavar="SECONDS", help="After which nothing new is begun."),
    ] = None,
    trial_timeout: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            metavar="SECONDS",
            help="After which one evaluation is killed and counts as failed.",
        ),
    ] = None,
    migrate: Annotated[
        bool,
        typer.Option("--migrate", help="Take the trials of a changed study over into a new one."),
    ] = False,
    reset_sampler: Annotated[
        bool,
        typer.Option(
            "--reset-sampler", help="Go on with another sampler or seed than the study began with."
        ),
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(help="The HTML page; of a sweep, their folder.", show_default="./STUDY.html"),
    ] = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no HTML page.")] = False,
    json: commands.Json = False,
    verbose: commands.Verbose = False,
) -> int:
    """Tune: measure configs until the budget is spent. The same command resumes."""
    target = resolve(study)
    asked = {"sampler": sampler, "seed": seed, "objective": objective}
    changes: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    specs = [replace(spec, **changes) for spec in target.specs]
    options = Options(
        storage=storage,
        n_trials=n_trials,
        n_jobs=n_jobs,
        timeout_s=timeout,
        trial_timeout_s=trial_timeout,
        migrate=migrate,
        reset_sampler=reset_sampler,
        report=report,
        no_report=no_report,
        page_suffix=f"-{objective}" if objective else "",
    )
    _check_report(report, is_sweep=target.is_sweep)
    with commands.signals() as caught:
        results = _run_all(specs, target, options, show=not json)
    if json:
        output.write_json(_document(target, results))
    elif target.is_sweep:
        summary.show_sweep([result.stored.findings for result in results])
    if results[-1].interrupted:
        output.write_error("interrupted; nothing finished is lost, the same command resumes")
        return caught.exit_code
    return commands.FAILED if any(each.nothing_worked for each in results) else commands.DONE


def _check_report(report: Path | None, *, is_sweep: bool) -> None:
    """Before hours of measuring, not after them."""
    if report is None:
        return
    if is_sweep and not report.is_dir():
        raise InvalidInput("--report", f"must be an existing folder for a sweep, got {report}")
    if not is_sweep and (report.is_dir() or not report.parent.is_dir()):
        raise InvalidInput("--report", f"must be a file in an existing folder, got {report}")


def _run_all(
    specs: Sequence[StudySpec], target: Target, options: Options, *, show: bool
) -> list[Result]:
    results: list[Result] = []
    for spec in specs:
        results.append(_run_one(spec, target, options, show=show))
        if results[-1].interrupted:
            break
    return results


def _run_one(spec: StudySpec, target: Target, options: Options, *, show: bool) -> Result:
    study = open_study(
        spec, options.storage, migrate=options.migrate, reset_sampler=options.reset_sampler
    )
    start = time.monotonic()
    outcome = _optimize(study, options)
    measured_s = time.monotonic() - start
    stored = load(study.storage, study.name)
    changes: Sequence[Change] = ()
    if outcome.new_trials and outcome.reason is not Ending.INTERRUPTED:
        changes, _ = changes_of(stored.findings, space=spec.space, objective=study.objective)
    if show:
        summary.show_study(stored.findings, outcome, changes)
    page = _page(study, stored, outcome, target, options)
    if show and outcome.reason is not Ending.INTERRUPTED:
        summary.show_next_steps(stored, target.name, options.storage, page)
    return Result(stored=stored, outcome=outcome, changes=changes, page=page, measured_s=measured_s)


def _optimize(study: Study, options: Options) -> Outcome:
    stored_budget = max(study.spec.n_trials, study.record.n_trials)
    budget = options.n_trials if options.n_trials is not None else stored_budget
    first_baseline = next(iter(study.spec.baselines), "")
    start = progress.standing(study.metrics, study.trials, budget, baseline=first_baseline)
    if start.done >= budget:
        return study.optimize(options.n_trials)
    if start.done:
        _logger.info("%s: going on from trial %d of %d", study.spec.name, start.done, budget)
    with progress.shown(start, study.spec.name, output.messages()) as update:
        return study.optimize(
            options.n_trials,
            n_jobs=options.n_jobs,
            timeout_s=options.timeout_s,
            trial_timeout_s=options.trial_timeout_s,
            on_trial=update,
        )


def _page(
    study: Study, stored: Stored, outcome: Outcome, target: Target, options: Options
) -> Path | None:
    """Write the report, unless there is one already and nothing has been added to it."""
    if options.no_report:
        return None
    name = f"{study.spec.name}{options.page_suffix}".replace("/", "-")
    page = options.report or Path(f"{name}.html")
    if target.is_sweep and options.report is not None:
        page = options.report / f"{name}.html"
    unchanged = outcome.new_trials == 0 and options.report is None and page.exists()
    if unchanged:
        return page.absolute()
    if outcome.reason is Ending.INTERRUPTED or not stored.findings.trials:
        return None
    from autotune.report.page import write

    contents = contents_of(stored.findings, space=study.spec.space, objective=study.objective)
    return write(contents, page)


def _document(target: Target, results: Sequence[Result]) -> dict[str, Any]:
    """`Result.shape`; of a sweep ``{"study", "studies": [Result.shape, …]}``."""
    if not target.is_sweep:
        return results[0].shape()
    return {"study": target.name, "studies": [result.shape() for result in results]}
