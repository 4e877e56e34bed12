"""Claims slots and settles them: the only place that writes trials.

A claim is one transaction that first reads what others claimed since this process last looked. If
one of them has the slot or, for a deterministic backend, the config, nothing is written and the
slot is proposed for anew. Writers of a study never overlap, so of two claims one sees the other.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from optuna.distributions import BaseDistribution, distribution_to_json

from autotune.evaluation import Evaluation, FailureKind
from autotune.space import SearchSpace
from autotune.storage import Storage, TrialRow
from autotune.storage.reader import read_heartbeats, read_queue, read_trials
from autotune.storage.rows import NewTrial
from autotune.storage.writer import finish_trial, insert_trial
from autotune.study.history import History
from autotune.study.lease import Watch
from autotune.study.measuring import Measurement
from autotune.study.packing import (
    StudyRecord,
    config_key,
    pack_config,
    pack_evaluation,
    unpack_config,
)
from autotune.study.proposal import Proposal, Proposer
from autotune.study.provenance import provenance
from autotune.study.worker import Worker
from autotune.trial import Origin

_logger = logging.getLogger(__name__)

_MOST_ATTEMPTS = 2


class NoClaim(Enum):
    """Why there was nothing to claim."""

    DONE = "every slot is settled"
    WAIT = "other workers hold the remaining slots"
    EXHAUSTED = "the space has no config left to measure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A slot that this process is to measure.

    Attributes:
        row: The running trial.
        config: What to measure.
        seed: For the objective.
    """

    row: TrialRow
    config: Mapping[str, Any]
    seed: int


