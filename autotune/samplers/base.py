"""What every sampler is given and gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

import numpy as np

from autotune.objective import Config


class Fate(StrEnum):
    """What became of an earlier config, as far as a sampler cares."""

    MEASURED = "measured"
    FAILED = "failed"
    """Measuring it failed, and would again."""
    RUNNING = "running"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """An earlier config of the study.

    Attributes:
        number: Its place in the history; unique, and the same whoever looks.
        config: Valid in the study's space.
        fate: See `Fate`.
        losses: The optimised metrics, smaller is better; empty unless measured.
        constraints: Feasible when <= 0; empty unless measured.
        state: What the sampler gave with the config when it proposed it.
    """

    number: int
    config: Config
    fate: Fate
    losses: tuple[float, ...] = ()
    constraints: tuple[float, ...] = ()
    state: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """What a sampler would measure next.

    Attributes:
        config: May break the rules of the space, and is repaired then; None where the sampler
            has no opinion yet and a uniform draw does as well.
        state: JSON values to be given back with the observation.
    """

    config: Config | None
    state: Mapping[str, Any] = field(default_factory=dict)


class Sampler(Protocol):
    """Proposes configs; keeps nothing that decides between one proposal and the next.

    The same past, slot and seed give the same suggestion in every process, so that a study needs
    no stored random state to go on as if it had never stopped.

    Attributes:
        starts_with_draws: Whether uniform draws should come before its own proposals.
    """

    @property
    def starts_with_draws(self) -> bool: ...  # noqa: D102

    def suggest(self, past: Sequence[Observation], *, slot: int, number: int) -> Suggestion:
        """Propose one config.

        Args:
            past: The history in the order of its numbers.
            slot: Position in the budget, counted from 0.
            number: What the observation of this config will be numbered.
        """
        ...


def derived_seed(*parts: int) -> int:
    """A seed of 32 bits for one purpose, such as ``derived_seed(study_seed, slot)``.

    Args:
        parts: Non-negative numbers; other parts give an unrelated seed.
    """
    return int(np.random.SeedSequence(parts).generate_state(1)[0])
