from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest

from autotune import open_study
from autotune.study.signals import Interrupts, Terminated


def test_outside_of_what_may_be_interrupted_a_signal_is_only_noted() -> None:
    with Interrupts() as interrupts:
        os.kill(os.getpid(), signal.SIGTERM)
        assert interrupts.requested
        with pytest.raises(KeyboardInterrupt), interrupts.allowed():
            pass


def test_inside_it_interrupts_at_once() -> None:
    with Interrupts() as interrupts, pytest.raises(Terminated), interrupts.allowed():
        os.kill(os.getpid(), signal.SIGTERM)


def test_handlers_are_put_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with Interrupts():
        assert signal.getsignal(signal.SIGTERM) != before[1]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_an_ignored_signal_stays_ignored() -> None:
    previous = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            os.kill(os.getpid(), signal.SIGTERM)
            assert not interrupts.requested
    finally:
        signal.signal(signal.SIGTERM, previous)


def test_in_another_thread_nothing_is_installed(make_spec: Any) -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen: list[Any] = []

    def work() -> None:
        study = open_study(make_spec(), "memory")
        study.optimize(2, on_trial=lambda _: seen.append(signal.getsignal(signal.SIGTERM)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before, before]


def test_a_result_that_is_being_written_is_written(make_spec: Any) -> None:
    """The signal comes between two evaluations, while the study writes."""
    study = open_study(make_spec(), "memory")
    outcome = study.optimize(5, on_trial=lambda _: os.kill(os.getpid(), signal.SIGTERM))
    assert (outcome.reason, outcome.new_trials) == ("interrupted", 1)
    assert study.optimize(5).new_trials == 4
