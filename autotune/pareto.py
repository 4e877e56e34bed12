"""The Pareto front of a study, its best trials and its hypervolume."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import moocore
import numpy as np
from numpy.typing import ArrayLike, NDArray

from autotune.evaluation import Evaluation
from autotune.jsonable import canonical_json
from autotune.metric import Metric
from autotune.objective import Config
from autotune.trial import Trial, TrialState

REFERENCE_TRIALS = 10
"""How many of a study's first feasible trials set its reference point."""


def non_dominated(losses: ArrayLike) -> NDArray[np.bool_]:
    """Mark the rows that no other row beats; of equal rows only the first.

    Args:
        losses: Shape (n, m), smaller is better in every column.

    Returns:
        Shape (n,).
    """
    points = np.asarray(losses, dtype=np.float64)
    if points.size == 0:
        return np.zeros(len(points), dtype=np.bool_)
    mask: NDArray[np.bool_] = np.asarray(moocore.is_nondominated(points), dtype=np.bool_)
    return mask


def hypervolume(losses: ArrayLike, reference: ArrayLike) -> float:
    """Volume that the rows dominate, up to the reference point.

    Args:
        losses: Shape (n, m), smaller is better; rows beyond the reference count only by their
            part inside it, usually not at all.
        reference: Shape (m,).

    References:
        Zitzler and Thiele, IEEE Trans. Evol. Comp. 3(4), 1999; computed by ``moocore``.
    """
    points = np.asarray(losses, dtype=np.float64)
    if points.size == 0:
        return 0.0
    return float(moocore.hypervolume(points, ref=np.asarray(reference, dtype=np.float64)))


def losses_of(trials: Sequence[Trial], metrics: Sequence[Metric]) -> NDArray[np.float64]:
    """The metrics of measured trials as losses: shape (trials, metrics), smaller is better."""
    values = np.array(
        [[_measured(trial).metrics[metric.name] for metric in metrics] for trial in trials],
        dtype=np.float64,
    ).reshape(len(trials), len(metrics))
    for column, metric in enumerate(metrics):
        values[:, column] = metric.as_loss(values[:, column])
    return values


def rankable(
    trials: Sequence[Trial], metrics: Sequence[Metric], *, constraints: Sequence[str] | None = None
) -> list[Trial]:
    """The trials that may be called good: complete, feasible, nothing missing.

    Args:
        trials: Any trials of one study.
        metrics: Each must have been measured.
        constraints: Names that must all have a value; when not given, every name that any of
            the trials has, so that an imported row without its memory figure never counts as
            one that fits.

    Returns:
        One trial per config, in the order given. Of a config measured several times the first
        trial stands for all, with the means of its metrics (see `merge_repeats`).
    """
    needed = _constraint_names(trials) if constraints is None else set(constraints)
    names = [metric.name for metric in metrics]
    complete = [
        trial
        for trial in trials
        if trial.state is TrialState.COMPLETE
        and trial.evaluation is not None
        and needed <= trial.evaluation.constraints.keys()
        and all(name in trial.evaluation.metrics for name in names)
    ]
    return [trial for trial in merge_repeats(complete) if trial.feasible]


