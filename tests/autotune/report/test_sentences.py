from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from autotune import Evaluation, FailureKind, Metric, Trial
from autotune.between import KnobChange
from autotune.explain import Change
from autotune.report.findings import find
from autotune.report.sentences import (
    effect_phrase,
    format_value,
    headlines,
    knobs_phrase,
    lead_phrase,
    speed_up_percent,
    versus,
    why_unusable,
)

Make = Callable[..., Trial]
RATE = Metric(name="tokens_per_s", unit="token/s", direction="maximize", label="throughput")


def test_speed_up_is_how_much_more_gets_done(metrics: Sequence[Metric]) -> None:
    assert speed_up_percent(1.0, 2.0, metrics[0]) == pytest.approx(100.0)
    assert speed_up_percent(3.0, 2.0, RATE) == pytest.approx(50.0)
    assert speed_up_percent(0.0, 2.0, RATE) is None


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (1.6, "25 % faster"),
        (0.8, "2.5 times as fast"),
        (2.5, "25 % slower"),
        (5.0, "2.5 times as slow"),
        (2.0, "the same step time"),
        (2.0005, "the same step time"),
    ],
)
def test_times_are_faster_or_slower(new: float, expected: str, metrics: Sequence[Metric]) -> None:
    assert lead_phrase(new, 2.0, metrics[0]) == expected


def test_other_metrics_are_more_or_less() -> None:
    assert lead_phrase(150.0, 100.0, RATE) == "50 % more throughput"


@pytest.mark.parametrize(
    ("time_s", "link", "expected"),
    [
        (1.6, 3e9, "25 % faster than today with 25 % less long-link bandwidth"),
        (1.6, 4e9, "25 % faster than today at the same long-link bandwidth"),
        (1.6, 5e9, "25 % faster than today for 25 % more long-link bandwidth"),
        (0.8, 10e9, "2.5 times as fast as today for 2.5x the long-link bandwidth"),
        (2.0, 3e9, "the same step time as today with 25 % less long-link bandwidth"),
    ],
)
def test_versus_says_what_is_gained_and_what_it_costs(
    time_s: float, link: float, expected: str, make: Make, today: Trial, metrics: Sequence[Metric]
) -> None:
    assert versus(make(1, time_s, link), today, metrics) == expected


def test_the_headline_is_about_what_is_worse_in_nothing(
    make: Make, today: Trial, metrics: Sequence[Metric]
) -> None:
    trials = [today, make(1, 1.0, 8e9), make(2, 1.6, 3e9), make(3, 3.0, 1e9)]
    assert headlines(find(trials, metrics, study="s")) == [
        "25 % faster than today with 25 % less long-link bandwidth: step time 1.6 s and "
        "long-link bandwidth 24 Gbit/s (trial 2).",
        "2 times as fast as today for 2x the long-link bandwidth: step time 1 s and "
        "long-link bandwidth 64 Gbit/s (trial 1).",
    ]


def test_one_config_gives_one_sentence(make: Make, today: Trial, metrics: Sequence[Metric]) -> None:
    trials = [today, make(1, 1.6, 3e9)]
    assert len(headlines(find(trials, metrics, study="s"))) == 1


def test_a_gain_only_in_another_metric_is_said(
    make: Make, today: Trial, metrics: Sequence[Metric]
) -> None:
    (sentence,) = headlines(find([today, make(1, 2.0, 3e9)], metrics, study="s"))
    assert sentence.startswith("The same step time as today with 25 % less long-link bandwidth")


def test_nothing_better_is_said(make: Make, today: Trial, metrics: Sequence[Metric]) -> None:
    findings = find([today, make(1, 3.0, 5e9)], metrics, study="s")
    assert headlines(findings) == ["Nothing measured so far beats today."]


def test_an_unusable_baseline_is_not_compared_with(
    make: Make, today: Trial, metrics: Sequence[Metric]
) -> None:
    over = replace(make(0, 2.0, 4e9, over=2e9), origin=today.origin, label="today")
    (sentence,) = headlines(find([over, make(1)], metrics, study="s"))
    assert sentence.startswith("today breaks memory_over_bytes by 2 GB; the best config has")


def test_without_baseline_the_best_is_described(make: Make, metrics: Sequence[Metric]) -> None:
    (sentence,) = headlines(find([make(1)], metrics, study="s"))
    assert (
        sentence == "The best config has step time 1 s and long-link bandwidth 8 Gbit/s (trial 1)."
    )


def test_nothing_feasible_names_the_reasons(make: Make, metrics: Sequence[Metric]) -> None:
    oom = Evaluation.failure(FailureKind.OOM, "too big")
    trials = [make(1, evaluation=oom), make(2, evaluation=oom), make(3, over=1.0)]
    (sentence,) = headlines(find(trials, metrics, study="s"))
    assert sentence == (
        "None of 3 measured configs can be used: 2 failed with oom, 1 break memory_over_bytes."
    )


def test_nothing_measured_is_said(metrics: Sequence[Metric]) -> None:
    assert headlines(find([], metrics, study="s")) == ["Nothing has been measured yet."]


def test_a_failure_is_explained_in_one_line(make: Make) -> None:
    failed = make(1, evaluation=Evaluation.failure(FailureKind.OOM, "too big\nfor HBM"))
    assert why_unusable(failed) == "failed (oom: too big)"


def test_a_change_is_described_with_its_effect(metrics: Sequence[Metric]) -> None:
    change = Change(
        knobs=(
            KnobChange(name="overlap", before=False, after=True),
            KnobChange(name="share", before=0.5, after=0.123456),
        ),
        without={"step_time_s": 2.0, "link_bytes_per_s": 1e9},
        effects={"step_time_s": -0.5, "link_bytes_per_s": 0.0},
        broken=("memory_over_bytes",),
    )
    assert knobs_phrase(change) == "overlap off → on, share 0.5 → 0.1235"
    assert effect_phrase(change, metrics) == (
        "step time 1.5 s instead of 2 s (25 % less); without it the config breaks memory_over_bytes"
    )
    failing = Change(knobs=change.knobs, without={}, effects={}, reason="lost\ntrace")
    assert effect_phrase(failing, metrics) == "without it the measurement fails: lost"


def test_values_are_written_as_people_write_them() -> None:
    assert [format_value(value) for value in (True, 3, 0.25, "ring", [8, 1])] == [
        "on", "3", "0.25", "ring", "[8, 1]",
    ]  # fmt: skip
