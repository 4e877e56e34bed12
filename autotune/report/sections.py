"""The parts of the page, each a pure function of the report; None where it has nothing to say."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.io import to_json

from autotune.importance import METHOD
from autotune.quantity import format_quantity
from autotune.report import figures
from autotune.report.contents import Contents
from autotune.report.markup import Html, data_list, element, table
from autotune.report.pieces import front_rows, knob_lines, reasons, tiles
from autotune.report.sentences import (
    effect_phrase,
    front_in_few,
    headlines,
    term_title,
)
from autotune.trial import Trial

NUM_FRONT_ROWS = 12
MAX_FRONT_ROWS = 500
UNRELIABLE_QUALITY = 0.3
"""Below this share of explained variation, importances are shown with a warning."""


def header(contents: Contents) -> Html:
    """Name, headline sentences and the figures that matter most."""
    findings = contents.findings
    first, *others = headlines(findings)
    return element(
        "header",
        element("p", "autotune · ", findings.study, class_="kicker"),
        element("h1", first),
        *(element("p", sentence, class_="lead") for sentence in others),
        element("p", findings.description, class_="description") if findings.description else "",
        tiles(findings),
    )


def front(contents: Contents) -> Html | None:
    """The Pareto front as plots of the first metric over each other one."""
    findings = contents.findings
    if len(findings.metrics) < 2 or not findings.rankable:
        return None
    lead, *others = findings.metrics
    plots = [
        _plot(figures.front_figure(findings, metric), f"front-{i}")
        for i, metric in enumerate(others)
    ]
    better = ", ".join(
        f"{metric.title} {'low' if metric.direction == 'minimize' else 'high'}"
        for metric in (lead, *others)
    )
    note = (
        f"Each point is one config, measured by {findings.backend}. Better is: {better}. No "
        f"measured config beats one on the front in every metric; point at one to see its knobs."
    )
    return _section("Trade-off", note, *plots)


def front_table(contents: Contents) -> Html | None:
    """Every config of the front, with what it gains and what it changes."""
    findings = contents.findings
    if not findings.front:
        return None
    few = front_in_few(findings, NUM_FRONT_ROWS)
    tables = [front_rows(few, findings)]
    shown = "All" if len(few) == len(findings.front) else f"{len(few)} of"
    if len(few) < len(findings.front):
        every = front_rows(findings.front[:MAX_FRONT_ROWS], findings)
        title = f"All {min(len(findings.front), MAX_FRONT_ROWS)}"
        tables.append(element("details", element("summary", title), every))
    title = "Pareto front" if len(findings.metrics) > 1 else "Best config"
    note = f"{shown} {len(findings.front)} configs, measured by {findings.backend}."
    if findings.baseline is not None:
        note += f" Changes are against {findings.baseline.label or 'the baseline'}."
    return _section(title, note, *tables)


def changes(contents: Contents) -> Html | None:
    """The changes that matter most, and those that could be left out."""
    findings = contents.findings
    if not contents.changes:
        return (
            _section("What made the difference", contents.changes_note)
            if (contents.changes_note)
            else None
        )
    top, idle = contents.top_changes, contents.idle_changes
    cards = [
        element(
            "li",
            element("div", *knob_lines(change), class_="knobs"),
            element("p", effect_phrase(change, findings.metrics)),
        )
        for change in top
    ]
    assert findings.best is not None, "changes are those of the best config"
    name = findings.baseline.label or "the baseline" if findings.baseline else "the baseline"
    note = (
        f"From {name} to trial {findings.best.number}, the best in {findings.metrics[0].title}, "
        f"one change after the other, always the one that does most next; measured by "
        f"{findings.backend}. Changes that are of use only together count as one. The effects "
        "add up to the whole difference."
    )
    tail: list[Html] = []
    if idle:
        names = ", ".join(knob.name for change in idle for knob in change.knobs)
        tail = [
            element(
                "p",
                f"Changed without benefit, and better left as they were: {names}.",
                class_="note",
            )
        ]
    if not cards:
        return _section("What made the difference", note, *tail)
    title = _number_word(len(cards))
    return _section(title, note, element("ol", *cards, class_="cards"), *tail)


def breakdown(contents: Contents) -> Html | None:
    """Where the time goes in the baseline and in the best config."""
    findings = contents.findings
    pairs = [(findings.baseline, "baseline"), (findings.best, "best")]
    trials = [
        (f"{trial.label or name} (trial {trial.number})", trial)
        for trial, name in pairs
        if trial is not None and trial.evaluation is not None and trial.evaluation.breakdown
    ]
    if len({trial.number for _, trial in trials}) < len(trials):
        trials = trials[:1]
    if not trials:
        return None
    terms = dict.fromkeys(t for _, trial in trials for t in _breakdown(trial))
    rows = [
        [
            term_title(term),
            *(format_quantity(_breakdown(trial).get(term, 0.0), "s") for _, trial in trials),
        ]
        for term in terms
        if any(_breakdown(trial).get(term) for _, trial in trials)
    ]
    sums = [format_quantity(sum(_breakdown(trial).values()), "s") for _, trial in trials]
    details = element(
        "details",
        element("summary", "Numbers"),
        table(
            ["term", *(name for name, _ in trials)],
            [*rows, ["sum", *sums]],
            numeric=range(1, 1 + len(trials)),
        ),
    )
    note = f"As {findings.backend} accounts for it."
    figure = _plot(figures.breakdown_figure(trials), "breakdown")
    return _section("Where the time goes", note, figure, details)


def history(contents: Contents) -> Html | None:
    """How each metric's best value came about."""
    findings = contents.findings
    if not findings.rankable:
        return None
    plots = [
        _plot(figures.history_figure(findings, metric), f"history-{i}")
        for i, metric in enumerate(findings.metrics)
    ]
    return _section("History", "", _columns(plots))


