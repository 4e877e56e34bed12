from __future__ import annotations

import io
import logging
from collections.abc import Callable

import pytest
from rich.console import Console

from autotune import Evaluation, FailureKind, Metric, Origin, Trial, TrialState
from autotune.progress import LOG_EVERY_S, _log_lines, format_duration, pace, shown, standing

TIME = Metric(name="time_s", unit="s", label="step time")
RATE = Metric(name="rate", direction="maximize", label="rate")
METRICS = (TIME, RATE)


def make(
    number: int,
    time_s: float,
    *,
    over: float = 0.0,
    origin: Origin = Origin.SAMPLER,
    state: TrialState = TrialState.COMPLETE,
) -> Trial:
    evaluation = Evaluation(
        metrics={"time_s": time_s, "rate": 1 / time_s}, constraints={"over": over}
    )
    if state is TrialState.FAILED:
        evaluation = Evaluation.failure(FailureKind.CRASH, "lost")
    label = "today" if origin is Origin.BASELINE else ""
    return Trial(
        number=number,
        slot=number,
        state=state,
        origin=origin,
        label=label,
        config={"n": number},
        evaluation=evaluation,
    )


BASELINE = make(0, 2.0, origin=Origin.BASELINE)


def test_best_is_told_against_the_baseline() -> None:
    now = standing(METRICS, [BASELINE, make(1, 1.5)], 10)
    assert now.describe_best() == (
        "step time 1.5 s, 25 % less than today; rate 0.667, 33.3 % more than today"
    )


def test_a_multiple_is_of_the_baseline() -> None:
    now = standing((RATE,), [BASELINE, make(1, 0.5)], 10)
    assert now.describe_best() == "rate 2, 4x of today"


def test_the_baseline_alone_is_its_own_best() -> None:
    assert standing((TIME,), [BASELINE], 10).describe_best() == "step time 2 s"
    same = standing((TIME,), [BASELINE, make(1, 1.9999)], 10)
    assert same.describe_best() == "step time 2 s, as today"


def test_infeasible_and_failed_trials_are_never_best() -> None:
    trials = [make(1, 0.1, over=1.0), make(2, 1.0, state=TrialState.FAILED)]
    now = standing(METRICS, trials, 10)
    assert now.describe_best() == "nothing feasible so far"
    assert (now.done, now.failed) == (2, 1)


def test_trials_outside_the_budget_change_nothing() -> None:
    start = standing(METRICS, [BASELINE], 10)
    repeat = Trial(
        number=5,
        slot=None,
        state=TrialState.COMPLETE,
        origin=Origin.REPEAT,
        config={},
        evaluation=BASELINE.evaluation,
    )
    assert start.after(repeat) == start


def test_pace_counts_only_what_is_new() -> None:
    now = standing((TIME,), [BASELINE, make(1, 1.5)], 10)
    assert pace(now, 5.0) == "trial 2/10"
    later = now.after(make(2, 1.0)).after(make(3, 1.0, state=TrialState.FAILED))
    assert pace(later, 1.0) == "trial 4/10, 1 failed, 2 trials/s, 3.0 s left"
    assert pace(later, 20.0) == "trial 4/10, 1 failed, 10 s/trial, 1 min 0 s left"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.42, "0.4 s"), (12.3, "12 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")],
)
def test_durations_are_readable(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.fixture
def clock() -> tuple[list[float], Callable[[], float]]:
    now = [0.0]
    return now, lambda: now[0]


def test_log_lines_come_by_tenths(
    clock: tuple[list[float], Callable[[], float]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="autotune")
    update = _log_lines(standing((TIME,), [], 40), "study", clock[1])
    for number in range(40):
        clock[0][0] += 1.0
        update(make(number, 1.0))
    assert len(caplog.messages) == 10
    assert caplog.messages[0] == ("study: trial 4/40, 1 trials/s, 36 s left; best step time 1 s")


def test_slow_trials_are_logged_by_time(
    clock: tuple[list[float], Callable[[], float]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="autotune")
    update = _log_lines(standing((TIME,), [], 1000), "study", clock[1])
    for number in range(4):
        clock[0][0] += LOG_EVERY_S / 2
        update(make(number, 1.0))
    assert len(caplog.messages) == 2


def test_a_terminal_gets_a_bar() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=160)
    with shown(standing((TIME,), [BASELINE], 3), "a study", console) as update:
        update(make(1, 1.0))
        update(make(2, 1.5))
    text = screen.getvalue()
    assert "a study" in text
    assert "trial 3/3" in text
    assert "best: step time 1 s, 50 % less than today" in text


def test_elsewhere_nothing_is_drawn(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="autotune")
    screen = io.StringIO()
    with shown(standing((TIME,), [], 1), "a study", Console(file=screen)) as update:
        update(make(0, 1.0))
    assert screen.getvalue() == ""
    assert len(caplog.messages) == 1
