from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autotune.cli import targets

Run = Callable[..., Any]


def test_run_tells_what_was_found(autotune: Run, folder: Path) -> None:
    ended = autotune("run", "toys.py:study")
    assert ended.code == 0
    assert "12 of 12 trials, 12 of them new" in ended.out
    assert "against production" in ended.out
    assert "faster than production" in ended.out
    assert "that matter most in trial" in ended.out
    assert "overlap off → on" in ended.out
    page = folder / "toy-study.html"
    assert f"Report: {page}" in ended.out
    assert "More: autotune front toys.py:study (or best" in ended.out
    assert "Pareto front" in page.read_text(encoding="utf-8")
    assert "trial 12/12" in ended.err


def test_a_finished_budget_does_nothing(finished: Run, folder: Path) -> None:
    ended = finished("run", "toys.py:study", "--no-report")
    assert ended.code == 0
    assert "the budget of 12 trials is spent, nothing to do" in ended.out
    assert not (folder / "toy-study.html").exists()


def test_an_unchanged_report_is_left_alone(finished: Run, folder: Path) -> None:
    page = folder / "toy-study.html"
    page.write_text("mine")
    assert f"Report: {page}" in finished("run", "toys.py:study").out
    assert page.read_text() == "mine"
    finished("run", "toys.py:study", "--report", "toy-study.html")
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_larger_budget_goes_on(finished: Run) -> None:
    ended = finished("run", "toys.py:study", "--n-trials", "15", "--json")
    assert ended.code == 0
    assert ended.json["new_trials"] == 3
    assert ended.json["trials"] == 15
    assert "going on from trial 12 of 15" in ended.err


def test_run_json_is_one_line_with_the_result(autotune: Run) -> None:
    line = autotune("run", "toys.py:study", "--json", "--no-report").json
    assert line["study"] == "toy-study"
    assert line["outcome"] == "done"
    assert line["budget"] == line["trials"] == 12
    assert line["feasible"] + line["infeasible"] + line["failed"] == 12
    assert line["baseline"]["label"] == "production"
    best, baseline = line["best"]["metrics"]["time_s"], line["baseline"]["metrics"]["time_s"]
    assert line["speed_up_percent"] == pytest.approx(100 * (baseline / best - 1))
    assert line["hypervolume"] > 0
    assert line["report"] is None
    assert line["storage"].endswith("autotune.db")
    assert line["changes"][0]["knobs"]


def test_the_space_can_be_exhausted(autotune: Run) -> None:
    line = autotune("run", "toys.py:study", "--n-trials", "1000", "--json", "--no-report").json
    assert line["outcome"] == "space exhausted"
    assert line["trials"] == 40
    assert line["failed_by_kind"] == {"oom": 2}


def test_another_storage_and_sampler(autotune: Run, folder: Path) -> None:
    arguments = (
        "run",
        "toys.py:study",
        "--storage",
        "other.db",
        "--sampler",
        "random",
        "--no-report",
    )
    assert autotune(*arguments, "--seed", "5").code == 0
    assert (folder / "other.db").exists()
    assert not (folder / "autotune.db").exists()
    other = autotune(*arguments, "--seed", "6")
    assert other.code == 2
    assert "seed" in other.err


def test_storage_in_memory(autotune: Run, folder: Path) -> None:
    line = autotune("run", "toys.py:study", "--storage", "memory", "--json", "--no-report").json
    assert line["trials"] == 12
    assert not (folder / "autotune.db").exists()
    text = autotune("run", "toys.py:study", "--storage", "memory", "--no-report").out
    assert "More:" not in text


def test_a_sweep_runs_all_and_a_part_alone(autotune: Run, folder: Path) -> None:
    document = autotune("run", "toys.py:SWEEP", "--json").json
    assert [each["study"] for each in document["studies"]] == ["sweep-1", "sweep-2"]
    assert (folder / "sweep-1.html").exists()
    line = autotune("run", "toys.py:SWEEP/sweep-2", "--json", "--no-report").json
    assert line["study"] == "sweep-2"
    assert line["new_trials"] == 0
    text = autotune("run", "toys.py:SWEEP", "--no-report").out
    assert "best step time" in text


def test_reports_of_a_sweep_go_to_a_folder(autotune: Run, folder: Path) -> None:
    assert autotune("run", "toys.py:SWEEP", "--report", "page.html").code == 2
    (folder / "pages").mkdir()
    assert autotune("run", "toys.py:SWEEP", "--report", "pages").code == 0
    assert len(list((folder / "pages").iterdir())) == 2


