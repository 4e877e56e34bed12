"""Pieces of the page that several rows or sections are made of."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from autotune.between import differences
from autotune.evaluation import Status
from autotune.explain import Change
from autotune.jsonable import to_jsonable
from autotune.metric import Metric
from autotune.quantity import format_change, format_quantity
from autotune.report.findings import Findings, broken_constraints, failure_kind
from autotune.report.markup import Html, element, join, table
from autotune.report.sentences import format_value, gain, values_of, worse_in_nothing
from autotune.trial import Trial, TrialState


def tiles(findings: Findings) -> Html:
    """The best value of each metric, and how many trials there are."""
    best, baseline, counts = findings.best, findings.baseline, findings.counts
    shown = []
    for metric in findings.metrics:
        top = findings.best_by(metric)
        if top is None:
            continue
        value = values_of(top)[metric.name]
        shown.append(
            _tile(
                f"best {metric.title}",
                format_quantity(value, metric.unit),
                _against(value, baseline, metric),
            )
        )
    shown.append(
        _tile(
            "trials measured",
            f"{counts.measured:,}",
            f"{counts.feasible:,} feasible, {counts.infeasible:,} infeasible, "
            f"{counts.failed:,} failed",
        )
    )
    if best is not None and len(findings.metrics) > 1:
        note = f"hypervolume {findings.hypervolume:.4g}"
        shown.append(_tile("on the Pareto front", f"{len(findings.front):,}", note))
    return element("div", *shown, class_="tiles")


def _tile(title: str, value: str, note: str) -> Html:
    return element(
        "div",
        element("span", title, class_="title"),
        element("strong", value),
        element("span", note, class_="note"),
        class_="tile",
    )


def _against(value: float, baseline: Trial | None, metric: Metric) -> str:
    old = values_of(baseline).get(metric.name) if baseline else None
    if baseline is None or old is None:
        return ""
    change = format_change(value, old, metric)
    word = "as" if change == "unchanged" else "of" if change.endswith("x") else "than"
    name = baseline.label or "the baseline"
    return f"{change} {word} {name} ({format_quantity(old, metric.unit)})"


def front_rows(trials: Sequence[Trial], findings: Findings) -> Html:
    """Trials with their metrics against the baseline, and what they change."""
    named = worse_in_nothing(findings)
    head = ["trial", *(metric.title for metric in findings.metrics), "config"]
    cells = [
        [
            trial.number,
            *(_metric_cell(trial, metric, findings.baseline) for metric in findings.metrics),
            _config_cell(trial, findings.baseline, is_open=trial in (trials[0], named)),
        ]
        for trial in trials
    ]
    return table(head, cells, numeric=range(1 + len(findings.metrics)))


def _metric_cell(trial: Trial, metric: Metric, baseline: Trial | None) -> Html:
    value = values_of(trial)[metric.name]
    old = values_of(baseline).get(metric.name) if baseline else None
    parts: list[object] = [element("b", format_quantity(value, metric.unit))]
    deviation = trial.attributes.get("standard_deviation", {}).get(metric.name)
    if deviation is not None:
        repeats = trial.attributes["repeats"]
        parts.append(f" ± {format_quantity(deviation, metric.unit)} (n = {repeats})")
    if old is not None:
        better = gain(value, old, metric)
        kind = "better" if better > 0 else "worse" if better < 0 else "same"
        parts.append(element("span", format_change(value, old, metric), class_=kind))
    return join(parts)


def _config_cell(trial: Trial, baseline: Trial | None, *, is_open: bool) -> Html:
    changed = differences(trial.config, baseline.config if baseline else {})
    lines = [
        element("span", f"{knob.name} = {format_value(knob.after)}", class_="knob")
        for knob in changed
    ]
    verb = "changed" if baseline else "set"
    knobs = f"{len(changed)} knob{'s' if len(changed) != 1 else ''} {verb}"
    whole = json.dumps(to_jsonable(trial.config), indent=1, ensure_ascii=False)
    config = element("details", element("summary", "whole config"), element("pre", whole))
    if not changed:
        return join(["the baseline itself", config])
    opened = {"open": ""} if is_open else {}
    body = element("div", *lines, class_="knobs")
    return element("details", element("summary", knobs), body, config, **opened)


def knob_lines(change: Change) -> list[Html]:
    """The parameters of a change, before and after."""
    return [
        element(
            "span",
            f"{knob.name} ",
            element("span", format_value(knob.before), class_="old"),
            " → ",
            element("b", format_value(knob.after)),
            class_="knob",
        )
        for knob in change.knobs
    ]


def reasons(trials: Sequence[Trial]) -> list[Html]:
    """The most frequent reasons of failed trials and of broken constraints."""
    found: Counter[tuple[str, str]] = Counter()
    for trial in trials:
        if trial.state is TrialState.FAILED:
            reason = trial.evaluation.reason if trial.evaluation else ""
            found[failure_kind(trial), (reason.splitlines() or ["no reason recorded"])[0]] += 1
        elif trial.evaluation is not None and trial.evaluation.status is Status.OK:
            broken = broken_constraints(trial)
            found.update(("infeasible", f"{name} is above 0") for name in broken)
    if not found:
        return []
    rows = [[kind, reason, number] for (kind, reason), number in found.most_common(8)]
    return [table(["kind", "reason", "trials"], rows, numeric=[2])]
