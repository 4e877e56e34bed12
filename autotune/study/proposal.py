"""Which config a slot gets."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from autotune.objective import Config
from autotune.samplers import Sampler, derived_seed
from autotune.space import SearchSpace
from autotune.space.values import identity
from autotune.study.history import History
from autotune.study.packing import config_key, storable, unpack_config
from autotune.trial import Origin

_EVALUATION = 1
_DRAW = 2

_MOST_CHANGES = 4
"""Parameters of a baseline that a draw beside it changes at most, before repair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A config for a slot.

    Attributes:
        slot: Position in the budget.
        attempt: 2 when a worker died in the slot before.
        config: Valid in the space.
        origin: Where it comes from.
        label: Name of the baseline, or what was given with an enqueued config.
        seed: For the objective.
        notes: What was done to the config, for the trial's attributes.
        sampler_state: What the sampler wants back.
        queue_id: Which enqueued config it is.
    """

    slot: int
    attempt: int = 1
    config: Config
    origin: Origin
    label: str = ""
    seed: int
    notes: Mapping[str, Any] = field(default_factory=dict)
    sampler_state: Mapping[str, Any] = field(default_factory=dict)
    queue_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposer:
    """Decides configs: interrupted ones again, then baselines, the queue, draws, the sampler.

    Attributes:
        space: The study's space.
        sampler: The study's sampler.
        seed: The study's seed.
        baselines: By name, in the order they are measured.
        n_startup_trials: Draws before the sampler; what was taken over counts as such.
        deterministic: Whether a config is worth measuring only once.
    """

    space: SearchSpace
    sampler: Sampler
    seed: int
    baselines: Mapping[str, Config]
    n_startup_trials: int
    deterministic: bool

    def propose(
        self, slot: int, history: History, queue: Sequence[Mapping[str, Any]]
    ) -> Proposal | None:
        """The config for a slot; None when the space has no config left to measure."""
        if slot in history.lost:
            return self._again(slot, history)
        return (
            self._baseline(slot, history)
            or self._enqueued(slot, history, queue)
            or self._new(slot, history)
        )

    def _again(self, slot: int, history: History) -> Proposal:
        packed = history.lost[slot][-1].packed
        return Proposal(
            slot=slot,
            attempt=1 + history.deaths(slot),
            config=unpack_config(packed["config"]),
            origin=Origin(packed["origin"]),
            label=packed["label"],
            seed=packed["seed"],
            notes=packed["notes"],
            sampler_state=packed["sampler_state"],
            queue_id=packed["queue_id"],
        )

    def _baseline(self, slot: int, history: History) -> Proposal | None:
        for name, config in self.baselines.items():
            origins = history.slotted_keys.get(self.space.key(config), set())
            measured = bool(origins) if self.deterministic else Origin.BASELINE in origins
            if not measured:
                return self._make(slot, config, Origin.BASELINE, label=name)
        return None

    def _enqueued(
        self, slot: int, history: History, queue: Sequence[Mapping[str, Any]]
    ) -> Proposal | None:
        for item in queue:
            if item["id"] in history.queue_ids:
                continue
            if self.deterministic and config_key(item["config"]) in history.keys:
                continue
            return self._make(
                slot,
                unpack_config(item["config"]),
                Origin(item["origin"]),
                label=item["label"],
                notes=item["notes"],
                queue_id=item["id"],
            )
        return None

    def _new(self, slot: int, history: History) -> Proposal | None:
        exclude = history.keys if self.deterministic else frozenset[str]()
        if self.sampler.starts_with_draws and self._draws_missing(slot, history) > 0:
            if slot % 2 and self.baselines:
                return self._beside_a_baseline(slot, exclude)
            return self._draw(slot, Origin.STARTUP, exclude, {})
        suggestion = self.sampler.suggest(
            history.observations(slot), slot=slot, number=history.number_of(slot)
        )
        if suggestion.config is None:
            return self._draw(slot, Origin.SAMPLER, exclude, suggestion.state)
        return self._repaired(slot, suggestion.config, Origin.SAMPLER, exclude, suggestion.state)

    def _draws_missing(self, slot: int, history: History) -> int:
        drawn = history.n_drawn(below=slot)
        return self.n_startup_trials - drawn - len(history.imported)

    def _beside_a_baseline(self, slot: int, exclude: Collection[str]) -> Proposal | None:
        """A baseline with a few parameters as in a uniform draw.

        What runs today was chosen with care, so better configs are likelier near it than
        anywhere; a large space has few good ones that uniform draws would meet.
        """
        seed = derived_seed(self.seed, slot, _DRAW)
        rng = np.random.default_rng(seed)
        drawn = self.space.sample(1, seed=seed)[0]
        baseline = list(self.baselines.values())[rng.integers(len(self.baselines))]
        most = min(_MOST_CHANGES, len(drawn))
        changed = rng.choice(self.space.names, size=rng.integers(1, most + 1), replace=False)
        wanted = {**baseline, **{name: drawn[name] for name in changed.tolist()}}
        return self._repaired(slot, wanted, Origin.STARTUP, exclude, {})

    def _draw(
        self, slot: int, origin: Origin, exclude: Collection[str], state: Mapping[str, Any]
    ) -> Proposal | None:
        config = self.space.sample(1, seed=derived_seed(self.seed, slot, _DRAW))[0]
        return self._repaired(slot, config, origin, exclude, state)

    def _repaired(
        self,
        slot: int,
        wanted: Config,
        origin: Origin,
        exclude: Collection[str],
        state: Mapping[str, Any],
    ) -> Proposal | None:
        config = self.space.project(wanted, exclude=exclude)
        if config is None:
            return None
        return self._make(
            slot, config, origin, notes=repair_notes(wanted, config), sampler_state=state
        )

    def _make(self, slot: int, config: Config, origin: Origin, **more: Any) -> Proposal:
        seed = derived_seed(self.seed, slot, _EVALUATION)
        return Proposal(slot=slot, config=config, origin=origin, seed=seed, **more)


def repair_notes(wanted: Mapping[str, Any], config: Config) -> dict[str, Any]:
    """What was changed to make a config valid and new: ``repaired``, by parameter.

    A wanted value that cannot be stored, such as NaN, is noted as text.
    """
    changed = {
        name: [storable(wanted.get(name)), value]
        for name, value in config.items()
        if name not in wanted or identity(wanted[name]) != identity(value)
    }
    return {"repaired": changed} if changed else {}
