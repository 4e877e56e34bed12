"""How an exporter says which knobs a program cannot express."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from autotune import Unsupported


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a program cannot express one knob's value.

    Attributes:
        knob: Its name.
        reason: The whole sentence.
        expressible: The values that it could express instead; empty where that is not known.
        given: Other knobs; the refusal holds while they have the values they have.
    """

    knob: str
    reason: str
    expressible: tuple[Any, ...] = ()
    given: tuple[str, ...] = ()


class Inexpressible(Unsupported):
    """Knobs that a program cannot express; the message has a line for each."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        """Name the knobs.

        Args:
            refusals: One for each.
        """
        self.refusals = tuple(refusals)
        super().__init__("\n".join(refusal.reason for refusal in self.refusals))

    def __reduce__(self) -> tuple[type[Inexpressible], tuple[tuple[Refusal, ...]]]:
        """Survive the way back from a worker process."""
        return type(self), (self.refusals,)
