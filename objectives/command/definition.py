"""What a program is, how it is started and how its results are read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from autotune.evaluation import FailureKind
from autotune.metric import Metric

OUTPUT_FILES = ("stdout.txt", "stderr.txt")
"""Where a run's output goes, in its run directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Where a value is found in what a program leaves behind.

    Attributes:
        name: Of the metric or constraint.
        key: Path of the value in the JSON object, its parts separated by dots.
        pattern: Regular expression whose first group is the value, searched in the output
            instead of JSON; its last match counts. None where the value is in JSON.
        at_most: Subtracted from a constraint's value, so that it is feasible up to this limit.
    """

    name: str
    key: str
    pattern: re.Pattern[str] | None
    at_most: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRule:
    """How a run that failed is recognised as one of a kind.

    Attributes:
        kind: What it is then.
        exit_codes: Any of them; empty for every exit code. Death by signal n is 128 + n.
        pattern: Must be found in the output; None where the exit code is enough.
    """

    kind: FailureKind
    exit_codes: tuple[int, ...] = ()
    pattern: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A program and how it is measured.

    Every text of ``argv``, ``environment`` and ``files`` is a template: ``{name}`` stands for
    the value of a parameter, or for one of `RESERVED`.

    Attributes:
        name: Of the objective.
        version: Given by the user, to be changed with the program.
        argv: Program and arguments; no shell, one template makes exactly one argument.
        environment: Variables added to the inherited ones.
        inherit_environment: Whether the program sees this process's variables.
        working_directory: Where the program runs; None for the run directory.
        files: Files written into the run directory before the start, by relative path.
        result_file: JSON file in the run directory; None for the last JSON line of the output.
        metrics: What the objective measures.
        metric_readings: Where each metric is found.
        constraint_readings: Where each constraint is found.
        breakdown_key: Key of an object of seconds by term; None where there is none.
        failures: Asked in turn before the usual rules.
        timeout_s: Then the whole process group is stopped.
        grace_s: Between SIGTERM and SIGKILL.
        retries: How often a run that failed by infrastructure is started again.
        retry_delay_s: Before each further start.
        memory_limit_bytes: Address space of each process; None for no limit.
        output_limit_bytes: Of each output stream; a program that prints more is stopped.
        deterministic: Whether the same config always gives the same values.
        cost_s: Typical seconds for one evaluation.
        artifacts: Directory that keeps each run's directory and output; None to keep none.
        directory: Where the definition's file is; None for a table.
        fingerprint: Hash of everything that may change results.
    """

    name: str
    version: str
    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    inherit_environment: bool = True
    working_directory: Path | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    result_file: str | None = None
    metrics: tuple[Metric, ...]
    metric_readings: tuple[Reading, ...]
    constraint_readings: tuple[Reading, ...] = ()
    breakdown_key: str | None = None
    failures: tuple[FailureRule, ...] = ()
    timeout_s: float = 3600.0
    grace_s: float = 5.0
    retries: int = 0
    retry_delay_s: float = 1.0
    memory_limit_bytes: float | None = None
    output_limit_bytes: float = 64e6
    deterministic: bool = False
    cost_s: float = 1.0
    artifacts: Path | None = None
    directory: Path | None = None
    fingerprint: str
