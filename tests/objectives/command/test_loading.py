from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from autotune import InvalidInput, Metric
from objectives.command import parse_definition, read_definition

WHOLE = r"""
name = "bench"
version = "3"
argv = ["{python}", "{definition_directory}/bench.py", "--tp={tp}"]
working_directory = "."
result_file = "out/result.json"
breakdown = "terms"
timeout = "10 min"
grace = "2 s"
retries = 2
retry_delay = "0.5 s"
memory_limit = "2 GiB"
output_limit = "1 MB"
deterministic = true
cost = "90 s"
artifacts = "runs"
inherit_environment = false

[environment]
OMP_NUM_THREADS = "{threads}"

[files]
"conf/job.toml" = "tp = {tp}\n"

[metric.step_time_s]
unit = "s"
label = "step time"
key = "timing.step"

[metric.tokens_per_s]
direction = "maximize"
pattern = 'throughput: ([\d.]+)'

[constraint.memory_over_bytes]
key = "peak_bytes"
at_most = 80e9

[[failure]]
kind = "infrastructure"
exit_code = [75, 76]

[[failure]]
kind = "oom"
pattern = "out of HBM"
"""


def problems(**changes: Any) -> dict[str, str]:
    definition = {"argv": ["true"], "metric": {"loss": {}}, **changes}
    with pytest.raises(InvalidInput) as caught:
        parse_definition(definition)
    return {problem.path: problem.message for problem in caught.value.problems}


def test_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "bench.toml"
    path.write_text(WHOLE)
    found = read_definition(path)
    assert found.metrics == (
        Metric(name="step_time_s", unit="s", label="step time"),
        Metric(name="tokens_per_s", direction="maximize"),
    )
    assert found.metric_readings[0].key == "timing.step"
    assert found.constraint_readings[0].at_most == 80e9
    assert (found.timeout_s, found.grace_s, found.retry_delay_s) == (600, 2, 0.5)
    assert (found.memory_limit_bytes, found.output_limit_bytes) == (2**31, 1e6)
    assert found.working_directory == tmp_path.resolve()
    assert found.artifacts == tmp_path.resolve() / "runs"
    assert found.directory == tmp_path.resolve()
    assert [rule.exit_codes for rule in found.failures] == [(75, 76), ()]
    assert found.deterministic
    assert found.cost_s == 90


def test_what_is_left_out() -> None:
    found = parse_definition({"argv": ["true"], "metric": {"loss": {}}})
    assert found.name == "command"
    assert found.metrics == (Metric(name="loss"),)
    assert found.timeout_s == 3600
    assert not found.deterministic
    assert found.working_directory is None


def test_the_fingerprint_covers_what_may_change_results() -> None:
    base: dict[str, Any] = {"argv": ["true"], "metric": {"loss": {}}}
    first = parse_definition(base).fingerprint
    assert parse_definition(dict(reversed(base.items()))).fingerprint == first
    assert parse_definition({**base, "artifacts": "x"}).fingerprint == first
    for change in ({"argv": ["false"]}, {"timeout": "1 s"}, {"environment": {"A": "1"}}):
        assert parse_definition({**base, **change}).fingerprint != first


def test_every_problem_is_reported_at_once() -> None:
    found = problems(
        argv=[],
        timeout=10,
        environment={"A=B": "1", "N": 4},
        files={"../up": "", "/etc/x": "", "stdout.txt": "", "ok": 3},
        metric={"loss": {"unit": "s", "directon": "maximize", "pattern": "(", "key": 3}},
        constraint={"c": {"at_most": "80 GB"}},
        failure=[{"kind": "oops"}, {"kind": "oom"}, {"kind": "oom", "exit_code": -9}],
        retries=-1,
        shell=True,
    )
    assert set(found) == {
        "argv",
        "timeout",
        "environment.A=B",
        "environment.N",
        "files.../up",
        "files./etc/x",
        "files.stdout.txt",
        "files.ok",
        "metric.loss.directon",
        "metric.loss.pattern",
        "metric.loss.key",
        "constraint.c.at_most",
        "failure[0].kind",
        "failure[1].exit_code",
        "failure[2].exit_code[0]",
        "retries",
        "shell",
    }
    assert 'such as "2 us", got the bare number 10' in found["timeout"]
    assert 'did you mean "direction"?' in found["metric.loss.directon"]


@pytest.mark.parametrize(
    ("changes", "path", "message"),
    [
        ({"argv": ["{tool}"]}, "argv[0]", "a config chooses arguments, never the program"),
        ({"argv": "true"}, "argv", "must be a list"),
        ({"argv": ["a", 3]}, "argv[1]", 'must be text, such as "--size={size}"'),
        ({"argv": ["a", "b\0"]}, "argv[1]", "null character"),
        ({"argv": ["a", "{definition_directory}/b"]}, "argv[1]", "has no directory"),
        ({"files": {"a": "{definition_directory}"}}, "files.a", "has no directory"),
        ({"metric": {}}, "metric", "at least one metric"),
        ({"metric": {"a": {"pattern": "x"}}}, "metric.a.pattern", "must have a group"),
        (
            {"metric": {"a": {"pattern": "(x)", "key": "a"}}},
            "metric.a",
            "a key or a pattern, got both",
        ),
        ({"constraint": {"loss": {}}}, "constraint.loss", "must not have the name of a metric"),
        ({"result_file": ""}, "result_file", "must be text"),
        ({"result_file": "a/../../b"}, "result_file", "inside the run directory"),
        ({"memory_limit": "0 GB"}, "memory_limit", "more than zero"),
    ],
)
def test_a_wrong_definition(changes: dict[str, Any], path: str, message: str) -> None:
    assert re.search(re.escape(message), problems(**changes)[path])


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="must be a readable"):
        read_definition(tmp_path / "none.toml")
    path = tmp_path / "bad.toml"
    path.write_text("argv = [")
    with pytest.raises(InvalidInput, match="must be TOML"):
        read_definition(path)
    path.write_text("")
    with pytest.raises(InvalidInput, match=r"argv: is missing; give it, such as \[\"python\""):
        read_definition(path)
