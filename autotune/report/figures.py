"""Plotly figures of a study; each a pure function of what was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from autotune.between import differences
from autotune.importance import Importances
from autotune.metric import Metric
from autotune.quantity import format_quantity, shown_unit
from autotune.report.axes import Axis, axis_of, text
from autotune.report.findings import Findings, broken_constraints
from autotune.report.sentences import format_value, term_title
from autotune.trial import Trial, TrialState

INK, MUTED, GRID = "#1f2937", "#64748b", "#e5e7eb"
FRONT, BASELINE, FEASIBLE, INFEASIBLE = "#0f766e", "#c2410c", "#94a3b8", "#e11d48"
TERMS = (
    "#0f766e", "#f59e0b", "#3b82f6", "#e11d48", "#8b5cf6", "#10b981",
    "#f97316", "#06b6d4", "#ec4899", "#84cc16", "#a16207", "#94a3b8",
    "#1e3a8a", "#7f1d1d", "#fde047", "#c4b5fd", "#14532d", "#475569",
)  # fmt: skip

MAX_POINTS = 3000
"""Points of one kind beyond which a browser gets slow at drawing; a regular part is drawn."""

_MAX_KNOBS = 12


def front_figure(findings: Findings, across: Metric) -> go.Figure:
    """The first metric over another one: all measured trials, the front and the baseline.

    Args:
        findings: A study with at least two metrics.
        across: The metric on the horizontal axis.
    """
    up = findings.metrics[0]
    shown = [trial for trial in findings.trials if _has(trial, up, across)]
    seen = [t for t in (*findings.front, *findings.baselines) if _has(t, up, across)]
    usable = [trial for trial in shown if trial.feasible]
    x, y = (axis_of(m, _values(usable, m), _values(seen, m)) for m in (across, up))
    front = {trial.number for trial in findings.front}
    baselines = {trial.number for trial in findings.baselines}
    rest = [trial for trial in shown if trial.number not in front | baselines]
    groups = [
        ("infeasible", [t for t in rest if not t.feasible], INFEASIBLE, "x-thin", 6),
        ("feasible", [t for t in rest if t.feasible], FEASIBLE, "circle", 6),
    ]
    figure = go.Figure()
    for name, trials, colour, symbol, size in groups:
        marker = {"color": colour, "symbol": symbol, "size": size, "opacity": 0.7}
        marker["line"] = {"color": colour, "width": 1.2 if symbol == "x-thin" else 0}
        figure.add_trace(_points(name, _thinned(trials), x, y, findings, marker=marker))
    # With two metrics the staircase bounds what the front dominates; only its corners were
    # measured. With more the front is no line in this plane.
    line = {"color": FRONT, "width": 2, "shape": _stairs(across)}
    mode = "lines+markers" if len(findings.metrics) == 2 else "markers"
    marker = {"color": FRONT, "size": 9, "line": {"color": "white", "width": 1}}
    corners = sorted(findings.front, key=lambda trial: _value(trial, across))
    figure.add_trace(
        _points("Pareto front", corners, x, y, findings, mode=mode, line=line, marker=marker)
    )
    marker = {"color": BASELINE, "symbol": "diamond", "size": 13}
    marker["line"] = {"color": "white", "width": 1.5}
    for trial in findings.baselines:
        if _has(trial, up, across):
            name = f"{text(trial.label or 'baseline')}{'' if trial.feasible else ' (infeasible)'}"
            figure.add_trace(_points(name, [trial], x, y, findings, marker=marker))
    figure = _styled(figure, height=460, xaxis=x.layout(), yaxis=y.layout())
    hidden = x.hides(_values(shown, across)) | y.hides(_values(shown, up))
    return _with_hidden_count(figure, int(hidden.sum()))


def history_figure(findings: Findings, metric: Metric) -> go.Figure:
    """Each feasible trial's value of a metric, the best so far, and the baseline."""
    trials = [t for t in findings.trials if t.slot is not None and t.feasible and _has(t, metric)]
    slots = np.array([(trial.slot or 0) + 1 for trial in trials])
    values = _values(trials, metric)
    seen = [t for t in (findings.best_by(metric), findings.baseline) if t and _has(t, metric)]
    y = axis_of(metric, values, _values(seen, metric))
    figure = go.Figure()
    figure.add_trace(
        _points(
            "feasible trial",
            _thinned(trials),
            None,
            y,
            findings,
            marker={"color": FEASIBLE, "size": 5, "opacity": 0.7},
        )
    )
    best = metric.as_loss(np.minimum.accumulate(metric.as_loss(values)))
    figure.add_trace(
        go.Scatter(
            x=slots,
            y=best * y.factor,
            name="best so far",
            mode="lines",
            line={"color": FRONT, "width": 2.5, "shape": "hv"},
            hovertemplate="best after %{x} trials: %{y:.4g} " + text(y.unit) + "<extra></extra>",
        )
    )
    baseline = findings.baseline
    if baseline is not None and _has(baseline, metric) and len(slots):
        value = _value(baseline, metric)
        figure.add_trace(
            go.Scatter(
                x=[1, int(slots.max())],
                y=[value * y.factor] * 2,
                name=text(baseline.label or "baseline"),
                mode="lines",
                line={"color": BASELINE, "width": 1.5, "dash": "dash"},
                hovertemplate=text(format_quantity(value, metric.unit))
                + "<extra>%{fullData.name}</extra>",
            )
        )
    figure = _styled(figure, height=330, xaxis={"title": {"text": "trial"}}, yaxis=y.layout())
    return _with_hidden_count(figure, int(y.hides(values).sum()))


