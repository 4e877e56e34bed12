"""Small real programs that behave well: what they are given, and what is read from them."""

from __future__ import annotations

import doctest
import logging
import pickle
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

import objectives.command.objective
from autotune import DesignPoint, InvalidInput, Objective
from autotune.plugins import load
from objectives.command import CommandObjective, command, command_objective, read_definition

Make = Callable[..., Objective]


def test_the_last_json_line_is_the_result(make: Make) -> None:
    code = "print('{\"loss\": 9}'); print('step'); print('{\"loss\": 2.5, \"x\": 1}'); print('bye')"
    evaluation = make(code).evaluate({}, seed=0)
    assert evaluation.ok, evaluation.reason
    assert evaluation.metrics == {"loss": 2.5}
    assert evaluation.cost_s > 0
    assert evaluation.attributes == {}


def test_parameters_arrive_as_single_arguments(make: Make) -> None:
    code = "import json, sys; json.dump(sys.argv[1:], open('got', 'w')); print('{\"loss\": 1}')"
    value = "a b; rm -rf / $(ls) `id` \n \"'"
    code += f"; assert sys.argv[1:] == ['--tp=8', '--text=' + {value!r}, 'x']"
    evaluation = make(code, "--tp={tp}", "--text={text}", "x").evaluate(
        {"tp": 8, "text": value}, seed=0
    )
    assert evaluation.ok, evaluation.reason


def test_environment_seed_and_files(make: Make) -> None:
    code = """
import json, os, sys
conf = open(os.path.join(sys.argv[1], 'conf', 'job.txt')).read()
config = json.load(open(sys.argv[2])); point = json.load(open(sys.argv[3]))
print(json.dumps({'threads': float(os.environ['THREADS']), 'seed': float(sys.argv[4]),
    'conf': float(conf), 'tp': config['tp'], 'gpus': point['gpus'],
    'cwd': float(os.path.samefile('.', sys.argv[1]))}))
"""
    objective = make(
        code,
        "{run_directory}",
        "{config_file}",
        "{design_point_file}",
        "{seed}",
        environment={"THREADS": "{threads}"},
        files={"conf/job.txt": "{tp}"},
        metric={name: {} for name in ("threads", "seed", "conf", "tp", "gpus", "cwd")},
    )
    evaluation = objective.evaluate({"threads": 4, "tp": 8}, seed=7)
    assert evaluation.metrics == {
        "threads": 4,
        "seed": 7,
        "conf": 8,
        "tp": 8,
        "gpus": 8,
        "cwd": 1,
    }, evaluation.reason


def test_a_bare_environment(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "1")
    code = "import os; print('{\"loss\": %d}' % ('SECRET' in os.environ))"
    assert make(code).evaluate({}, seed=0).metrics == {"loss": 1}
    assert make(code, inherit_environment=False).evaluate({}, seed=0).metrics == {"loss": 0}


def test_a_file_in_its_directory(tmp_path: Path) -> None:
    (tmp_path / "bench.py").write_text("import sys; print('{\"loss\": %s}' % sys.argv[1])")
    (tmp_path / "bench.toml").write_text(
        'argv = ["{python}", "bench.py", "{x}"]\nworking_directory = "."\nmetric.loss = {}\n'
    )
    objective = command_objective(tmp_path / "bench.toml")(DesignPoint(name="any"))
    assert objective.evaluate({"x": 1.5}, seed=0).metrics == {"loss": 1.5}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bench.py", "bench.toml"]


