"""A command as an `Objective`: fill the templates, run, read, sort what went wrong."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from autotune.design_point import DesignPoint
from autotune.errors import InvalidInput
from autotune.evaluation import Evaluation, FailureKind, Status
from autotune.jsonable import fingerprint, to_jsonable
from autotune.metric import Metric
from autotune.objective import Config, Objective, ObjectiveFactory, Report
from objectives.command.definition import OUTPUT_FILES, Definition
from objectives.command.failures import kind_of, reason_of, tail
from objectives.command.loading import parse_definition, read_definition
from objectives.command.process import Ending, Finished, run_program
from objectives.command.results import Output, Unusable, read_output, read_results
from objectives.command.templates import RESERVED, fill, fill_all, placeholders

_ADAPTER_VERSION = "1"
"""Changes whenever the same program and definition would be measured differently."""

_TOO_LONG = (errno.E2BIG, errno.ENAMETOOLONG)

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandObjective:
    """Runs a program for each config.

    Attributes:
        definition: The program and how it is measured.
        design_point: What the program may read as ``{design_point_file}``.
    """

    definition: Definition
    design_point: DesignPoint

    @property
    def name(self) -> str:
        """The definition's name."""
        return self.definition.name

    @property
    def version(self) -> str:
        """The definition's version and a hash of all of it."""
        return f"{self.definition.version}-{_ADAPTER_VERSION}-{self.definition.fingerprint}"

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """As the definition declares them."""
        return self.definition.metrics

    @property
    def constraints(self) -> tuple[str, ...]:
        """As the definition declares them."""
        return tuple(reading.name for reading in self.definition.constraint_readings)

    @property
    def deterministic(self) -> bool:
        """As the definition declares it."""
        return self.definition.deterministic

    @property
    def cost_s(self) -> float:
        """As the definition declares it."""
        return self.definition.cost_s

    def evaluate(self, config: Config, *, seed: int, report: Report | None = None) -> Evaluation:
        """Run the program once, or again where only the infrastructure failed.

        The program reports nothing before its end, so that ``report`` is never called.
        """
        start = time.monotonic()
        attempts = 0
        while True:
            attempts += 1
            evaluation = self._attempt(config, seed)
            again = evaluation.failure_kind is FailureKind.INFRASTRUCTURE
            if not again or attempts > self.definition.retries:
                break
            _logger.warning("%s: %s; starting again", self.name, evaluation.reason)
            time.sleep(self.definition.retry_delay_s)
        attributes = dict(evaluation.attributes)
        if attempts > 1:
            attributes["attempts"] = attempts
        return replace(evaluation, cost_s=time.monotonic() - start, attributes=attributes)

    def _attempt(self, config: Config, seed: int) -> Evaluation:
        try:
            with _run_directory(self.definition, config) as directory:
                return self._measure(config, seed, directory)
        except OSError as error:
            if error.errno in _TOO_LONG:
                return Evaluation.failure(FailureKind.INVALID, f"a value is too long: {error}")
            reason = f"the program could not be started: {error}"
            return Evaluation.failure(FailureKind.INFRASTRUCTURE, reason)
        except (ValueError, TypeError) as error:  # what a config cannot fill, or JSON not hold
            return Evaluation.failure(FailureKind.INVALID, str(error))

    def _measure(self, config: Config, seed: int, directory: Path) -> Evaluation:
        definition = self.definition
        values = self._values(config, seed, directory)
        argv = fill_all(definition.argv, values)
        environment = {name: fill(text, values) for name, text in definition.environment.items()}
        inherited = os.environ if definition.inherit_environment else {}
        for path, template in definition.files.items():
            _write(directory / path, fill(template, values))
        stdout, stderr = (directory / name for name in OUTPUT_FILES)
        finished = run_program(
            argv,
            environment={**inherited, **environment},
            working_directory=definition.working_directory or directory,
            stdout=stdout,
            stderr=stderr,
            timeout_s=definition.timeout_s,
            grace_s=definition.grace_s,
            memory_limit_bytes=definition.memory_limit_bytes,
            output_limit_bytes=definition.output_limit_bytes,
        )
        return self._sorted(argv, finished, read_output(stdout, stderr), directory)

    def _values(self, config: Config, seed: int, directory: Path) -> dict[str, Any]:
        """Everything that templates may refer to; files are written only where they do."""
        if taken := [name for name in config if name in RESERVED]:
            raise ValueError(f"a parameter must not be named {taken[0]}, which is reserved")
        values = {
            **config,
            "run_directory": str(directory),
            "python": sys.executable,
            "seed": seed,
        }
        if self.definition.directory is not None:
            values["definition_directory"] = str(self.definition.directory)
        used = _used(self.definition)
        contents: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
            ("config_file", "config.json", config),
            ("design_point_file", "design_point.json", self.design_point.content),
        )
        for name, file, content in contents:
            if name in used:
                _write(directory / file, json.dumps(to_jsonable(dict(content), name), indent=1))
                values[name] = str(directory / file)
        if "config_file" not in used and (unseen := tuple(set(config) - used)):
            _warn_of_unseen(self.name, tuple(sorted(unseen)))
        return values

    def _sorted(
        self, argv: Sequence[str], finished: Finished, output: Output, directory: Path
    ) -> Evaluation:
        kept = {} if self.definition.artifacts is None else {"artifacts": _artifacts(directory)}
        unusable = ""
        if finished.ending is Ending.EXITED and finished.exit_code == 0:
            try:
                results = read_results(self.definition, output, directory)
            except Unusable as error:
                unusable = str(error)
            else:
                return Evaluation(
                    metrics=results.metrics,
                    constraints=results.constraints,
                    breakdown=results.breakdown,
                    attributes=kept,
                )
        return Evaluation(
            status=Status.FAILED,
            failure_kind=kind_of(finished, output, self.definition.failures),
            reason=reason_of(
                finished,
                output,
                unusable=unusable,
                timeout_s=self.definition.timeout_s,
                output_limit_bytes=self.definition.output_limit_bytes,
            ),
            attributes={
                "argv": list(argv),
                "exit_code": finished.exit_code,
                "stdout_tail": tail(output.stdout),
                "stderr_tail": tail(output.stderr),
                **kept,
            },
        )


