from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from autotune import Config, DesignPoint, Unsupported, plugins

Run = Callable[..., Any]
CONFIG = {"tp": 4, "dp": 2, "chunks": 8, "overlap": True}


@pytest.fixture
def config_file(folder: Path) -> str:
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return "config.json"


def test_evaluate_a_file(autotune: Run, config_file: str, folder: Path) -> None:
    document = autotune("evaluate", "toys.py:study", "--config", config_file, "--json").json
    assert document["study"] == "toy-study"
    assert document["objective"] == {"name": "toy", "version": "1"}
    assert document["config"] == CONFIG
    assert document["status"] == "ok"
    assert document["feasible"] is True
    assert document["metrics"]["time_s"] == pytest.approx(1.4625)
    assert document["constraints"]["memory_over_bytes"] == pytest.approx(-5e8)
    assert document["breakdown"] == {"compute_s": pytest.approx(1.4), "waiting_s": 0.0625}
    assert document["units"] == {"time_s": "s", "link_bytes_per_s": "byte/s"}
    assert not (folder / "autotune.db").exists()


def test_evaluate_standard_input(autotune: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(CONFIG)))
    ended = autotune("evaluate", "toys.py:study", "--config", "-")
    assert ended.code == 0
    assert "1.46 s" in ended.out
    assert "(holds)" in ended.out


def test_evaluate_a_baseline(autotune: Run) -> None:
    document = autotune("evaluate", "toys.py:study", "--baseline", "production", "--json").json
    assert document["config"]["tp"] == 8
    ended = autotune("evaluate", "toys.py:study", "--baseline", "today")
    assert ended.code == 2
    assert "known: production, spare" in ended.err


def test_a_failed_measurement_is_a_failure(autotune: Run, folder: Path) -> None:
    config = {"tp": 8, "dp": 1, "chunks": 16, "overlap": True}
    (folder / "bad.json").write_text(json.dumps(config))
    ended = autotune("evaluate", "toys.py:study", "--config", "bad.json", "--json")
    assert ended.code == 1
    assert ended.json["status"] == "failed"
    assert ended.json["failure_kind"] == "oom"
    assert ended.json["reason"] == "16 chunks do not fit"
    assert (
        "failed (oom: 16 chunks"
        in autotune("evaluate", "toys.py:study", "--config", "bad.json").out
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "must be JSON"),
        ("[1, 2]", "must be a JSON object"),
        (json.dumps({**CONFIG, "tp": 2}), "world"),
        (json.dumps({**CONFIG, "tp": 3.7, "typo": 1}), "2 problems"),
        (json.dumps({"tp": 4}), "problems"),
        ("[" * 100_000, "nested"),
        ('{"tp": ' + "[" * 900 + "]" * 900 + "}", "nested"),
        ('{"tp": ' + "9" * 5000 + "}", "shorter numbers"),
        ('{"tp": 8, "dp": 1, "tp": 4}', "tp: must be given once"),
        ('{"tp": NaN}', "no NaN"),
    ],
    ids=range(10),
)
def test_a_bad_config_is_explained(text: str, said: str, autotune: Run, folder: Path) -> None:
    (folder / "bad.json").write_text(text)
    ended = autotune("evaluate", "toys.py:study", "--config", "bad.json", "--json")
    assert ended.code == 2
    assert said in ended.err
    assert ended.out == ""


def test_a_byte_order_mark_is_no_part_of_a_config(autotune: Run, folder: Path) -> None:
    (folder / "marked.json").write_text(json.dumps(CONFIG), encoding="utf-8-sig")
    assert autotune("evaluate", "toys.py:study", "--config", "marked.json").code == 0


def test_evaluate_needs_exactly_one_config(autotune: Run, config_file: str) -> None:
    assert autotune("evaluate", "toys.py:study").code == 2
    both = ("--config", config_file, "--baseline", "production")
    assert autotune("evaluate", "toys.py:study", *both).code == 2
    assert autotune("evaluate", "toys.py:study", "--config", "missing.json").code == 2
    assert "sweep of 2 studies" in autotune("evaluate", "toys.py:SWEEP", *both[:2]).err


def test_compare_baseline_and_best(finished: Run) -> None:
    text = finished("compare").out
    assert "best (11) against baseline (0): 3.1 times as fast" in text
    assert "waiting" in text
    document = finished("compare", "--json").json
    assert document["a"]["config"] == {"tp": 8, "dp": 1, "chunks": 1, "overlap": False}
    assert document["b"]["metrics"]["time_s"] < document["a"]["metrics"]["time_s"]
    assert {"name": "overlap", "before": False, "after": True} in document["changed"]
    assert document["speed_up_percent"] > 0