def test_metrics_by_pattern_and_by_path(make: Make) -> None:
    code = (
        "import sys; print('iter 1 time 9.0 s'); print('iter 2 time 2.0 s');"
        "print('peak 81.5 GiB', file=sys.stderr);"
        'print(\'{"a": {"b": 4}, "c.d": 5, "terms": {"compute": 1.5}}\')'
    )
    objective = make(
        code,
        metric={
            "time_s": {"pattern": r"time ([\d.]+) s"},
            "nested": {"key": "a.b"},
            "dotted": {"key": "c.d"},
        },
        constraint={"memory_over_gib": {"pattern": r"peak ([\d.]+) GiB", "at_most": 80}},
        breakdown="terms",
    )
    evaluation = objective.evaluate({}, seed=0)
    assert evaluation.metrics == {"time_s": 2.0, "nested": 4.0, "dotted": 5.0}
    assert evaluation.constraints == {"memory_over_gib": 1.5}
    assert not evaluation.feasible
    assert evaluation.breakdown == {"compute": 1.5}


def test_results_in_a_file(make: Make) -> None:
    code = "import os; os.mkdir('out'); open('out/r.json', 'w').write('{\\n\"loss\": 3\\n}')"
    assert make(code, result_file="out/r.json").evaluate({}, seed=0).metrics == {"loss": 3}


def test_parameters_that_the_program_never_sees_are_told(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    objective = make("print('{\"loss\": 1}')", "{seen}", name="unseeing")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert objective.evaluate({"seen": 1, "forgotten": 2}, seed=0).ok
    assert [record.getMessage() for record in caplog.records] == [
        "unseeing: the program is told nothing of forgotten; refer to it in argv, environment or "
        "files, or pass {config_file}"
    ]


def test_artifacts_are_kept_where_asked(make: Make, tmp_path: Path) -> None:
    objective = make(
        "print('{\"loss\": 1}'); open('extra', 'w').write('1')",
        artifacts=str(tmp_path / "runs"),
        files={"in.txt": "{x}"},
    )
    for _ in range(2):
        evaluation = objective.evaluate({"x": 5}, seed=0)
        assert evaluation.ok
    artifacts = evaluation.attributes["artifacts"]
    kept = sorted(path.name for path in Path(artifacts["directory"]).iterdir())
    assert kept == ["extra", "in.txt", "stderr.txt", "stdout.txt"]
    assert len(artifacts["sha256"]["stdout.txt"]) == 64
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_nothing_is_left_behind_elsewhere(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert make("print('{\"loss\": 1}')").evaluate({}, seed=0).ok
    assert list(tmp_path.iterdir()) == []


def test_a_command_in_a_design_point() -> None:
    section = {"argv": ["sh", "-c", 'echo "{\\"loss\\": $1}"', "sh", "{x}"], "metric": {"loss": {}}}
    point = DesignPoint(name="here", content={"command": section})
    objective = load("autotune.objectives", "command")(point)
    assert objective.evaluate({"x": 2}, seed=0).metrics == {"loss": 2}
    assert isinstance(objective, CommandObjective)
    with pytest.raises(InvalidInput, match=r"design point bare, command: is missing"):
        command(DesignPoint(name="bare"))
    with pytest.raises(InvalidInput, match=r"design point bad, command: must be a table"):
        command(DesignPoint(name="bad", content={"command": 3}))


def test_the_example_of_the_documentation(tmp_path: Path) -> None:
    example = textwrap.dedent((objectives.command.__doc__ or "").split("::\n", 1)[1])
    (tmp_path / "bench.toml").write_text(example)
    found = read_definition(tmp_path / "bench.toml")
    assert [metric.name for metric in found.metrics] == ["step_time_s"]
    assert len(found.failures) == 1


def test_doctests() -> None:
    assert doctest.testmod(objectives.command.objective).failed == 0


def test_identity(make: Make) -> None:
    objective = make("pass", version="7", deterministic=True, cost="2 s", name="mine")
    assert objective.name == "mine"
    assert objective.version.startswith("7-1-")
    assert objective.deterministic
    assert objective.cost_s == 2
    assert objective.version != make("pass  #", version="7").version


def test_an_objective_reaches_worker_processes(make: Make) -> None:
    objective = make("print('{\"loss\": 1}')", metric={"loss": {"pattern": '"loss": (.)'}})
    again = pickle.loads(pickle.dumps(objective))
    assert again.evaluate({}, seed=0).metrics == {"loss": 1}
    assert again.version == objective.version