def breakdown_figure(trials: Sequence[tuple[str, Trial]]) -> go.Figure:
    """Stacked bars of where the time goes.

    Args:
        trials: What to call each bar, and a measured trial with a breakdown.
    """
    breakdowns = [
        dict(trial.evaluation.breakdown) if trial.evaluation else {} for _, trial in trials
    ]
    total = max((sum(each.values()) for each in breakdowns), default=0.0)
    factor, unit = shown_unit(total, "s")
    terms = [
        t
        for t in dict.fromkeys(t for b in breakdowns for t in b)
        if any(b.get(t) for b in breakdowns)
    ]
    figure = go.Figure()
    names = [text(name) for name, _ in trials]
    for i, term in enumerate(terms):
        seconds = [each.get(term, 0.0) for each in breakdowns]
        figure.add_trace(
            go.Bar(
                y=names,
                x=[value * factor for value in seconds],
                name=text(term_title(term)),
                orientation="h",
                marker={"color": TERMS[i % len(TERMS)], "line": {"color": "white", "width": 1}},
                customdata=[format_quantity(value, "s") for value in seconds],
                hovertemplate="%{fullData.name}: %{customdata}<extra>%{y}</extra>",
            )
        )
    height = 190 + 60 * len(names) + 8 * len(terms)
    figure = _styled(figure, height=height, xaxis={"title": {"text": f"time ({unit})"}}, yaxis={})
    figure.update_layout(
        barmode="stack",
        bargap=0.35,
        yaxis={"autorange": "reversed", "showgrid": False, "ticksuffix": "  "},
        legend={"traceorder": "normal", "yref": "container", "y": 0, "yanchor": "bottom"},
    )
    return figure


def importance_figure(importances: Importances) -> go.Figure:
    """Bars of the parameters that a metric depends on most, the largest on top."""
    shares = list(importances.shares.items())[:_MAX_KNOBS]
    figure = go.Figure(
        go.Bar(
            y=[text(name) for name, _ in shares],
            x=[100 * share for _, share in shares],
            orientation="h",
            marker={"color": FRONT},
            hovertemplate="%{y}: %{x:.1f} %<extra></extra>",
        )
    )
    height = 90 + 24 * len(shares)
    figure = _styled(figure, height=height, xaxis={"title": {"text": "share (%)"}}, yaxis={})
    figure.update_yaxes(autorange="reversed", showgrid=False, ticksuffix="  ")
    figure.update_layout(showlegend=False)
    return figure