def merge_repeats(trials: Sequence[Trial]) -> list[Trial]:
    """Make one trial of all measurements of a config, so that luck does not look like merit.

    Metrics become means; of each constraint the largest value stays, because a config that
    once broke its limit cannot be relied on. The merged trial's attributes have ``repeats``
    and, by metric, ``standard_deviation`` (of the sample).

    Args:
        trials: Measured trials with the same metrics.
    """
    groups: dict[Hashable, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(_identity(trial.config), []).append(trial)
    return [group[0] if len(group) == 1 else _merged(group) for group in groups.values()]


def pareto_front(
    trials: Sequence[Trial], metrics: Sequence[Metric], *, constraints: Sequence[str] | None = None
) -> list[Trial]:
    """The feasible trials that no other feasible trial beats, best in the first metric first.

    Args:
        trials: The trials of one study; those of another backend do not belong here.
        metrics: What is compared.
        constraints: As in `rankable`.

    Returns:
        Trials with equal metrics are kept once, the earliest.
    """
    return front_of(rankable(trials, metrics, constraints=constraints), metrics)


def front_of(candidates: Sequence[Trial], metrics: Sequence[Metric]) -> list[Trial]:
    """As `pareto_front`, of what `rankable` gave."""
    losses = losses_of(candidates, metrics)
    front = np.flatnonzero(non_dominated(losses))
    order = np.lexsort(losses[front].T[::-1])
    return [candidates[i] for i in front[order]]


def best(
    trials: Sequence[Trial], metric: Metric, *, constraints: Sequence[str] | None = None
) -> Trial | None:
    """The feasible trial with the best value of one metric, the earliest of equals.

    Args:
        trials: The trials of one study.
        metric: What is compared.
        constraints: As in `rankable`.

    Returns:
        None when no trial is feasible.
    """
    return best_of(rankable(trials, [metric], constraints=constraints), metric)


def best_of(candidates: Sequence[Trial], metric: Metric) -> Trial | None:
    """As `best`, of what `rankable` gave."""
    if not candidates:
        return None
    return candidates[int(np.argmin(losses_of(candidates, [metric])[:, 0]))]


def reference_point(
    trials: Sequence[Trial], metrics: Sequence[Metric], *, constraints: Sequence[str] | None = None
) -> NDArray[np.float64] | None:
    """Where the hypervolume of a study is measured from, in losses: shape (metrics,).

    It is the worst loss of the study's first `REFERENCE_TRIALS` feasible slots (the baselines
    come first among them), plus a tenth of their range. Later trials do not move it: the
    hypervolume never falls while a study goes on, and a study that was interrupted gets the
    same figure as one that was not. Studies that differ in seed or space have different
    points; give them one point by hand before comparing their hypervolumes.

    Args:
        trials: The trials of one study.
        metrics: What is compared.
        constraints: As in `rankable`.

    Returns:
        None when no trial with a slot is feasible.

    References:
        Ishibuchi et al., "How to specify a reference point in hypervolume calculation for fair
        performance comparison", Evol. Comp. 26(3), 2018: slightly worse than the nadir point.
    """
    slotted = sorted(
        (trial for trial in trials if trial.slot is not None), key=lambda trial: trial.slot or 0
    )
    if constraints is None:
        constraints = sorted(_constraint_names(trials))
    return reference_of(rankable(slotted, metrics, constraints=constraints), metrics)


def reference_of(
    candidates: Sequence[Trial], metrics: Sequence[Metric]
) -> NDArray[np.float64] | None:
    """As `reference_point`, of what `rankable` gave of the slots, in their order."""
    first = candidates[:REFERENCE_TRIALS]
    if not first:
        return None
    losses = losses_of(first, metrics)
    worst = losses.max(axis=0)
    spread = worst - losses.min(axis=0)
    # One trial, or all equal in a metric: a tenth of the value keeps the volume above zero.
    margin: NDArray[np.float64] = 0.1 * np.where(spread > 0, spread, np.abs(worst))
    return np.asarray(worst + np.where(margin > 0, margin, 1.0), dtype=np.float64)


def study_hypervolume(
    trials: Sequence[Trial], metrics: Sequence[Metric], *, constraints: Sequence[str] | None = None
) -> float:
    """Hypervolume of a study's front from its own `reference_point`; 0 when nothing is feasible.

    Its unit is the product of the metrics' units.
    """
    reference = reference_point(trials, metrics, constraints=constraints)
    if reference is None:
        return 0.0
    candidates = rankable(trials, metrics, constraints=constraints)
    return hypervolume(losses_of(candidates, metrics), reference)


def _measured(trial: Trial) -> Evaluation:
    assert trial.evaluation is not None, "only measured trials are ranked"
    return trial.evaluation


def _constraint_names(trials: Sequence[Trial]) -> set[str]:
    return {name for trial in trials if trial.evaluation for name in trial.evaluation.constraints}


def _identity(config: Config) -> Hashable:
    try:
        identity: Hashable = frozenset(config.items())
        hash(identity)
    except TypeError:  # a choice that is a list
        return canonical_json(config)
    return identity


def _merged(group: Sequence[Trial]) -> Trial:
    evaluations = [_measured(trial) for trial in group]
    first = evaluations[0]
    values = {
        name: np.array([each.metrics[name] for each in evaluations]) for name in first.metrics
    }
    evaluation = replace(
        first,
        metrics={name: float(column.mean()) for name, column in values.items()},
        constraints={
            name: max(each.constraints[name] for each in evaluations) for name in first.constraints
        },
    )
    spread = {name: float(column.std(ddof=1)) for name, column in values.items()}
    attributes = {
        **group[0].attributes,
        "repeats": len(group),
        "standard_deviation": spread,
    }
    return replace(group[0], evaluation=evaluation, attributes=attributes)
