"""Hands good configs of earlier studies to a new one, which measures them again.

Numbers of another design point or backend are never copied: a copied optimum that does not hold
here traps the search. What is handed on is only where to look first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from autotune.objective import Config
from autotune.space import SearchSpace
from autotune.trial import Trial

if TYPE_CHECKING:
    from autotune.store import Match, StudyStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A config that was good elsewhere, as this study's space has it.

    Attributes:
        config: Valid here.
        source: Name of the study it comes from.
        notes: ``transferred_from`` with study and trial number; ``moved`` with the value there
            and here of every parameter that had to change.
    """

    config: Config
    source: str
    notes: Mapping[str, Any]


def candidates(
    sources: Mapping[str, Sequence[Trial]],
    space: SearchSpace,
    n: int,
    *,
    known: Collection[str] = (),
) -> list[Candidate]:
    """The configs worth measuring again, taken from the sources in turn.

    Args:
        sources: Trials by study name, both the most promising first, such as
            `StudyStore.best_trials` gives them.
        space: Where they are to be measured.
        n: How many at most.
        known: Keys of configs that this study has already.

    Returns:
        Distinct configs, none of them known.
    """
    taken = set(known)
    found: list[Candidate] = []
    for source, trial in _in_turn(sources):
        if len(found) >= n:
            break
        config = space.adopt(trial.config) or space.project(trial.config)
        key = space.key(config)
        if key not in taken:
            taken.add(key)
            notes = _notes(source, trial, config)
            found.append(Candidate(config=config, source=source, notes=notes))
    return found


def best_of(
    store: StudyStore, matches: Sequence[Match], n: int, *, exclude: Collection[str] = ()
) -> dict[str, list[Trial]]:
    """The best trials of matching studies, for `candidates`.

    Args:
        store: Where the studies are.
        matches: Nearest first, as `StudyStore.nearest` gives them.
        n: How many trials of each at most.
        exclude: Studies to leave out, such as the one that asks.
    """
    names = [match.study.name for match in matches if match.study.name not in exclude]
    return {name: store.best_trials(name, n) for name in names}


def _in_turn(sources: Mapping[str, Sequence[Trial]]) -> Iterator[tuple[str, Trial]]:
    for rank in zip_longest(*sources.values()):
        for source, trial in zip(sources, rank, strict=True):
            if trial is not None:
                yield source, trial


def _notes(source: str, trial: Trial, config: Config) -> dict[str, Any]:
    notes: dict[str, Any] = {"transferred_from": {"study": source, "number": trial.number}}
    moved = {
        name: [trial.config.get(name), value]
        for name, value in config.items()
        if name not in trial.config or trial.config[name] != value
    }
    return notes | ({"moved": moved} if moved else {})
