from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune import Evaluation, FailureKind, InvalidInput, Metric, Trial
from autotune.between import KnobChange
from autotune.explain import Change
from autotune.importance import Importances
from autotune.report import figures
from autotune.report.axes import axis_of
from autotune.report.contents import Contents
from autotune.report.findings import Findings, find
from autotune.report.markup import Html, element, table
from autotune.report.page import render, write

Make = Callable[..., Trial]
EVIL = "<script>alert('x')</script>"


@pytest.fixture
def findings(make: Make, today: Trial, metrics: Sequence[Metric]) -> Findings:
    config = {"n": 0, EVIL: "a"}
    breakdown = {"compute_s": 1.5, "exposed_communication_s": 0.5, "zero_s": 0.0}
    evaluation = replace(today.evaluation, breakdown=breakdown) if today.evaluation else None
    trials = [
        replace(today, config=config, evaluation=evaluation),
        make(1, 1.0, 8e9, config={"n": 1, EVIL: EVIL}, breakdown={"compute_s": 1.0}),
        make(2, 1.6, 3e9, config={"n": 2, EVIL: "b"}),
        make(3, 1.6, 3e9, over=7.0),
        make(4, evaluation=Evaluation.failure(FailureKind.OOM, f"{EVIL}\nmore")),
    ]
    return find(
        trials,
        metrics,
        study=f"study {EVIL}",
        description=EVIL,
        backend="analytical 3",
        constraints=["memory_over_bytes"],
        provenance={"seed": "7", EVIL: EVIL},
    )


@pytest.fixture
def contents(findings: Findings) -> Contents:
    change = Change(
        knobs=(KnobChange(name=EVIL, before="a", after=EVIL),),
        without={"step_time_s": 1.5, "link_bytes_per_s": 8e9},
        effects={"step_time_s": -0.5, "link_bytes_per_s": 0.0},
    )
    idle = Change(
        knobs=(KnobChange(name="n", before=0, after=1),),
        without={"step_time_s": 1.0, "link_bytes_per_s": 8e9},
        effects={"step_time_s": 0.0, "link_bytes_per_s": 0.0},
    )
    shares = Importances(
        metric="step_time_s", shares={EVIL: 0.9, "n": 0.1}, quality=0.1, num_trials=30
    )
    return Contents(
        findings=findings,
        changes=[change, idle],
        importances=[shares],
        written=datetime(2026, 12, 1, tzinfo=UTC),
    )


def own_part(page: str) -> str:
    """The page without Plotly's code."""
    start = page.index("<script>")
    return page[:start] + page[page.index("</script>", start) :]


def test_nothing_a_user_named_becomes_markup(contents: Contents) -> None:
    page = own_part(render(contents))
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;" in page


def test_the_page_refers_to_nothing_outside(contents: Contents) -> None:
    page = own_part(render(contents))
    assert not re.search(r"https?://|//cdn|@import|url\(", page)
    assert set(re.findall(r'(?:src|href)="([^"]*)"', page)) == {"data:,"}
    assert "default-src 'none'" in page


def test_the_page_says_what_was_found(contents: Contents) -> None:
    page = own_part(render(contents))
    for text in (
        "25 % faster than today with 25 % less long-link bandwidth",
        "measured by analytical 3",
        "The change that matters most",
        "step time 1 s instead of 1.5 s (33.3 % less)",
        "Changed without benefit, and better left as they were: n.",
        "too little to rely on",
        "failed: oom",
        "memory_over_bytes is above 0",
        "2026-12-01 00:00 UTC",
        "<dt>seed</dt><dd>7</dd>",
        "whole config",
    ):
        assert text in page, text


def test_every_plot_has_its_data(contents: Contents) -> None:
    page = own_part(render(contents))
    names = re.findall(r'<div id="([a-z0-9-]+)" class="plot"', page)
    assert names == ["front-0", "breakdown", "history-0", "history-1", "importance-0"]
    for text in re.findall(r'<script type="application/json">(.*?)</script>', page):
        assert json.loads(text)["data"]


def test_repeats_show_their_spread(contents: Contents, make: Make) -> None:
    findings = contents.findings
    repeats = [make(10, 0.5, 1e9, config={"n": 9}), make(11, 0.7, 1e9, config={"n": 9})]
    more = find([*findings.trials, *repeats], findings.metrics, study="s")
    assert "± 141 ms (n = 2)" in render(replace(contents, findings=more))


def test_an_empty_study_has_a_page(metrics: Sequence[Metric]) -> None:
    page = own_part(render(Contents(findings=find([], metrics, study="s"))))
    assert "Nothing has been measured yet." in page
    assert 'class="plot"' not in page


