"""From a study in a storage to what is shown of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from autotune.errors import Unsupported
from autotune.explain import Change, ablate
from autotune.objective import Objective
from autotune.report.contents import Contents
from autotune.report.findings import Findings, find
from autotune.space import SearchSpace
from autotune.study import StudyRecord
from autotune.study.results import find_baseline
from autotune.trial import Origin, Trial, TrialState


def findings_of(record: StudyRecord, trials: Sequence[Trial], storage: str) -> Findings:
    """What the trials of a stored study show.

    Args:
        record: The study.
        trials: All of its trials.
        storage: Where it is, as shown to people.
    """
    found = [(name, _baseline(record, trials, name)) for name in record.baselines]
    return find(
        trials,
        record.metrics,
        study=record.name,
        constraints=record.constraints,
        description=record.description,
        backend=f"{record.objective} {record.objective_version}",
        baselines=[replace(trial, label=name) for name, trial in found if trial is not None],
        provenance=provenance_rows(record, trials, storage),
    )


def _baseline(record: StudyRecord, trials: Sequence[Trial], name: str) -> Trial | None:
    """The trial that says it measured a baseline; else any with its config, which takes longer."""
    for trial in trials:
        if (trial.label, trial.origin, trial.state) == (name, Origin.BASELINE, TrialState.COMPLETE):
            return trial
    return find_baseline(trials, record.baselines, name)


def provenance_rows(record: StudyRecord, trials: Sequence[Trial], storage: str) -> dict[str, str]:
    """What made a study's numbers, as rows of a table."""
    recorded = [trial.attributes.get("provenance", {}) for trial in trials]
    rows = {
        "study": record.storage_name,
        "objective": f"{record.objective}, version {record.objective_version}"
        f"{'' if record.deterministic else ', not deterministic'}",
        "design point": f"{record.design_point.name} ({record.design_point.fingerprint})",
        "fingerprint": record.fingerprint,
        "sampler": f"{record.sampler}, seed {record.seed}, "
        f"{record.n_startup_trials} start-up trials",
        "budget": f"{record.n_trials} trials",
        "began": record.created.strftime("%Y-%m-%d %H:%M UTC"),
        "takes trials over from": record.predecessor or "",
        "versions": "; ".join(_distinct(_versions(each) for each in recorded)),
        "git commit": ", ".join(_distinct(each.get("git_commit") for each in recorded)),
        "host": ", ".join(_distinct(each.get("host") for each in recorded)),
        "storage": storage,
    }
    return {name: text for name, text in rows.items() if text}


def contents_of(
    findings: Findings,
    *,
    space: SearchSpace,
    objective: Objective | None,
    why_no_objective: str = "",
) -> Contents:
    """Work out what the page shows beside the findings: changes and importances.

    Args:
        findings: The study.
        space: Its space.
        objective: Measures what changes are worth; None where it cannot be made.
        why_no_objective: Said on the page in that case.
    """
    from autotune.importance import importances

    changes, note = changes_of(findings, space=space, objective=objective)
    found = [importances(findings.trials, space, metric) for metric in findings.metrics]
    return Contents(
        findings=findings,
        changes=changes,
        changes_note=note if objective is not None else why_no_objective,
        importances=[each for each in found if each is not None],
    )


def changes_of(
    findings: Findings, *, space: SearchSpace, objective: Objective | None
) -> tuple[list[Change], str]:
    """All changes of the best config against the baseline, or why there are none to show."""
    best, baseline = findings.best, findings.baseline
    if objective is None or best is None or baseline is None or best.number == baseline.number:
        return [], ""
    if not space.contains(baseline.config) or not space.contains(best.config):
        return [], "The baseline is outside the space, so that nothing can be set back to it."
    try:
        changes = ablate(
            best,
            baseline,
            space=space,
            objective=objective,
            metrics=findings.metrics,
            known=findings.trials,
        )
    except Unsupported as error:
        return [], f"Not measured: {error}."
    return changes, ""


def _versions(provenance: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {text}" for name, text in provenance.get("versions", {}).items())


def _distinct(texts: Any) -> list[str]:
    return [str(text) for text in dict.fromkeys(texts) if text]