def _points(
    name: str,
    trials: Sequence[Trial],
    x: Axis | None,
    y: Axis,
    findings: Findings,
    *,
    mode: str = "markers",
    **style: Any,
) -> go.Scatter:
    """Trials as points; over their slots when there is no horizontal metric."""
    return go.Scatter(
        x=[(t.slot or 0) + 1 if x is None else _value(t, x.metric) * x.factor for t in trials],
        y=[_value(t, y.metric) * y.factor for t in trials],
        name=name,
        mode=mode,
        customdata=[hover(trial, findings) for trial in trials],
        hovertemplate="%{customdata}<extra>%{fullData.name}</extra>",
        **style,
    )


def hover(trial: Trial, findings: Findings) -> str:
    """What is shown beside the pointer: number, metrics, broken constraints, changed knobs."""
    values = trial.evaluation.metrics if trial.evaluation else {}
    lines = [f"<b>trial {trial.number}</b>"]
    for metric in findings.metrics:
        if metric.name in values:
            quantity = format_quantity(values[metric.name], metric.unit)
            lines.append(f"{text(metric.title)}: {text(quantity)}")
    lines += [f"breaks {text(name)}" for name in broken_constraints(trial)]
    if findings.baseline is not None and trial.number != findings.baseline.number:
        changes = differences(trial.config, findings.baseline.config)
        lines += [f"{text(c.name)}: {text(format_value(c.after))}" for c in changes[:_MAX_KNOBS]]
        if len(changes) > _MAX_KNOBS:
            lines.append(f"… and {len(changes) - _MAX_KNOBS} more")
    return "<br>".join(lines)


def _with_hidden_count(figure: go.Figure, hidden: int) -> go.Figure:
    """Say how many points are outside, and how to see them."""
    if hidden:
        figure.add_annotation(
            text=f"{hidden:,} far worse: double-click shows all",
            xref="paper",
            yref="paper",
            x=1,
            y=1,
            xanchor="right",
            yanchor="top",
            showarrow=False,
            bgcolor="rgba(255,255,255,0.85)",
            font={"size": 12, "color": MUTED},
        )
    return figure


def _stairs(across: Metric) -> str:
    """How Plotly goes from corner to corner, rightwards, to bound what is dominated."""
    return "hv" if across.direction == "minimize" else "vh"


def _thinned(trials: Sequence[Trial]) -> Sequence[Trial]:
    return trials[:: -(-len(trials) // MAX_POINTS)] if len(trials) > MAX_POINTS else trials


def _has(trial: Trial, *metrics: Metric) -> bool:
    return (
        trial.state is TrialState.COMPLETE
        and trial.evaluation is not None
        and all(metric.name in trial.evaluation.metrics for metric in metrics)
    )


def _value(trial: Trial, metric: Metric) -> float:
    assert trial.evaluation is not None, "only measured trials are drawn"
    return trial.evaluation.metrics[metric.name]


def _values(trials: Sequence[Trial], metric: Metric) -> NDArray[np.float64]:
    return np.array([_value(trial, metric) for trial in trials], dtype=np.float64)


def _styled(
    figure: go.Figure, *, height: int, xaxis: dict[str, Any], yaxis: dict[str, Any]
) -> go.Figure:
    common = {"gridcolor": GRID, "zeroline": False, "linecolor": GRID, "automargin": True}
    common["title"] = {"font": {"size": 13, "color": MUTED}, "standoff": 8}
    figure.update_layout(
        template="none",
        height=height,
        margin={"l": 60, "r": 16, "t": 12, "b": 48},
        font={"family": "system-ui, -apple-system, Segoe UI, sans-serif", "size": 13, "color": INK},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        hoverlabel={
            "bgcolor": "white",
            "bordercolor": GRID,
            "align": "left",
            "font": {"color": INK},
        },
        legend={
            "orientation": "h",
            "y": 1.02,
            "yanchor": "bottom",
            "x": 0,
            "font": {"color": MUTED},
        },
        xaxis=common,
        yaxis=common,
    )
    figure.update_xaxes(**xaxis)
    figure.update_yaxes(**yaxis)
    return figure
