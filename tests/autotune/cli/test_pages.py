from __future__ import annotations

import builtins
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def test_report_of_a_study_whose_definition_is_named(finished: Run, folder: Path) -> None:
    ended = finished("report", "toys.py:study")
    assert ended.code == 0
    page = (folder / "toy-study.html").read_text(encoding="utf-8")
    assert "that matter" in page
    assert "toy-point" in page


def test_report_without_the_definition_says_what_is_missing(finished: Run, folder: Path) -> None:
    document = finished("report", "-o", "other.html", "--json").json
    assert document == {"study": "toy-study", "report": str(folder / "other.html")}
    page = (folder / "other.html").read_text(encoding="utf-8")
    assert "FILE.py:ATTR" in page
    assert "Pareto front" in page


def test_report_needs_a_folder(finished: Run) -> None:
    assert finished("report", "-o", "no/such/page.html").code == 2


def test_doctor_checks_and_fails_where_something_does(autotune: Run, folder: Path) -> None:
    document = autotune("doctor", "--json").json
    topics = [check["topic"] for check in document["checks"]]
    assert {"python", "package", "storage", "machine", "study binh-korn"} <= set(topics)
    (folder / "notes.db").write_text("milk " * 100)
    ended = autotune("doctor", "--storage", "notes.db")
    assert ended.code == 1
    assert "choose another place" in ended.out


def test_dashboard_refuses_what_is_no_storage(autotune: Run, folder: Path) -> None:
    ended = autotune("dashboard")
    assert ended.code == 1
    assert "there is no storage" in ended.err
    assert not (folder / "autotune.db").exists()


def test_dashboard_names_its_extra(finished: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "optuna_dashboard":
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    ended = finished("dashboard")
    assert ended.code == 1
    assert "scale-across-autotune[dashboard]" in ended.err