def test_one_metric_has_no_trade_off(make: Make, today: Trial, metrics: Sequence[Metric]) -> None:
    findings = find([today, make(1)], metrics[:1], study="s")
    page = own_part(render(Contents(findings=findings)))
    assert "Trade-off" not in page
    assert "Best config" in page
    assert "history-0" in page


def test_why_nothing_is_explained_is_said(findings: Findings) -> None:
    page = own_part(render(Contents(findings=findings, changes_note="it would cost an hour")))
    assert "it would cost an hour" in page


def test_the_file_is_replaced_in_one_step(contents: Contents, tmp_path: Path) -> None:
    path = write(contents, tmp_path / "page.html")
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]


def test_a_missing_folder_is_the_users_to_make(contents: Contents, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="existing folder"):
        write(contents, tmp_path / "missing" / "page.html")


def test_the_front_is_a_staircase_over_sorted_corners(findings: Findings) -> None:
    figure = figures.front_figure(findings, findings.metrics[1])
    front = next(trace for trace in figure.data if trace.name == "Pareto front")
    assert list(front.x) == sorted(front.x)
    assert front.line.shape == "hv"
    names = [trace.name for trace in figure.data]
    assert names == ["infeasible", "feasible", "Pareto front", "today"]
    assert figure.layout.xaxis.title.text == "long-link bandwidth (Gbit/s)"


def test_history_is_best_so_far(findings: Findings) -> None:
    figure = figures.history_figure(findings, findings.metrics[0])
    best = next(trace for trace in figure.data if trace.name == "best so far")
    assert list(best.y) == [2.0, 1.0, 1.0]
    assert list(best.x) == [1, 2, 3]


def test_history_of_what_is_maximised_rises(make: Make) -> None:
    rate = Metric(name="step_time_s", direction="maximize")
    findings = find([make(0, 1.0), make(1, 3.0), make(2, 2.0)], [rate], study="s")
    figure = figures.history_figure(findings, rate)
    assert list(figure.data[1].y) == [1.0, 3.0, 3.0]


def test_many_points_are_thinned(make: Make, metrics: Sequence[Metric]) -> None:
    trials = [make(i, 1.0 + i, 1e9 * (1 + i)) for i in range(2 * figures.MAX_POINTS + 5)]
    figure = figures.front_figure(find(trials, metrics, study="s"), metrics[1])
    assert len(figure.data[1].x) <= figures.MAX_POINTS


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([1.0, 9.0], ()),
        ([0.0, 100.0], ()),
        ([-1.0, 100.0], ()),
        ([1.0, 50.0, 100.0, 90.0], (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)),
        ([], ()),
    ],
)
def test_wide_positive_axes_are_logarithmic(values: list[float], ticks: tuple[float, ...]) -> None:
    axis = axis_of(Metric(name="m"), np.array(values))
    assert axis.ticks == pytest.approx(ticks)


def test_a_few_far_worse_values_do_not_set_the_scale() -> None:
    metric = Metric(name="t", unit="s")
    values = np.array([*np.linspace(5.0, 9.0, 30), 900.0, 1e6])
    axis = axis_of(metric, values, np.array([6.0, 20.0]))
    assert axis.shown == (5.0, 20.0)
    assert axis.unit == "s"
    assert axis.hides(values).sum() == 2
    low, high = axis.layout()["range"]
    assert low < 5.0 < 20.0 < high


def test_the_best_values_are_never_hidden() -> None:
    rate = Metric(name="rate", direction="maximize")
    values = np.array([*np.linspace(1.0, 2.0, 30), 500.0])
    axis = axis_of(rate, values)
    assert not axis.hides(values)[-1]


def test_hidden_points_are_said(make: Make, today: Trial, metrics: Sequence[Metric]) -> None:
    trials = [today, *(make(i, 1.0 + i / 10, 1e9 * i) for i in range(1, 20)), make(20, 1e5, 1e15)]
    figure = figures.front_figure(find(trials, metrics, study="s"), metrics[1])
    (note,) = figure.layout.annotations
    assert "far worse: double-click shows all" in note.text


def test_terms_that_are_zero_everywhere_are_not_drawn(findings: Findings) -> None:
    pairs = [(str(trial.number), trial) for trial in findings.trials[:2]]
    figure = figures.breakdown_figure(pairs)
    assert [trace.name for trace in figure.data] == ["compute", "exposed communication"]


def test_plain_text_is_escaped_and_html_is_kept() -> None:
    built: Any = element("p", "<b>", Html("<i>"), class_="a", data_x='"')
    assert built == '<p class="a" data-x="&quot;">&lt;b&gt;<i></p>'
    assert "<td>&lt;</td>" in table(["h"], [["<"]])