def importances(contents: Contents) -> Html | None:
    """What each metric depends on, with how far that can be trusted."""
    if not contents.importances:
        return None
    titles = {metric.name: metric.title for metric in contents.findings.metrics}
    blocks = []
    for i, each in enumerate(contents.importances):
        quality = f"R² {each.quality:.2f} on held-out trials, {each.num_trials} trials"
        if each.quality < UNRELIABLE_QUALITY:
            quality += ": too little to rely on"
        blocks.append(
            element(
                "div",
                element("h3", titles.get(each.metric, each.metric)),
                _plot(figures.importance_figure(each), f"importance-{i}"),
                element("p", quality, class_="note"),
            )
        )
    return _section("Which knobs matter", METHOD, _columns(blocks))


def counts(contents: Contents) -> Html:
    """How many trials of each kind, and why those that failed did."""
    findings = contents.findings
    numbers = findings.counts
    rows: list[tuple[object, object]] = [
        ("measured (of the budget)", numbers.measured),
        ("feasible", numbers.feasible),
        ("infeasible: a constraint is broken", numbers.infeasible),
        *((f"failed: {kind}", number) for kind, number in numbers.failed_by_kind.items()),
        ("running or interrupted", numbers.running),
        ("void: lost to another worker, or its worker died", numbers.void),
        ("pruned before measuring", numbers.pruned),
        ("outside the budget: imported or measured again", numbers.outside),
    ]
    kept = [row for row in rows if row[1] or row[0] in ("measured (of the budget)", "feasible")]
    return _section("Trials", "", data_list(kept), *reasons(findings.trials))


def provenance(contents: Contents) -> Html:
    """What made the numbers."""
    rows = [
        *contents.findings.provenance.items(),
        ("page written", contents.written.strftime("%Y-%m-%d %H:%M UTC")),
    ]
    return _section("Provenance", "", data_list(rows))


def _section(title: str, note: str, *children: Html) -> Html:
    paragraph = element("p", note, class_="note") if note else ""
    return element("section", element("h2", title), paragraph, *children)


def _columns(blocks: Sequence[Html]) -> Html:
    """Side by side where there is room; one alone takes all of it."""
    return element("div", *blocks, class_="columns" if len(blocks) > 1 else "alone")


def _plot(figure: go.Figure, name: str) -> Html:
    """A place for a plot and its data; the page's script draws it once the layout stands."""
    data = to_json(figure)
    # In a script element only the text itself can end it; JSON has escapes for these.
    for character in "<>&\u2028\u2029":
        data = data.replace(character, f"\\u{ord(character):04x}")
    height = f"height: {figure.layout.height}px"
    return element(
        "figure",
        element("div", id=name, class_="plot", style=height),
        element("script", Html(data), type="application/json"),
    )


def _number_word(n: int) -> str:
    words = {1: "The change that matters most", 2: "The two changes that matter most"}
    return words.get(n, "The three changes that matter most")


def _breakdown(trial: Trial) -> dict[str, float]:
    return dict(trial.evaluation.breakdown) if trial.evaluation else {}
