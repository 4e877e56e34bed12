"""Errors shown to users: what must hold, what was got, what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


class AutotuneError(Exception):
    """Base of every error this package raises on purpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong with an input.

    Attributes:
        path: Where it is, such as ``link.building.bandwidth``; empty for the whole input.
        message: What must hold, what was got and what to do.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class InvalidInput(AutotuneError, ValueError):
    """An input breaks its rules; carries every problem found, not only the first."""

    def __init__(self, what: str, problems: Sequence[Problem] | str) -> None:
        """Collect the problems of one input.

        Args:
            what: The input, such as ``cluster file two-buildings.toml``.
            problems: Everything wrong with it, or one message.
        """
        self.what = what
        self.problems: tuple[Problem, ...] = (
            (Problem(path="", message=problems),) if isinstance(problems, str) else tuple(problems)
        )
        if len(self.problems) == 1:
            text = f"{what}: {self.problems[0]}"
        else:
            lines = "\n".join(f"  - {problem}" for problem in self.problems)
            text = f"{what}: {len(self.problems)} problems\n{lines}"
        super().__init__(text)

    def __reduce__(self) -> tuple[type[InvalidInput], tuple[str, tuple[Problem, ...]]]:
        """Survive the way back from a worker process."""
        return type(self), (self.what, self.problems)


class UnknownName(AutotuneError, LookupError):
    """A name that nothing answers to; the message lists the names that exist."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        """Name what was asked for and what there is.

        Args:
            kind: What was looked up, such as ``study``.
            name: The name asked for.
            known: The names that exist.
        """
        self.kind, self.name, self.known = kind, name, tuple(sorted(known))
        listing = ", ".join(self.known) or "none is installed"
        super().__init__(f"no {kind} is named {name!r}; known: {listing}")

    def __reduce__(self) -> tuple[type[UnknownName], tuple[str, str, tuple[str, ...]]]:
        """Survive the way back from a worker process."""
        return type(self), (self.kind, self.name, self.known)


class StudyMismatch(AutotuneError):
    """A stored study has the same name but another fingerprint, sampler or seed."""


class StorageRefused(AutotuneError):
    """A storage that cannot be used safely: foreign, corrupt, read-only, wrong version."""


class Unsupported(AutotuneError):
    """A combination that a backend does not model or an exporter cannot express, by name."""
