"""Sorting a failed run by kind, with a reason that a user can act on."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

from autotune.evaluation import FailureKind
from objectives.command.definition import FailureRule
from objectives.command.process import Ending, Finished
from objectives.command.results import Output

USUAL_RULES = (
    FailureRule(
        kind=FailureKind.OOM,
        pattern=re.compile(
            r"CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY|OutOfMemoryError|\bMemoryError\b"
            r"|std::bad_alloc|Cannot allocate memory|oom-kill"
        ),
    ),
    # The kernel's out-of-memory killer uses SIGKILL.
    FailureRule(kind=FailureKind.OOM, exit_codes=(128 + signal.SIGKILL,)),
    # Not found and not executable, as shells and our own launcher say it.
    FailureRule(kind=FailureKind.INFRASTRUCTURE, exit_codes=(126, 127)),
)
"""Asked after a definition's own rules."""

_REASON_CHARACTERS = 300
TAIL_CHARACTERS = 4000
"""How much of each output stays with a failed evaluation."""


def kind_of(finished: Finished, output: Output, rules: Sequence[FailureRule] = ()) -> FailureKind:
    """The kind of a run that failed or gave no usable result.

    Args:
        finished: How it ended.
        output: What it printed.
        rules: The definition's own, asked first; the first that fits decides.
    """
    if finished.ending is Ending.TIMED_OUT:
        return FailureKind.TIMEOUT
    if finished.ending is Ending.FLOODED:
        return FailureKind.CRASH
    for rule in (*rules, *USUAL_RULES):
        if rule.exit_codes and finished.exit_code not in rule.exit_codes:
            continue
        if rule.pattern is None or _in(rule.pattern, output):
            return rule.kind
    return FailureKind.INVALID if finished.exit_code == 0 else FailureKind.CRASH


def reason_of(
    finished: Finished,
    output: Output,
    *,
    unusable: str = "",
    timeout_s: float = 0.0,
    output_limit_bytes: float = 0.0,
) -> str:
    """Why a run failed, in one line.

    Args:
        finished: How it ended.
        output: What it printed.
        unusable: What is wrong with its results, where it ended well.
        timeout_s: That it was given.
        output_limit_bytes: That it was given.
    """
    said = last_line(output.stderr) or last_line(output.stdout)
    match finished.ending:
        case Ending.TIMED_OUT:
            text = f"did not end within {timeout_s:g} s and was stopped"
        case Ending.FLOODED:
            text = f"printed more than {output_limit_bytes:g} bytes and was stopped"
        case _ if finished.exit_code == 0:
            text = unusable
        case _:
            text = f"ended with {_named(finished.exit_code)}"
    if said and said not in text:
        text = f"{text}; last output: {said}"
    return trimmed(text, _REASON_CHARACTERS)


def tail(text: str) -> str:
    """The end of an output, as it is kept with a failure."""
    return text if len(text) <= TAIL_CHARACTERS else f"…{text[-TAIL_CHARACTERS:]}"


def last_line(text: str) -> str:
    """The last line that is not blank."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def trimmed(text: str, characters: int) -> str:
    """A text cut to a length, with a mark where it was cut."""
    return text if len(text) <= characters else f"{text[: characters - 1]}…"


def _in(pattern: re.Pattern[str], output: Output) -> bool:
    return bool(pattern.search(output.stderr) or pattern.search(output.stdout))


def _named(exit_code: int) -> str:
    try:
        return f"signal {signal.Signals(exit_code - 128).name}"
    except ValueError:
        return f"exit code {exit_code}"