def command(design_point: DesignPoint) -> Objective:
    """The command that a design point describes in its section ``command``.

    Raises:
        InvalidInput: If it has none, or with everything wrong with it.
    """
    what = f"design point {design_point.name}, command"
    if "command" not in design_point.content:
        raise InvalidInput(
            what,
            "is missing; give a table with argv and metric, or use command_objective(FILE) as the "
            "study's objective",
        )
    definition = parse_definition(design_point.content["command"], what=what)
    return CommandObjective(definition=definition, design_point=design_point)


def command_objective(definition: Mapping[str, Any] | str | Path) -> ObjectiveFactory:
    """Make an objective factory of a command, for any design point.

    Args:
        definition: A TOML file, or its content.

    Raises:
        InvalidInput: With everything wrong with it.

    Examples:
        >>> factory = command_objective(
        ...     {"argv": ["bench", "--size={size}"], "metric": {"step_time_s": {"unit": "s"}}}
        ... )
        >>> factory(DesignPoint(name="any")).name
        'command'
    """
    if isinstance(definition, Mapping):
        parsed = parse_definition(definition)
    else:
        parsed = read_definition(definition)

    def factory(design_point: DesignPoint) -> Objective:
        return CommandObjective(definition=parsed, design_point=design_point)

    return factory


def _used(definition: Definition) -> set[str]:
    """Every name that a template refers to."""
    templates = (*definition.argv, *definition.environment.values(), *definition.files.values())
    return {name for template in templates for name in placeholders(template)}


@cache
def _warn_of_unseen(name: str, parameters: tuple[str, ...]) -> None:
    _logger.warning(
        "%s: the program is told nothing of %s; refer to it in argv, environment or files, or pass "
        "{config_file}",
        name,
        ", ".join(parameters),
    )


def _artifacts(directory: Path) -> dict[str, Any]:
    """Where a run's output is kept, with hashes that show whether it is still the same."""
    hashes = {}
    for name in OUTPUT_FILES:
        with (directory / name).open("rb") as file:
            hashes[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return {"directory": str(directory), "sha256": hashes}


@contextlib.contextmanager
def _run_directory(definition: Definition, config: Config) -> Iterator[Path]:
    """A fresh directory for one run: kept under ``artifacts``, or temporary."""
    if definition.artifacts is None:
        with tempfile.TemporaryDirectory(prefix="autotune-", ignore_cleanup_errors=True) as path:
            yield Path(path)
        return
    definition.artifacts.mkdir(parents=True, exist_ok=True)
    prefix = f"{fingerprint(dict(config))}-"
    yield Path(tempfile.mkdtemp(prefix=prefix, dir=definition.artifacts))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