def test_compare_measures_a_file(finished: Run, config_file: str) -> None:
    document = finished(
        "compare", "production", config_file, "--study", "toys.py:study", "--json"
    ).json
    assert document["b"]["name"] == config_file
    assert document["b"]["metrics"]["time_s"] == pytest.approx(1.4625)
    ended = finished("compare", "production", config_file)
    assert ended.code == 2
    assert "FILE.py:ATTR" in ended.err


def exporter(design_point: DesignPoint, config: Config) -> Mapping[str, str]:
    if config["chunks"] == 2:
        raise Unsupported("chunks: the trainer has no 2")
    return {"job.toml": f"# {design_point.name}\ntp = {config['tp']}\n"}


@pytest.fixture
def with_exporter(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point(EntryPoint):
        def load(self) -> Any:
            return exporter

    found = {"trainer": Point("trainer", "here:exporter", "autotune.exporters")}
    installed = plugins.installed
    monkeypatch.setattr(
        plugins,
        "installed",
        lambda group: found if group == "autotune.exporters" else installed(group),
    )


@pytest.mark.usefixtures("with_exporter")
def test_export_writes_files(finished: Run, folder: Path) -> None:
    ended = finished("export", "--to", "trainer", "--trial", "production", "-o", "out/here")
    assert ended.code == 0
    path = folder / "out" / "here" / "job.toml"
    assert path.read_text() == "# toy-point\ntp = 8\n"
    assert "out/here/job.toml" in ended.out
    document = finished("export", "toy-study", "--to", "trainer", "-o", "out", "--json").json
    assert document["files"] == ["out/job.toml"]
    assert document["trial"] == "best"


@pytest.mark.usefixtures("with_exporter")
def test_a_baseline_can_be_exported_before_any_run(autotune: Run, folder: Path) -> None:
    ended = autotune("export", "toys.py:study", "--to", "trainer", "--trial", "baseline")
    assert ended.code == 0
    assert (folder / "job.toml").exists()
    assert autotune("export", "toys.py:study", "--to", "trainer").code == 1


@pytest.mark.usefixtures("with_exporter")
def test_what_cannot_be_expressed_is_refused(finished: Run, folder: Path) -> None:
    ended = finished("export", "--to", "trainer", "--trial", "spare", "-o", "x")
    assert ended.code == 1
    assert "chunks: the trainer has no 2" in ended.err
    assert not (folder / "x").exists()


def test_the_nearest_that_can_be_expressed(
    finished: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def export(design_point: DesignPoint, config: Config) -> Mapping[str, str]:
        if config["chunks"] != 1:
            raise Unsupported("chunks: must be 1")
        return {"job.toml": "chunks = 1"}

    monkeypatch.setattr(plugins, "load", lambda group, name: export)
    command = ("export", "toys.py:study", "--to", "trainer")
    assert finished(*command, "--trial", "spare").err == "autotune: chunks: must be 1\n"
    assert finished(*command, "--trial", "spare", "--nearest").code == 1
    move = lambda point, config, *, space: space.project({**config, "chunks": 1})  # noqa: E731
    monkeypatch.setattr(export, "nearest", move, raising=False)
    refused = finished(*command, "--trial", "spare")
    assert refused.code == 1
    assert "`--nearest` writes" in refused.err
    text = finished(*command, "--trial", "spare", "--nearest").out
    assert "nearest against spare" in text
    assert "chunks" in text
    document = finished(*command, "--trial", "spare", "--nearest", "--json").json
    assert document["config"]["chunks"] == 1
    assert document["nearest"]["changed"] == [{"name": "chunks", "before": 2, "after": 1}]
    assert document["nearest"]["comparison"]["b"]["metrics"]["time_s"] > 0
    as_it_is = finished(*command, "--trial", "production", "--nearest", "--json").json
    assert as_it_is["nearest"] is None
    assert as_it_is["files"] == ["job.toml"]


@pytest.mark.usefixtures("with_exporter")
def test_run_says_how_to_export(finished: Run) -> None:
    text = finished("run", "toys.py:study", "--no-report").out
    assert "autotune export toys.py:study --to trainer --trial best -o DIR" in text


def test_run_offers_the_best_that_can_be_exported(
    finished: Run, monkeypatch: pytest.MonkeyPatch, with_exporter: None
) -> None:
    best = finished("best", "--json").json["best"]["config"]

    def picky(design_point: DesignPoint, config: Config) -> Mapping[str, str]:
        if config == best:
            raise Unsupported("not this one")
        return {}

    monkeypatch.setattr(plugins, "load", lambda group, name: picky)
    second = finished("front", "--json").json["front"][1]["number"]
    text = finished("run", "toys.py:study", "--no-report").out
    assert f"--trial {second} -o DIR" in text
    assert f"Trial {second} is the best on the front" in text


def test_an_unknown_exporter_lists_those_there_are(finished: Run) -> None:
    ended = finished("export", "--to", "magic")
    assert ended.code == 2
    assert "torchtitan" in ended.err