@dataclass(slots=True, kw_only=True)
class Ledger:
    """One process's view of a study's slots and its claims on them.

    Attributes:
        storage: Where the study is.
        record: The study.
        space: Its space.
        proposer: Decides configs.
        history: What is known of the trials.
        watch: What is known of other workers' signs of life.
        mine: Trials that this process is measuring.
    """

    storage: Storage
    record: StudyRecord
    space: SearchSpace
    proposer: Proposer
    history: History
    watch: Watch
    mine: set[int] = field(default_factory=set)
    _distributions: dict[str, BaseDistribution] = field(init=False, repr=False)
    _texts: dict[str, str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._distributions = self.space.optuna_distributions()
        self._texts = {name: distribution_to_json(d) for name, d in self._distributions.items()}

    def refresh(self) -> list[dict[str, Any]]:
        """Read what changed, give up on dead workers' claims, and give the queue."""
        others = self._running_elsewhere()
        with self.storage.read() as connection:
            rows = read_trials(
                connection, self.record.study_id, after=self.history.last_id, again=others
            )
            beats = read_heartbeats(connection, others) if others else {}
            queue = read_queue(connection, self.record.study_id)
        self.history.apply(rows)
        self._give_up_on_the_dead(beats)
        return queue

    def claim(self, budget: int) -> Claim | NoClaim:
        """Claim the lowest open slot of a budget."""
        while True:
            queue = self.refresh()
            slot = self.history.open_slot(budget)
            if slot is None:
                return NoClaim.WAIT if self._live_below(budget) else NoClaim.DONE
            proposal = self.proposer.propose(slot, self.history, queue)
            if proposal is None:
                return NoClaim.EXHAUSTED
            row = self._insert(proposal)
            if row is not None:
                return Claim(row=row, config=proposal.config, seed=proposal.seed)

    def settle(self, claim: Claim, measurement: Measurement) -> TrialRow | None:
        """Store a result.

        Returns:
            The settled trial; None when the claim was given to another worker meanwhile: then a
            measured result is kept as a repeat outside the budget.
        """
        evaluation = measurement.evaluation
        packed = {
            **claim.row.packed,
            "evaluation": pack_evaluation(evaluation),
            "wall_s": measurement.wall_s,
        }
        if measurement.reports:
            packed["notes"] = {**packed["notes"], "reports": list(measurement.reports)}
        values, constraints = self._numbers(evaluation)
        with self.storage.write(self.record.study_id) as connection:
            row = finish_trial(
                connection,
                claim.row,
                state="COMPLETE" if evaluation.ok else "FAIL",
                packed=packed,
                values=values,
                constraints=constraints,
            )
            if row is None and evaluation.ok:
                repeat = self._repeat(claim, packed, values, constraints)
                insert_trial(connection, self.record.study_id, repeat)
        self.mine.discard(claim.row.trial_id)
        if row is None:
            _logger.warning(
                "slot %d was given to another worker while trial %d was measured here; its "
                "result is kept outside the budget",
                claim.row.packed["slot"],
                claim.row.number,
            )
            return None
        self.history.apply([row])
        return row

    def release(self, claims: Iterable[Claim], why: str, *, counts: bool = False) -> None:
        """Give claims up, so that the slots are tried again with the same configs and seeds.

        Args:
            claims: Unsettled ones of this process.
            why: For the record.
            counts: Whether it was the config's fault, perhaps: two such attempts end a slot.
        """
        for claim in claims:
            self._void(claim.row, why, counts=counts)
            self.mine.discard(claim.row.trial_id)

    def _running_elsewhere(self) -> list[int]:
        running = self.history.running.values()
        return [row.trial_id for row in running if row.trial_id not in self.mine]

    def _live_below(self, budget: int) -> bool:
        return any(slot < budget for slot in self.history.running)

    def _give_up_on_the_dead(self, beats: Mapping[int, int]) -> None:
        for row in list(self.history.running.values()):
            if row.trial_id in self.mine:
                continue
            if Worker.unpack(row.packed["worker"]).is_gone():
                self._bury(row, "its worker is gone")
            elif self.watch.expired(row.trial_id, beats.get(row.trial_id, 0)):
                self._bury(row, f"its worker gave no sign of life for {self.watch.lease_s:g} s")

    def _bury(self, row: TrialRow, why: str) -> None:
        self.watch.forget(row.trial_id)
        if row.packed["attempt"] < _MOST_ATTEMPTS:
            self._void(row, why, counts=True)
        else:
            self._fail(row, why)

    def _void(self, row: TrialRow, why: str, *, counts: bool) -> None:
        _logger.info("slot %d is free again: %s", row.packed["slot"], why)
        self._finish(row, {"void": {"why": why, "counts": counts}})

    def _fail(self, row: TrialRow, why: str) -> None:
        reason = f"the worker died twice while measuring this config; the second time {why}"
        evaluation = Evaluation.failure(FailureKind.CRASH, reason)
        self._finish(row, {"evaluation": pack_evaluation(evaluation), "wall_s": 0.0})

    def _finish(self, row: TrialRow, result: Mapping[str, Any]) -> None:
        packed = {**row.packed, **result}
        with self.storage.write(self.record.study_id) as connection:
            finished = finish_trial(connection, row, state="FAIL", packed=packed)
            if finished is None:  # somebody was faster; the trial is what they made it
                finished = next(
                    (
                        each
                        for each in read_trials(
                            connection,
                            self.record.study_id,
                            after=self.history.last_id,
                            again=[row.trial_id],
                        )
                        if each.trial_id == row.trial_id
                    ),
                    None,
                )
        if finished is not None:
            self.history.apply([finished])

    def _insert(self, proposal: Proposal) -> TrialRow | None:
        new = self._new_trial(proposal)
        study_id = self.record.study_id
        with self.storage.write(study_id) as connection:
            others = read_trials(connection, study_id, after=self.history.last_id)
            free = not any(self._conflicts(proposal, row) for row in others)
            row = insert_trial(connection, study_id, new) if free else None
        self.history.apply(others)
        if row is not None:
            self.history.apply([row])
            self.mine.add(row.trial_id)
        return row

    def _conflicts(self, proposal: Proposal, row: TrialRow) -> bool:
        if row.packed["slot"] == proposal.slot:
            return True
        same = config_key(row.packed["config"]) == self.space.key(proposal.config)
        return same and self.record.deterministic

    def _new_trial(self, proposal: Proposal) -> NewTrial:
        packed = {
            "slot": proposal.slot,
            "attempt": proposal.attempt,
            "origin": proposal.origin.value,
            "label": proposal.label,
            "seed": proposal.seed,
            "config": pack_config(proposal.config),
            "notes": pack_config(proposal.notes),
            "sampler_state": dict(proposal.sampler_state),
            "queue_id": proposal.queue_id,
            "worker": Worker.here().pack(),
            "provenance": {
                **provenance(),
                "objective": self.record.objective,
                "objective_version": self.record.objective_version,
            },
        }
        return NewTrial(
            state="RUNNING",
            params=self.internal_params(proposal.config),
            distributions=self._texts,
            packed=packed,
        )

    def internal_params(self, config: Mapping[str, Any]) -> dict[str, float]:
        """A config as the numbers that Optuna stores."""
        params = self.space.to_optuna(config)
        return {
            name: float(self._distributions[name].to_internal_repr(value))
            for name, value in params.items()
        }

    def _numbers(
        self, evaluation: Evaluation
    ) -> tuple[tuple[float, ...], tuple[float, ...] | None]:
        if not evaluation.ok:
            return (), None
        values = tuple(float(evaluation.metrics[metric.name]) for metric in self.record.metrics)
        names = self.record.constraints
        return values, tuple(float(evaluation.constraints[name]) for name in names)

    def _repeat(
        self,
        claim: Claim,
        packed: Mapping[str, Any],
        values: Sequence[float],
        constraints: Sequence[float] | None,
    ) -> NewTrial:
        return NewTrial(
            state="COMPLETE",
            params=self.internal_params(unpack_config(claim.row.packed["config"])),
            distributions=self._texts,
            packed={**packed, "slot": None, "origin": Origin.REPEAT.value},
            values=tuple(values),
            constraints=None if constraints is None else tuple(constraints),
            started=claim.row.started,
        )
