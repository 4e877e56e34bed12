"""Tables for people, as rich renderables; values in readable units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from autotune.between import differences
from autotune.evaluation import Evaluation
from autotune.explain import Change
from autotune.metric import Metric
from autotune.quantity import format_change, format_quantity
from autotune.report.findings import Findings
from autotune.report.sentences import (
    effect_phrase,
    format_value,
    front_in_few,
    in_short,
    knobs_phrase,
    term_title,
    unit_of_name,
    values_of,
    why_unusable,
    worse_in_nothing,
)
from autotune.trial import Trial

MAX_ROWS = 12


def plain_table(*columns: str, right: Sequence[str] = ()) -> Table:
    """A table with a rule under its head; some columns aligned to the right."""
    from rich.box import SIMPLE_HEAD

    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(
            Text(column), justify="right" if column in right else "left", overflow="fold"
        )
    return table


def front_table(findings: Findings, *, max_rows: int | None = MAX_ROWS) -> Table:
    """The Pareto front with each config compared to the baseline, which comes last.

    The config that is better and worse in nothing is set in bold.

    Args:
        findings: A study with at least one feasible trial.
        max_rows: Of a longer front so many are shown, evenly spread; None for all.
    """
    baseline = findings.baseline
    usable = baseline is not None and baseline.feasible
    titles = [metric.title for metric in findings.metrics]
    name = baseline.label or "the baseline" if baseline else ""
    table = plain_table(
        "trial", *titles, f"against {name}" if usable else "", right=["trial", *titles]
    )
    named = worse_in_nothing(findings)
    rows = front_in_few(findings, max_rows)
    if baseline is not None and usable and baseline.number not in {trial.number for trial in rows}:
        rows = [*rows, baseline]
    for trial in rows:
        values = values_of(trial)
        short = in_short(trial, baseline, findings.metrics) if baseline and usable else ""
        table.add_row(
            str(trial.number),
            *(format_quantity(values[m.name], m.unit) for m in findings.metrics),
            Text(short),
            style="bold" if trial is named else "dim" if trial is baseline else None,
        )
    return table


def trial_table(trial: Trial, metrics: Sequence[Metric], baseline: Trial | None) -> Table:
    """One trial: what became of it, its metrics and its config, changed knobs first."""
    return facts_table(_facts(trial, metrics, baseline))


def facts_table(facts: Sequence[tuple[str, str]]) -> Table:
    """Names and what they are, without any lines."""
    table = Table.grid(padding=(0, 3))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, text in facts:
        table.add_row(Text(name), Text(text))
    return table


def _facts(
    trial: Trial, metrics: Sequence[Metric], baseline: Trial | None
) -> list[tuple[str, str]]:
    label = f" {trial.label}" if trial.label else ""
    facts = [("trial", f"{trial.number} ({trial.state.value}, {trial.origin.value}{label})")]
    old = values_of(baseline) if baseline else {}
    for metric in metrics:
        value = values_of(trial).get(metric.name)
        if value is None:
            continue
        text = format_quantity(value, metric.unit)
        if baseline is not None and metric.name in old and baseline.number != trial.number:
            text += f"  ({format_change(value, old[metric.name], metric)})"
        facts.append((metric.title, text))
    if trial.evaluation is not None and not trial.feasible:
        facts.append(("unusable", why_unusable(trial)))
    facts.append(("", ""))
    changed = (
        {change.name: change for change in differences(trial.config, baseline.config)}
        if (baseline)
        else {}
    )
    for name in sorted(trial.config, key=lambda name: name not in changed):
        text = format_value(trial.config[name])
        if name in changed:
            text += f"  (was {format_value(changed[name].before)})"
        facts.append((name, text))
    return facts


def evaluation_table(evaluation: Evaluation, metrics: Sequence[Metric]) -> Table:
    """Metrics, constraints and breakdown of one measurement."""
    table = Table.grid(padding=(0, 3))
    table.add_column(style="dim")
    table.add_column(justify="right")
    units = {metric.name: metric for metric in metrics}
    for name, value in evaluation.metrics.items():
        metric = units.get(name, Metric(name=name))
        table.add_row(Text(metric.title), format_quantity(value, metric.unit))
    for name, value in evaluation.constraints.items():
        verdict = "broken" if value > 0 else "holds"
        table.add_row(Text(name), f"{format_quantity(value, unit_of_name(name))} ({verdict})")
    for name, value in evaluation.breakdown.items():
        table.add_row(Text(f"  {term_title(name)}"), format_quantity(value, "s"))
    return table


def comparison_table(
    names: tuple[str, str],
    configs: tuple[Mapping[str, Any], Mapping[str, Any]],
    evaluations: tuple[Evaluation, Evaluation],
    metrics: Sequence[Metric],
) -> Table:
    """Two configs side by side: changed knobs, metrics, breakdown."""
    table = plain_table("", *names, "change", right=(*names, "change"))
    for change in differences(configs[1], configs[0]):
        table.add_row(Text(change.name), format_value(change.before), format_value(change.after))
    table.add_section()
    first, second = evaluations
    for metric in metrics:
        _quantity_row(table, metric, first.metrics, second.metrics)
    for name in {**first.constraints, **second.constraints}:
        values = [each.constraints.get(name) for each in evaluations]
        texts = ["" if v is None else format_quantity(v, unit_of_name(name)) for v in values]
        table.add_row(Text(name), *texts)
    table.add_section()
    for name in {**first.breakdown, **second.breakdown}:
        metric = Metric(name=name, unit="s", label=term_title(name))
        _quantity_row(table, metric, first.breakdown, second.breakdown)
    return table


def _quantity_row(
    table: Table, metric: Metric, first: Mapping[str, float], second: Mapping[str, float]
) -> None:
    old, new = first.get(metric.name), second.get(metric.name)
    if not old and not new:
        return
    texts = ["" if value is None else format_quantity(value, metric.unit) for value in (old, new)]
    change = format_change(new, old, metric) if old is not None and new is not None else ""
    table.add_row(Text(metric.title), *texts, change)


def changes_text(changes: Sequence[Change], metrics: Sequence[Metric]) -> Text:
    """The changes that matter, numbered, with what each is worth."""
    text = Text()
    for i, change in enumerate(changes, start=1):
        text.append(f"  {i}. {knobs_phrase(change)}\n", style="bold")
        text.append(f"     {effect_phrase(change, metrics)}\n")
    return text
