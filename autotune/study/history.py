"""A study's trials as this process knows them, kept up to date without reading them twice."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from autotune.evaluation import FailureKind, Status
from autotune.metric import Metric
from autotune.samplers import Fate, Observation
from autotune.storage.rows import TrialRow
from autotune.study.packing import config_key, state_of, unpack_config
from autotune.trial import Origin, TrialState

_TEACHING = frozenset(
    {FailureKind.OOM, FailureKind.TIMEOUT, FailureKind.INVALID, FailureKind.CRASH}
)
"""Failures that the config is to blame for, unlike a broken machine."""


@dataclass(slots=True)
class History:
    """Trials by what they mean for the budget.

    Attributes:
        metrics: The optimised ones.
        constraints: Names, in order.
        rows: Everything that was read, by trial id.
        settled: The trial that counts, by slot.
        running: Live claims, by slot.
        lost: Claims that were given up, by slot, oldest first.
        imported: Trials taken over from an earlier study.
        keys: Configs that were ever claimed or taken over.
        slotted_keys: Configs that were ever claimed, by the origin of the claim.
        queue_ids: Enqueued configs that were ever claimed.
        last_id: The newest trial that was read.
    """

    metrics: Sequence[Metric]
    constraints: Sequence[str]
    rows: dict[int, TrialRow] = field(default_factory=dict)
    settled: dict[int, TrialRow] = field(default_factory=dict)
    running: dict[int, TrialRow] = field(default_factory=dict)
    lost: dict[int, list[TrialRow]] = field(default_factory=dict)
    imported: list[TrialRow] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    slotted_keys: dict[str, set[Origin]] = field(default_factory=dict)
    queue_ids: set[str] = field(default_factory=set)
    last_id: int = -1
    _observations: list[Observation] = field(default_factory=list)
    _unobserved: list[tuple[int, TrialRow]] = field(default_factory=list)
    _drawn_slots: set[int] = field(default_factory=set)
    _all_settled_below: int = 0

    def apply(self, rows: Iterable[TrialRow]) -> None:
        """Take in trials that are new or have changed, oldest first."""
        for row in rows:
            known = self.rows.get(row.trial_id)
            if known is None:
                self._note_claim(row)
            elif known.state == row.state:
                continue
            self.rows[row.trial_id] = row
            self.last_id = max(self.last_id, row.trial_id)
            self._sort_in(row)

    def _note_claim(self, row: TrialRow) -> None:
        # A slot keeps its config until it is settled, so what was claimed stays claimed.
        key, slot = config_key(row.packed["config"]), row.packed["slot"]
        self.keys.add(key)
        if slot is None:
            return
        origin = Origin(row.packed["origin"])
        self.slotted_keys.setdefault(key, set()).add(origin)
        if origin is Origin.STARTUP:
            self._drawn_slots.add(slot)
        if row.packed["queue_id"] is not None:
            self.queue_ids.add(row.packed["queue_id"])

    def _sort_in(self, row: TrialRow) -> None:
        slot = row.packed["slot"]
        if slot is None:
            if row.packed["origin"] == Origin.IMPORTED:
                self._unobserved.append((len(self.imported), row))
                self.imported.append(row)
            return
        state = state_of(row)
        if state is TrialState.RUNNING:
            self.running[slot] = row
            return
        live = self.running.get(slot)
        if live is not None and live.trial_id == row.trial_id:
            del self.running[slot]
        if state is TrialState.VOID:
            self.lost.setdefault(slot, []).append(row)
        elif slot not in self.settled:
            self.settled[slot] = row
            self._unobserved.append((self.number_of(slot), row))

    def open_slot(self, budget: int) -> int | None:
        """The lowest slot that is neither settled nor being worked on; None when there is none."""
        while self._all_settled_below in self.settled:
            self._all_settled_below += 1
        slots = range(self._all_settled_below, budget)
        return next((s for s in slots if s not in self.settled and s not in self.running), None)

    def n_settled(self, budget: int) -> int:
        """How many slots of a budget are spent."""
        return sum(slot < budget for slot in self.settled)

    def deaths(self, slot: int) -> int:
        """How many workers died in a slot."""
        return sum(row.packed["void"]["counts"] for row in self.lost.get(slot, ()))

    def n_drawn(self, *, below: int) -> int:
        """How many of the slots below one have uniform draws of the start."""
        return sum(slot < below for slot in self._drawn_slots)

    def number_of(self, slot: int) -> int:
        """Where a slot stands among the observations, whoever finished first."""
        return len(self.imported) + slot

    def observations(self, slot: int) -> list[Observation]:
        """What a sampler may know when it proposes for a slot, in the order of the numbers."""
        for number, row in self._unobserved:
            self._remember(self._observe(row, number))
        self._unobserved.clear()
        running = [
            self._observe(row, self.number_of(each))
            for each, row in self.running.items()
            if each != slot
        ]
        found = [*self._observations, *(each for each in running if each is not None)]
        return sorted(found, key=_number) if running else found

    def _remember(self, seen: Observation | None) -> None:
        if seen is not None:
            bisect.insort(self._observations, seen, key=_number)

    def _observe(self, row: TrialRow, number: int) -> Observation | None:
        config = unpack_config(row.packed["config"])
        state = row.packed["sampler_state"]
        result = row.packed.get("evaluation")
        if result is None:
            return Observation(number=number, config=config, fate=Fate.RUNNING, state=state)
        if row.state != "COMPLETE":
            teaches = result["status"] == Status.FAILED and result["failure_kind"] in _TEACHING
            failed = Observation(number=number, config=config, fate=Fate.FAILED, state=state)
            return failed if teaches else None
        if any(name not in result["constraints"] for name in self.constraints):
            return None  # whether it is feasible is not known
        values = np.array([result["metrics"][metric.name] for metric in self.metrics])
        losses = [
            float(metric.as_loss(value)) for metric, value in zip(self.metrics, values, strict=True)
        ]
        return Observation(
            number=number,
            config=config,
            fate=Fate.MEASURED,
            losses=tuple(losses),
            constraints=tuple(result["constraints"][name] for name in self.constraints),
            state=state,
        )


def _number(each: Observation) -> int:
    return each.number
