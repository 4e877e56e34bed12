"""Small real programs that fail in every way that programs do; none of it may raise."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autotune import DesignPoint, FailureKind, Objective, Status
from objectives.command import command_objective

Make = Callable[..., Objective]


@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        ("import sys; sys.exit(3)", "crash", "ended with exit code 3"),
        ("1 / 0", "crash", "exit code 1; last output: ZeroDivisionError: division by zero"),
        ("import os; os.abort()", "crash", "ended with signal SIGABRT"),
        ("import os; os.kill(os.getpid(), 9)", "oom", "ended with signal SIGKILL"),
        ("import sys; sys.exit(137)", "oom", "ended with signal SIGKILL"),
        ("raise MemoryError", "oom", "last output: MemoryError"),
        ("print('RuntimeError: CUDA out of memory. Tried'); 1/0", "oom", "exit code 1"),
        ("print('torch.OutOfMemoryError')", "oom", "no line that is a JSON object"),
        ("import sys; sys.exit(127)", "infrastructure", "exit code 127"),
        ("pass", "invalid", "no line that is a JSON object; the program must print one with the"),
        ("print('{\"loss\": NaN}')", "invalid", "loss must be finite, got nan"),
        ("print('{\"loss\": -Infinity}')", "invalid", "loss must be finite, got -inf"),
        ("print('{\"loss\": 1e999}')", "invalid", "loss must be finite, got inf"),
        ("print('{\"loss\": 1' + '0' * 400 + '}')", "invalid", "loss must be finite, got 1"),
        ('print(\'{"loss": "1"}\')', "invalid", "loss must be a number, got '1'"),
        ("print('{\"loss\": true}')", "invalid", "loss must be a number, got True"),
        ("print('{\"loss\": null}')", "invalid", "loss must be a number, got None"),
        ("print('{\"loss\": [1]}')", "invalid", "loss must be a number, got [1]"),
        ("print('{\"losss\": 1}')", "invalid", "has no loss, got ['losss']; did you mean"),
        ("print('[1]')", "invalid", "no line that is a JSON object"),
        ("import sys; sys.stdout.buffer.write(b'\\xff\\x00\\n')", "invalid", "no line"),
        ("print('{\"a\":' * 100000)", "invalid", "no line that is a JSON object"),
    ],
)
def test_failures_are_sorted_by_kind(make: Make, code: str, kind: str, reason: str) -> None:
    evaluation = make(code).evaluate({}, seed=0)
    assert evaluation.status is Status.FAILED
    assert evaluation.failure_kind == kind
    assert reason in evaluation.reason
    assert len(evaluation.reason) <= 300
    assert evaluation.metrics == {}
    json.dumps(evaluation.attributes, allow_nan=False)


@pytest.mark.parametrize(
    ("code", "changes", "reason"),
    [
        ("print(1)", {"result_file": "r.json"}, "the result file r.json is not readable"),
        (
            "open('r.json', 'w').write('[1]')",
            {"result_file": "r.json"},
            "the result file r.json must hold a JSON object, got '[1]'",
        ),
        (
            "print('nothing')",
            {"metric": {"t": {"pattern": "t=(.*)"}}},
            "t: nothing in the output matches 't=(.*)'",
        ),
        (
            "print('t=fast')",
            {"metric": {"t": {"pattern": "t=(.*)"}}},
            "t must be a number, got 'fast'",
        ),
        (
            "print('t=nan')",
            {"metric": {"t": {"pattern": "t=(.*)"}}},
            "t must be finite, got nan",
        ),
        (
            "print('x')",
            {"metric": {"t": {"pattern": "x(1)?"}}},
            "t must be a number, got None",
        ),
        (
            "print('{\"a\": 1}')",
            {"metric": {"t": {"key": "a.b"}}},
            "the result has no a.b, got 1",
        ),
        (
            'print(\'{"loss": 1, "terms": 3}\')',
            {"breakdown": "terms"},
            "terms must be an object of seconds by term, got 3",
        ),
        (
            'print(\'{"loss": 1, "terms": {"x": NaN}}\')',
            {"breakdown": "terms"},
            "terms.x must be finite",
        ),
        (
            "print('{\"loss\": 1}')",
            {"constraint": {"over": {}}},
            "the result has no over, got ['loss']",
        ),
    ],
)
def test_results_that_cannot_be_used(
    make: Make, code: str, changes: dict[str, Any], reason: str
) -> None:
    evaluation = make(code, **changes).evaluate({}, seed=0)
    assert evaluation.failure_kind is FailureKind.INVALID
    assert reason in evaluation.reason


def test_the_definition_says_what_a_failure_is(make: Make) -> None:
    rules = [
        {"kind": "infrastructure", "exit_code": 75},
        {"kind": "invalid", "exit_code": [1, 2], "pattern": "bad layout"},
        {"kind": "oom", "pattern": "no HBM left"},
    ]
    cases = {
        "import sys; sys.exit(75)": "infrastructure",
        "import sys; sys.exit('bad layout')": "invalid",
        "import sys; print('bad layout'); sys.exit(3)": "crash",
        "print('no HBM left')": "oom",
        "import os; os.kill(os.getpid(), 9)": "oom",
    }
    for code, kind in cases.items():
        assert make(code, failure=rules).evaluate({}, seed=0).failure_kind == kind, code


def test_a_rule_does_not_spoil_a_good_result(make: Make) -> None:
    code = "print('MemoryError avoided'); print('{\"loss\": 1}')"
    assert make(code).evaluate({}, seed=0).ok


def test_megabytes_of_output(make: Make) -> None:
    code = (
        "import sys\nfor i in range(40000): print('x' * 100)\n"
        "for i in range(40000): print('e' * 100, file=sys.stderr)\nprint('{\"loss\": 1}')"
    )
    assert make(code).evaluate({}, seed=0).metrics == {"loss": 1}
    failed = make(code + "\nsys.exit(1)").evaluate({}, seed=0)
    assert len(failed.attributes["stdout_tail"]) <= 4001
    assert len(failed.attributes["stderr_tail"]) <= 4001
    assert len(failed.reason) <= 300


def test_a_memory_limit(make: Make) -> None:
    code = "x = bytearray(400_000_000); print('{\"loss\": 1}')"
    evaluation = make(code, memory_limit="200 MB").evaluate({}, seed=0)
    assert evaluation.failure_kind is FailureKind.OOM, evaluation.reason
    assert make(code, memory_limit="2 GB").evaluate({}, seed=0).ok


@pytest.mark.parametrize("limit", [{}, {"memory_limit": "1 GB"}])
def test_a_program_that_does_not_exist(limit: dict[str, str]) -> None:
    definition = {"argv": ["no-such-program-here"], "metric": {"loss": {}}, **limit}
    evaluation = command_objective(definition)(DesignPoint(name="any")).evaluate({}, seed=0)
    assert evaluation.failure_kind is FailureKind.INFRASTRUCTURE
    assert "no-such-program-here" in evaluation.reason


def test_a_working_directory_that_does_not_exist(make: Make, tmp_path: Path) -> None:
    evaluation = make("pass", working_directory=str(tmp_path / "none")).evaluate({}, seed=0)
    assert evaluation.failure_kind is FailureKind.INFRASTRUCTURE
    assert "none" in evaluation.reason


def test_an_artifact_directory_that_cannot_be_made(make: Make, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    evaluation = make("pass", artifacts=str(tmp_path / "file" / "runs")).evaluate({}, seed=0)
    assert evaluation.failure_kind is FailureKind.INFRASTRUCTURE


def test_a_program_that_removes_its_directory(make: Make) -> None:
    code = "import os, shutil; shutil.rmtree(os.getcwd()); print('{\"loss\": 1}')"
    evaluation = make(code).evaluate({}, seed=0)
    assert evaluation.failure_kind is FailureKind.INFRASTRUCTURE
    assert "stdout.txt" in evaluation.reason


COUNTED = """
import os, sys
path = os.environ['COUNT']
count = (int(open(path).read()) if os.path.exists(path) else 0) + 1
open(path, 'w').write(str(count))
if count < 3: sys.exit(int(os.environ['CODE']))
print('{"loss": %d}' % count)
"""


@pytest.mark.parametrize(
    ("code", "retries", "kind", "runs"),
    [
        (75, 2, None, 3),
        (75, 1, "infrastructure", 2),
        (75, 0, "infrastructure", 1),
        (1, 5, "crash", 1),
        (137, 5, "oom", 1),
    ],
)
def test_only_infrastructure_is_tried_again(
    make: Make, tmp_path: Path, code: int, retries: int, kind: str | None, runs: int
) -> None:
    count = tmp_path / "count"
    evaluation = make(
        COUNTED,
        environment={"COUNT": str(count), "CODE": str(code)},
        failure=[{"kind": "infrastructure", "exit_code": 75}],
        retries=retries,
    ).evaluate({}, seed=0)
    assert evaluation.failure_kind == kind
    assert int(count.read_text()) == runs
    assert evaluation.attributes.get("attempts", 1) == runs


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({}, "{x} in '{x}' is no parameter of the config"),
        ({"x": "--help"}, 'write it as "--x={x}"'),
        ({"x": None}, "parameter x must be a number"),
        ({"x": float("nan")}, "must be finite"),
        ({"x": "a\0"}, "null character"),
        ({"x": "\ud800"}, "surrogates not allowed"),
        ({"x": "y" * 3_000_000}, "too long"),
        ({"x": [object()]}, "must be a JSON value"),
        ({"x": 1, "seed": 3}, "must not be named seed, which is reserved"),
    ],
)
@pytest.mark.parametrize("artifacts", [False, True])
def test_configs_that_make_no_command(
    make: Make, tmp_path: Path, config: dict[str, Any], reason: str, artifacts: bool
) -> None:
    kept = {"artifacts": str(tmp_path)} if artifacts else {}
    evaluation = make("print('{\"loss\": 1}')", "{x}", **kept).evaluate(config, seed=0)
    assert evaluation.failure_kind is FailureKind.INVALID
    assert reason in evaluation.reason
