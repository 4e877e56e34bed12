from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def test_list_without_a_storage_names_what_can_be_run(autotune: Run, folder: Path) -> None:
    ended = autotune("list")
    assert ended.code == 0
    assert "binh-korn" in ended.out
    assert "No study in" in ended.out
    assert not (folder / "autotune.db").exists()


def test_list_shows_the_studies_of_the_storage(finished: Run) -> None:
    assert "toy-study@toy" in finished("list").out
    document = finished("list", "--json").json
    assert document["installed"]
    (study,) = document["studies"]
    assert (study["study"], study["trials"], study["budget"]) == ("toy-study", 12, 12)
    assert study["best"]["feasible"]


def test_status_counts_and_says_where_it_comes_from(finished: Run) -> None:
    text = finished("status").out
    assert "12 of 12 measured" in text
    assert "toy-point" in text
    assert "tpe, seed 0" in text
    document = finished("status", "--json").json
    assert document["finished"] is True
    assert document["measured"] == 12
    assert document["sampler"] == "tpe"
    assert document["void"] == 0


def test_best_is_told_against_the_baseline(finished: Run) -> None:
    text = finished("best", "toy-study").out
    assert "3.1 times as fast as production for 32x the link bandwidth." in text
    assert "(was" in text
    document = finished("best", "--json").json
    assert document["metric"] == "time_s"
    assert document["best"]["metrics"]["time_s"] < document["baseline"]["metrics"]["time_s"]
    assert document["speed_up_percent"] > 0


def test_best_in_another_metric(finished: Run) -> None:
    document = finished("best", "--metric", "link_bytes_per_s", "--json").json
    assert document["best"]["label"] == "production"
    assert document["speed_up_percent"] == 0
    ended = finished("best", "--metric", "speed")
    assert ended.code == 2
    assert "link_bytes_per_s, time_s" in ended.err


def test_front_has_no_trial_that_another_beats(finished: Run) -> None:
    document = finished("front", "--json").json
    times = [trial["metrics"]["time_s"] for trial in document["front"]]
    links = [trial["metrics"]["link_bytes_per_s"] for trial in document["front"]]
    assert times == sorted(times)
    assert links == sorted(links, reverse=True)
    assert all(trial["feasible"] for trial in document["front"])
    assert document["metrics"][0] == {
        "name": "time_s",
        "unit": "s",
        "direction": "minimize",
        "label": "step time",
    }
    assert "against production" in finished("front").out


def test_show_tells_everything_about_a_trial(finished: Run) -> None:
    document = finished("show", "baseline", "--json").json
    assert document["config"] == {"tp": 8, "dp": 1, "chunks": 1, "overlap": False}
    assert document["breakdown"]["waiting_s"] == 2.0
    assert document["state"] == "complete"
    assert "provenance" in document["attributes"]
    assert finished("show", "production", "--json").json == document
    assert finished("show", str(document["number"]), "--json").json == document
    text = finished("show", "best").out
    assert "compute" in text
    assert "memory_over_bytes" in text


def test_a_trial_that_does_not_exist(finished: Run) -> None:
    ended = finished("show", "99")
    assert ended.code == 2
    assert "best, production, spare" in ended.err
    assert "the numbers 0 to 11" in ended.err


@pytest.mark.parametrize("verb", ["status", "best", "front"])
def test_a_study_that_does_not_exist(verb: str, finished: Run) -> None:
    ended = finished(verb, "toy")
    assert ended.code == 2
    assert "known: toy-study@toy" in ended.err


@pytest.mark.parametrize(
    "name", ["toy-study", "toy-study@toy", "toys.py:study"], ids=["name", "stored", "file"]
)
def test_a_study_goes_by_several_names(name: str, finished: Run) -> None:
    assert finished("status", name, "--json").json["study"] == "toy-study"


def test_of_several_studies_one_must_be_named(finished: Run) -> None:
    finished("run", "toys.py:SWEEP", "--no-report")
    ended = finished("best")
    assert ended.code == 2
    assert "toy-study@toy, sweep-1@toy, sweep-2@toy" in ended.err
    assert finished("best", "toys.py:SWEEP/sweep-1", "--json").json["study"] == "sweep-1"
    assert "name one of them" in finished("best", "toys.py:SWEEP").err


def test_reading_needs_a_storage(autotune: Run, folder: Path) -> None:
    ended = autotune("best", "toys.py:study")
    assert ended.code == 1
    assert "there is no storage at" in ended.err
    assert not (folder / "autotune.db").exists()


def test_what_is_unfinished_is_not_best(autotune: Run) -> None:
    autotune("run", "toys.py:all_fail", "--no-report")
    assert "None of 3 measured configs can be used" in autotune("best").out
    assert autotune("best", "--json").json["best"] is None
    assert "None of 3" in autotune("front").out
    text = autotune("show", "0").out
    assert "failed (crash: RuntimeError: nothing works)" in text


def test_json_has_nothing_else_on_standard_output(finished: Run) -> None:
    for verb in ("list", "status", "best", "front"):
        json.loads(finished(verb, "--json").out)


@pytest.mark.parametrize("verb", ["list", "status", "best", "front"])
def test_a_storage_that_was_named_must_exist(verb: str, autotune: Run) -> None:
    for storage, named in (("nodir/x.db", "nodir"), ("missing.db", "missing.db")):
        ended = autotune(verb, "--storage", storage)
        assert ended.code == 1
        assert named in ended.err
        assert ended.out == ""


@pytest.mark.parametrize(
    "arguments", [("compare",), ("show", "best"), ("export", "--to", "torchtitan")]
)
def test_nothing_feasible_is_no_unknown_name(arguments: tuple[str, ...], autotune: Run) -> None:
    autotune("run", "toys.py:all_fail", "--no-report")
    ended = autotune(*arguments)
    assert ended.code == 1
    assert "known" not in ended.err
    assert "baseline" in ended.err or "None of 3 measured configs can be used" in ended.err
    unknown = autotune("show", "x")
    assert unknown.code == 2
    assert "known: the numbers 0 to 2\n" in unknown.err


def test_the_help_shows_lists_of_shapes(autotune: Run) -> None:
    assert '"front": [trial_shape]' in autotune("front", "--help").out
    assert "[NAME]" in autotune("list", "--help").out
