"""What ``--json`` prints; these shapes are kept stable.

All values are in SI units; a metric's unit is in ``metrics`` of the document, and nothing is
rounded. Times are ISO 8601 in UTC. What does not apply is null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from autotune.between import differences
from autotune.evaluation import Evaluation
from autotune.explain import Change
from autotune.metric import Metric
from autotune.report.findings import Counts, Findings
from autotune.report.sentences import headlines, speed_up_percent, values_of
from autotune.trial import Trial


def metrics_shape(metrics: Sequence[Metric]) -> list[dict[str, str]]:
    """``[{"name", "unit", "direction", "label"}, …]``."""
    return [asdict(metric) for metric in metrics]


def evaluation_shape(evaluation: Evaluation | None) -> dict[str, Any]:
    """What was measured.

    ``{"status", "feasible", "failure_kind", "reason", "metrics": {NAME: NUMBER}, "constraints":
    {NAME: NUMBER}, "breakdown": {TERM: SECONDS}, "cost_s"}``; status is null while running.
    """
    if evaluation is None:
        return {
            "status": None,
            "feasible": False,
            "failure_kind": None,
            "reason": "",
            "metrics": {},
            "constraints": {},
            "breakdown": {},
            "cost_s": None,
        }
    return {
        "status": evaluation.status.value,
        "feasible": evaluation.feasible,
        "failure_kind": evaluation.failure_kind.value if evaluation.failure_kind else None,
        "reason": evaluation.reason,
        "metrics": dict(evaluation.metrics),
        "constraints": dict(evaluation.constraints),
        "breakdown": dict(evaluation.breakdown),
        "cost_s": evaluation.cost_s,
    }


def trial_shape(trial: Trial) -> dict[str, Any]:
    """A trial: its place, its config and `evaluation_shape`.

    ``{"number", "slot", "attempt", "state", "origin", "label", "seed", "started", "finished",
    "config": {PARAMETER: VALUE}, …evaluation_shape}``.
    """
    return {
        "number": trial.number,
        "slot": trial.slot,
        "attempt": trial.attempt,
        "state": trial.state.value,
        "origin": trial.origin.value,
        "label": trial.label,
        "seed": trial.seed,
        "started": trial.started.isoformat() if trial.started else None,
        "finished": trial.finished.isoformat() if trial.finished else None,
        "config": dict(trial.config),
        **evaluation_shape(trial.evaluation),
    }


def optional_trial_shape(trial: Trial | None) -> dict[str, Any] | None:
    """`trial_shape`, or null."""
    return trial_shape(trial) if trial else None


def counts_shape(counts: Counts) -> dict[str, Any]:
    """``{"measured", "feasible", "infeasible", "failed", "failed_by_kind": {KIND: N}, …}``."""
    return {**asdict(counts), "failed_by_kind": dict(counts.failed_by_kind)}


def speed_up(trial: Trial | None, baseline: Trial | None, metric: Metric) -> float | None:
    """How much more gets done than with the baseline, in percent.

    It is old / new - 1 for what is minimised: a step that takes half the time is 100 % faster.
    Null without a usable baseline.
    """
    if trial is None or baseline is None or not baseline.feasible:
        return None
    return speed_up_percent(values_of(trial)[metric.name], values_of(baseline)[metric.name], metric)


def change_shape(change: Change) -> dict[str, Any]:
    """What one change is worth.

    ``{"knobs": [{"name", "before", "after"}], "without": {METRIC: NUMBER}, "effects": {METRIC:
    NUMBER}, "broken": [CONSTRAINT], "reason"}``; effects are with the change minus without it.
    """
    return {
        "knobs": [asdict(knob) for knob in change.knobs],
        "without": dict(change.without),
        "effects": dict(change.effects),
        "broken": list(change.broken),
        "reason": change.reason,
    }


def standing_shape(findings: Findings) -> dict[str, Any]:
    """What a study has found.

    ``{"objective", "trials", "feasible", "infeasible", "failed", "failed_by_kind", "best",
    "baseline", "speed_up_percent", "hypervolume", "headlines": [TEXT], "metrics"}``: ``trials``
    are the measured slots of the budget, ``best`` and ``baseline`` are `trial_shape` or null.
    """
    counts = findings.counts
    return {
        "objective": findings.backend,
        "trials": counts.measured,
        "feasible": counts.feasible,
        "infeasible": counts.infeasible,
        "failed": counts.failed,
        "failed_by_kind": dict(counts.failed_by_kind),
        "best": optional_trial_shape(findings.best),
        "baseline": optional_trial_shape(findings.baseline),
        "speed_up_percent": speed_up(findings.best, findings.baseline, findings.metrics[0]),
        "hypervolume": findings.hypervolume,
        "headlines": headlines(findings),
        "metrics": metrics_shape(findings.metrics),
    }


def comparison_shape(
    names: tuple[str, str],
    configs: tuple[Mapping[str, Any], Mapping[str, Any]],
    evaluations: tuple[Evaluation, Evaluation],
    metrics: Sequence[Metric],
) -> dict[str, Any]:
    """Two configs side by side.

    ``{"a": {"name", "config", …evaluation_shape}, "b": …, "changed": [{"name", "before",
    "after"}], "speed_up_percent", "metrics"}``; before is a, after is b, and the speed-up is
    that of b over a.
    """
    first, second = evaluations
    lead = metrics[0]
    both = first.ok and second.ok
    sides = [
        {"name": name, "config": dict(config), **evaluation_shape(evaluation)}
        for name, config, evaluation in zip(names, configs, evaluations, strict=True)
    ]
    return {
        "a": sides[0],
        "b": sides[1],
        "changed": [asdict(change) for change in differences(configs[1], configs[0])],
        "speed_up_percent": (
            speed_up_percent(second.metrics[lead.name], first.metrics[lead.name], lead)
            if both
            else None
        ),
        "metrics": metrics_shape(metrics),
    }
