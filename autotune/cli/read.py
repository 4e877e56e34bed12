"""Commands that look at a storage: ``list``, ``status``, ``best``, ``front``, ``show``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from autotune.cli import commands, output, shapes, tables
from autotune.cli.stored import Stored, load, load_all
from autotune.cli.targets import installed_studies
from autotune.errors import UnknownName
from autotune.metric import Metric
from autotune.quantity import format_quantity
from autotune.report.sentences import headlines, nothing_feasible, values_of, versus
from autotune.storage import locate

TrialName = Annotated[
    str, typer.Argument(metavar="TRIAL", help="A number, best, baseline, or a baseline's name.")
]


def list_studies(
    storage: commands.Storage = commands.DEFAULT_STORAGE,
    json: commands.Json = False,
    verbose: commands.Verbose = False,
) -> None:
    """The studies that can be run, and those in the storage.

    JSON: ``{"storage", "installed": [NAME], "studies": [{"study", "name", "design_point",
    "created", "budget", …standing_shape}]}``.
    """
    location = locate(storage)
    # Where nobody has named a storage, that there is none yet is no error.
    none_yet = storage == commands.DEFAULT_STORAGE and not Path(storage).exists()
    studies = [] if none_yet else load_all(storage)
    if json:
        rows = [
            {**_identity(stored), **shapes.standing_shape(stored.findings)} for stored in studies
        ]
        document = {"storage": str(location), "installed": installed_studies(), "studies": rows}
        output.write_json(document)
        return
    console = output.results()
    console.print(Text(f"Can be run: {', '.join(installed_studies()) or 'none is installed'}"))
    if not studies:
        console.print(Text(f"No study in {location} yet."))
        return
    console.print(Text(f"In {location}:"))
    table = tables.plain_table("study", "trials", "feasible", "failed", "best", right=_COUNTS)
    for stored in studies:
        counts = stored.findings.counts
        table.add_row(
            Text(stored.record.storage_name),
            f"{counts.measured}/{stored.record.n_trials}",
            str(counts.feasible),
            str(counts.failed),
            Text(_best_value(stored)),
        )
    console.print(table)


_COUNTS = ("trials", "feasible", "failed")


def status(
    study: commands.StoredStudy = None,
    storage: commands.Storage = commands.DEFAULT_STORAGE,
    json: commands.Json = False,
    verbose: commands.Verbose = False,
) -> None:
    """How far a study is and what it has found.

    JSON: ``{"study", "name", "storage", "design_point", "fingerprint", "sampler", "seed",
    "created", "budget", "finished", "running", "pruned", "void", "outside",
    …standing_shape}``.
    """
    stored = load(storage, study)
    record, counts = stored.record, stored.findings.counts
    if json:
        document = {
            **_identity(stored),
            "storage": stored.storage,
            "fingerprint": record.fingerprint,
            "sampler": record.sampler,
            "seed": record.seed,
            "finished": counts.measured >= record.n_trials,
            **shapes.counts_shape(counts),
            **shapes.standing_shape(stored.findings),
        }
        output.write_json(document)
        return
    rows = {
        **stored.findings.provenance,
        "trials": f"{counts.measured} of {record.n_trials} measured: {counts.feasible} feasible, "
        f"{counts.infeasible} infeasible, {counts.failed} failed",
        "running": str(counts.running or ""),
        "pruned": str(counts.pruned or ""),
        "void": str(counts.void or ""),
        "outside the budget": str(counts.outside or ""),
        "front": f"{len(stored.findings.front)} configs, hypervolume "
        f"{stored.findings.hypervolume:.4g}",
    }
    grid = tables.facts_table([(name, text) for name, text in rows.items() if text])
    console = output.results()
    console.print(grid)
    console.print()
    for sentence in headlines(stored.findings):
        console.print(Text(sentence, style="bold"))


def best(
    study: commands.StoredStudy = None,
    storage: commands.Storage = commands.DEFAULT_STORAGE,
    metric: Annotated[
        str | None, typer.Option(help="Best in which metric.", show_default="the first")
    ] = None,
    json: commands.Json = False,
    verbose: commands.Verbose = False,
) -> None:
    """The best feasible config of a study.

    JSON: ``{"study", "objective", "metric", "best": trial_shape | null, "baseline": trial_shape
    | null, "speed_up_percent", "metrics"}``, the speed-up being that of ``metric``.
    """
    stored = load(storage, study)
    findings = stored.findings
    chosen = _metric(stored, metric)
    trial = findings.best_by(chosen)
    baseline = findings.baseline
    if json:
        document = {
            "study": stored.record.name,
            "objective": findings.backend,
            "metric": chosen.name,
            "best": shapes.optional_trial_shape(trial),
            "baseline": shapes.optional_trial_shape(baseline),
            "speed_up_percent": shapes.speed_up(trial, baseline, chosen),
            "metrics": shapes.metrics_shape(stored.record.recorded),
        }
        output.write_json(document)
        return
    console = output.results()
    if trial is None:
        console.print(Text(nothing_feasible(findings)))
        return
    if baseline is not None and baseline.feasible and baseline.number != trial.number:
        text = versus(trial, baseline, findings.metrics)
        console.print(Text(f"{text[0].upper()}{text[1:]}.", style="bold"))
    console.print(tables.trial_table(trial, stored.record.recorded, baseline))


def front(
    study: commands.StoredStudy = None,
    storage: commands.Storage = commands.DEFAULT_STORAGE,
    json: commands.Json = False,
    verbose: commands.Verbose = False,
) -> None:
    """The Pareto front: the configs that no other beats in every metric.

    JSON: ``{"study", "objective", "front": [trial_shape], "baseline": trial_shape | null,
    "hypervolume", "metrics"}``, best in the first metric first.
    """
    stored = load(storage, study)
    findings = stored.findings
    if json:
        document = {
            "study": stored.record.name,
            "objective": findings.backend,
            "front": [shapes.trial_shape(trial) for trial in findings.front],
            "baseline": shapes.optional_trial_shape(findings.baseline),
            "hypervolume": findings.hypervolume,
            "metrics": shapes.metrics_shape(findings.metrics),
        }
        output.write_json(document)
        return
    console = output.results()
    if not findings.front:
        console.print(Text(nothing_feasible(findings)))
        return
    console.print(tables.front_table(findings, max_rows=None))


def show(
    trial: TrialName,
    study: commands.StudyOption = None,
    storage: commands.Storage = commands.DEFAULT_STORAGE,
    json: commands.Json = False,
    verbose: commands.Verbose = False,
) -> None:
    """Everything about one trial.

    JSON: ``{"study", "objective", …trial_shape, "attributes": {…}}``.
    """
    stored = load(storage, study)
    found = stored.trial(trial)
    if json:
        document = {
            "study": stored.record.name,
            "objective": stored.findings.backend,
            **shapes.trial_shape(found),
            "attributes": dict(found.attributes),
        }
        output.write_json(document)
        return
    console = output.results()
    recorded = stored.record.recorded
    console.print(tables.trial_table(found, recorded, stored.findings.baseline))
    if found.evaluation is not None and found.evaluation.ok:
        console.print()
        console.print(tables.evaluation_table(found.evaluation, recorded))


def _identity(stored: Stored) -> dict[str, Any]:
    record = stored.record
    return {
        "study": record.name,
        "name": record.storage_name,
        "design_point": record.design_point.name,
        "created": record.created.isoformat(),
        "budget": record.n_trials,
    }


def _best_value(stored: Stored) -> str:
    findings = stored.findings
    metric = findings.metrics[0]
    if findings.best is None:
        return "nothing feasible"
    return f"{metric.title} {format_quantity(values_of(findings.best)[metric.name], metric.unit)}"


def _metric(stored: Stored, name: str | None) -> Metric:
    known = {metric.name: metric for metric in stored.record.recorded}
    if name is None:
        return stored.findings.metrics[0]
    if name not in known:
        raise UnknownName("metric", name, known)
    return known[name]
