from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from autotune import Trial, open_study

SAMPLERS = ["tpe", "nsga2", "random", "qmc"]


def configs(trials: list[Trial]) -> list[Any]:
    return [(trial.slot, trial.config, trial.seed, trial.origin) for trial in trials]


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_fifteen_and_fifteen_is_thirty(make_spec: Any, tmp_path: Path, sampler: str) -> None:
    """Start-up 5 and population 6, so that the second half is far past the random phase."""
    spec = make_spec(sampler=sampler)
    whole = open_study(spec, "memory")
    assert whole.record.population_size == 6
    whole.optimize(30)
    for n in (15, 30):
        halves = open_study(spec, tmp_path / "s.db")
        halves.optimize(n)
    assert configs(halves.trials) == configs(whole.trials)
    assert len({spec.space.key(trial.config) for trial in whole.trials}) == 30


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_an_interruption_in_the_middle_changes_nothing(
    make_spec: Any, line: Any, tmp_path: Path, sampler: str
) -> None:
    interrupted = {8, 17}

    def measured(a: int) -> dict[str, float]:
        calls.append(a)
        if len(calls) in interrupted:
            os.kill(os.getpid(), signal.SIGINT)
        return {"loss": (a - 7) ** 2}

    calls: list[int] = []
    spec = make_spec(objective=line(measured), metrics=["loss"], sampler=sampler, n_trials=25)
    outcomes = [open_study(spec, tmp_path / "s.db").optimize() for _ in range(4)]
    assert [outcome.reason for outcome in outcomes] == [
        "interrupted", "interrupted", "done", "done",
    ]  # fmt: skip
    assert [outcome.new_trials for outcome in outcomes] == [7, 8, 10, 0]

    interrupted.clear()
    whole = open_study(spec, "memory")
    whole.optimize()
    again = open_study(spec, tmp_path / "s.db")
    assert configs(again.trials) == configs(whole.trials)
    assert {trial.attempt for trial in again.trials} == {1}


def test_nsga2_gets_past_its_first_generation(make_spec: Any) -> None:
    study = open_study(make_spec(sampler="nsga2"), "memory")
    study.optimize(30)
    rows = study._ledger.history.settled.values()
    noted = [row.packed["sampler_state"].get("trial", {}) for row in rows]
    assert {1, 2, 3} <= {each.get("NSGAIISampler:generation") for each in noted}