def test_nothing_that_works_is_a_failure(autotune: Run) -> None:
    ended = autotune("run", "toys.py:all_fail", "--no-report")
    assert ended.code == 1
    assert "None of 3 measured configs can be used: 3 failed with crash" in ended.out


def test_a_costly_objective_is_not_asked_again_for_the_report(autotune: Run) -> None:
    ended = autotune("run", "toys.py:costly", "--n-trials", "6")
    assert ended.code == 0
    assert "matter most" not in ended.out
    page = Path("costly.html").read_text(encoding="utf-8")
    assert "Not measured: measuring what" in page


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "no-such-study"), "no study is named 'no-such-study'; known:"),
        (("run", "toys.py:nothing"), "no attribute of toys.py is named 'nothing'; known:"),
        (("run", "toys.py:number"), "must be a StudySpec"),
        (("run", "toys.py"), "toys.py:ATTRIBUTE"),
        (("run", "missing.py:study"), "must be an existing Python file"),
        (("run", "toys.py:SWEEP/sweep-9"), "known: sweep-1, sweep-2"),
        (("run", "toys.py:study", "--sampler", "magic"), "no sampler is named 'magic'"),
        (("run", "toys.py:study", "--objective", "magic"), "no objective is named 'magic'"),
        (("run", "toys.py:study", "--n-jobs", "0"), "n-jobs"),
        (("run", "toys.py:study", "--report", "no/such/page.html"), "existing folder"),
        (("run",), "STUDY"),
        (("dance",), "dance"),
    ],
)
def test_wrong_use_is_explained_without_a_traceback(
    arguments: tuple[str, ...], said: str, autotune: Run
) -> None:
    ended = autotune(*arguments)
    assert ended.code == 2
    assert said in " ".join(ended.err.replace("│", " ").split())
    assert "Traceback" not in ended.err
    assert ended.out == ""


def test_verbose_shows_the_traceback(autotune: Run) -> None:
    ended = autotune("run", "no-such-study", "--verbose")
    assert ended.code == 2
    assert "Traceback" in ended.err
    assert ended.err.endswith("\n")
    assert "autotune: no study is named 'no-such-study'" in ended.err


def test_a_foreign_storage_is_refused_untouched(autotune: Run, folder: Path) -> None:
    (folder / "notes.db").write_text("milk " * 100)
    ended = autotune("run", "toys.py:study", "--storage", "notes.db")
    assert ended.code == 1
    assert "no SQLite database" in ended.err
    assert (folder / "notes.db").read_text() == "milk " * 100


def test_a_changed_study_needs_migrate(finished: Run, folder: Path) -> None:
    file = folder / "toys.py"
    file.write_text(file.read_text().replace("[1, 2, 4, 8, 16]", "[1, 2, 4, 8, 16, 32]"))
    targets._import_resolved.cache_clear()
    sys.modules.pop("toys", None)
    ended = finished("run", "toys.py:study", "--no-report")
    assert ended.code == 2
    assert "--migrate" in ended.err or "migrate" in ended.err
    line = finished("run", "toys.py:study", "--migrate", "--json", "--no-report").json
    assert line["study"] == "toy-study"


def test_another_seed_or_sampler_is_said_twice(finished: Run) -> None:
    command = ("run", "toys.py:study", "--seed", "5", "--sampler", "random", "--n-trials", "14")
    refused = finished(*command, "--no-report")
    assert refused.code == 2
    assert "--reset-sampler" in refused.err
    ended = finished(*command, "--no-report", "--reset-sampler", "--json")
    assert ended.code == 0
    assert ended.json["new_trials"] == 2
    stored = finished("status", "--json").json
    assert (stored["sampler"], stored["seed"]) == ("random", 5)


HANGING = """
import time
from dataclasses import replace

from autotune import objective
from toys import study

@objective(metrics=["loss"], name="hanging")
def hanging(config):
    time.sleep(0 if config["overlap"] else 1000)
    return {"loss": 1.0}

spec = replace(study(), objective=hanging, metrics=["loss"], n_trials=2)
"""


def test_an_evaluation_that_hangs_is_killed(autotune: Run, folder: Path) -> None:
    (folder / "hanging.py").write_text(HANGING)
    command = ("run", "hanging.py:spec", "--trial-timeout", "0.5", "--no-report", "--json")
    ended = autotune(*command)
    assert ended.code == 1
    assert ended.json["failed_by_kind"] == {"timeout": 2}
