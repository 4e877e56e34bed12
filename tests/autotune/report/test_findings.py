from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from autotune import Evaluation, FailureKind, Metric, Origin, Trial, TrialState
from autotune.report.findings import broken_constraints, count, find

Make = Callable[..., Trial]


def failure(kind: FailureKind) -> Evaluation:
    return Evaluation.failure(kind, "why")


def test_trials_are_counted_by_what_became_of_them(make: Make, today: Trial) -> None:
    trials = [
        today,
        make(1),
        make(2, over=5.0),
        make(3, evaluation=failure(FailureKind.OOM)),
        make(4, evaluation=failure(FailureKind.OOM)),
        make(5, evaluation=failure(FailureKind.CRASH)),
        replace(make(6), state=TrialState.RUNNING, evaluation=None),
        replace(make(7), state=TrialState.VOID, evaluation=None, slot=6),
        replace(make(8), state=TrialState.PRUNED, evaluation=None, slot=None),
        make(9, slot=None, origin=Origin.IMPORTED),
    ]
    counts = count(trials)
    assert counts.measured == 6
    assert counts.feasible == 2
    assert counts.infeasible == 1
    assert counts.failed == 3
    assert counts.failed_by_kind == {"crash": 1, "oom": 2}
    assert (counts.running, counts.void, counts.pruned, counts.outside) == (1, 1, 1, 1)


def test_the_first_baseline_is_compared_with(
    make: Make, today: Trial, metrics: Sequence[Metric]
) -> None:
    other = make(1, origin=Origin.BASELINE, label="earlier")
    assert find([today, other], metrics, study="s").baseline == today
    given = find([today, other], metrics, study="s", baselines=[other, today])
    assert given.baseline == other


def test_best_and_front_leave_infeasible_trials_out(
    make: Make, today: Trial, metrics: Sequence[Metric]
) -> None:
    trials = [today, make(1, 1.0, 5e9), make(2, 0.1, 1e9, over=1.0), make(3, 1.5, 2e9)]
    findings = find(trials, metrics, study="s", constraints=["memory_over_bytes"])
    assert findings.best == trials[1]
    assert findings.best_by(metrics[1]) == trials[3]
    assert [trial.number for trial in findings.front] == [1, 3]
    assert findings.hypervolume > 0


def test_a_trial_without_its_constraint_value_is_never_best(
    make: Make, metrics: Sequence[Metric]
) -> None:
    bare = make(1, evaluation=Evaluation(metrics={m.name: 0.1 for m in metrics}))
    findings = find([bare], metrics, study="s", constraints=["memory_over_bytes"])
    assert findings.best is None
    assert findings.front == ()


def test_broken_constraints_have_values(make: Make) -> None:
    assert broken_constraints(make(1, over=3.0)) == {"memory_over_bytes": 3.0}
    assert broken_constraints(make(1)) == {}
