"""What a study found: the numbers that the command line and the HTML page both show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from autotune.metric import Metric
from autotune.pareto import (
    best_of,
    front_of,
    hypervolume,
    losses_of,
    rankable,
    reference_of,
    study_hypervolume,
)
from autotune.trial import Origin, Trial, TrialState


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many trials of each kind a study has.

    Attributes:
        measured: Slots of the budget that were used: feasible, infeasible and failed.
        feasible: Measured, and every constraint holds.
        infeasible: Measured, and a constraint is broken.
        failed: Measurements that gave no values.
        failed_by_kind: The failed ones by failure kind.
        running: Claimed and not yet finished.
        pruned: Proposed and not measured, because no gain was expected.
        void: Lost to another worker, or whose worker died.
        outside: Imported from an earlier study or measured once more, outside the budget.
    """

    measured: int
    feasible: int
    infeasible: int
    failed: int
    failed_by_kind: Mapping[str, int]
    running: int
    pruned: int
    void: int
    outside: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """A study at one moment.

    Attributes:
        study: Its name.
        description: What it is about; may be empty.
        metrics: Those that are optimised, the first being the one that headlines talk of.
        constraints: Names of the objective's constraints.
        backend: Name and version of the objective that measured every number.
        trials: All of them, in the order of their slots.
        baselines: The measured baselines, today's first.
        rankable: The trials that may be called good, one per config; see `autotune.pareto`.
        front: The Pareto front over ``metrics``.
        hypervolume: See `autotune.pareto.study_hypervolume`.
        provenance: What made the numbers, as rows of a table.
    """

    study: str
    description: str = ""
    metrics: tuple[Metric, ...]
    constraints: tuple[str, ...] = ()
    backend: str = ""
    trials: tuple[Trial, ...]
    baselines: tuple[Trial, ...] = ()
    rankable: tuple[Trial, ...] = ()
    front: tuple[Trial, ...] = ()
    hypervolume: float = 0.0
    provenance: Mapping[str, str] = field(default_factory=dict)

    @property
    def baseline(self) -> Trial | None:
        """What the user runs today."""
        return self.baselines[0] if self.baselines else None

    @property
    def best(self) -> Trial | None:
        """The feasible trial that is best in the first metric."""
        return self.best_by(self.metrics[0])

    def best_by(self, metric: Metric) -> Trial | None:
        """The feasible trial that is best in one metric."""
        candidates: Sequence[Trial] = self.rankable
        if metric not in self.metrics:
            candidates = rankable(self.trials, [metric], constraints=self.constraints)
        return best_of(candidates, metric)

    @property
    def counts(self) -> Counts:
        """How many trials of each kind there are."""
        return count(self.trials)


def find(
    trials: Sequence[Trial],
    metrics: Sequence[Metric],
    *,
    study: str,
    constraints: Sequence[str] = (),
    description: str = "",
    backend: str = "",
    baselines: Sequence[Trial] | None = None,
    provenance: Mapping[str, str] | None = None,
) -> Findings:
    """Work out front, baselines and hypervolume of a study's trials.

    Args:
        trials: All trials of one study, measured by one backend.
        metrics: Those optimised.
        study: Its name.
        constraints: A trial that lacks the value of one is never called good.
        description: What the study is about.
        backend: Name and version of the objective.
        baselines: The trials that measured the baselines, today's first; those that say so
            of themselves when not given.
        provenance: What made the numbers.
    """
    if baselines is None:
        baselines = [trial for trial in trials if trial.origin is Origin.BASELINE]
    settled = (TrialState.COMPLETE, TrialState.FAILED)
    candidates = rankable(trials, metrics, constraints=constraints)
    return Findings(
        study=study,
        description=description,
        metrics=tuple(metrics),
        constraints=tuple(constraints),
        backend=backend,
        trials=tuple(trials),
        baselines=tuple(trial for trial in baselines if trial.state in settled),
        rankable=tuple(candidates),
        front=tuple(front_of(candidates, metrics)),
        hypervolume=_hypervolume(trials, candidates, metrics, constraints),
        provenance=dict(provenance or {}),
    )


def count(trials: Sequence[Trial]) -> Counts:
    """Count trials by what became of them."""
    states = Counter(trial.state for trial in trials)
    budget = [
        trial
        for trial in trials
        if trial.slot is not None and trial.state in (TrialState.COMPLETE, TrialState.FAILED)
    ]
    feasible = sum(trial.feasible for trial in budget)
    failed = [trial for trial in budget if trial.state is TrialState.FAILED]
    kinds = Counter(failure_kind(trial) for trial in failed)
    return Counts(
        measured=len(budget),
        feasible=feasible,
        infeasible=len(budget) - feasible - len(failed),
        failed=len(failed),
        failed_by_kind=dict(sorted(kinds.items())),
        running=states[TrialState.RUNNING],
        pruned=states[TrialState.PRUNED],
        void=states[TrialState.VOID],
        outside=sum(
            trial.slot is None and trial.state in (TrialState.COMPLETE, TrialState.FAILED)
            for trial in trials
        ),
    )


def failure_kind(trial: Trial) -> str:
    """The kind of a failed trial, ``unknown`` where none was recorded."""
    kind = trial.evaluation.failure_kind if trial.evaluation else None
    return kind.value if kind else "unknown"


def broken_constraints(trial: Trial) -> dict[str, float]:
    """The constraints that a measured trial breaks, with their values."""
    if trial.evaluation is None:
        return {}
    return {name: value for name, value in trial.evaluation.constraints.items() if value > 0}


def _hypervolume(
    trials: Sequence[Trial],
    candidates: Sequence[Trial],
    metrics: Sequence[Metric],
    constraints: Sequence[str],
) -> float:
    """`study_hypervolume`, without ranking ten thousand trials again where that can be helped."""
    if any(trial.slot is None for trial in trials):
        return study_hypervolume(trials, metrics, constraints=constraints)
    reference = reference_of(sorted(candidates, key=lambda trial: trial.slot or 0), metrics)
    return 0.0 if reference is None else hypervolume(losses_of(candidates, metrics), reference)
