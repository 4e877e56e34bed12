"""Results in the user's terms: ``27 % faster than today with 3 % less long-link bandwidth``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from autotune.evaluation import Evaluation
from autotune.explain import Change
from autotune.metric import Metric
from autotune.quantity import format_change, format_quantity
from autotune.report.findings import Findings, broken_constraints, failure_kind
from autotune.trial import Trial, TrialState

TOLERANCE = 5e-4
"""Relative difference that counts as none; the same as where `format_change` says unchanged."""


def speed_up_percent(new: float, old: float, metric: Metric) -> float | None:
    """How much more gets done: old / new - 1 of what is minimised, new / old - 1 otherwise.

    Args:
        new: The metric's value now.
        old: Its value before.
        metric: Says which way is better.

    Returns:
        In percent, negative when slower; None where the values have no ratio.
    """
    if new <= 0 or old <= 0:
        return None
    ratio = old / new if metric.direction == "minimize" else new / old
    return 100.0 * (ratio - 1.0)


def values_of(trial: Trial) -> dict[str, float]:
    """The measured metrics of a trial, empty where it failed."""
    return dict(trial.evaluation.metrics) if trial.evaluation else {}


def gain(new: float, old: float, metric: Metric) -> float:
    """How much better a value is, relative to the old one; within `TOLERANCE` it is 0."""
    difference = old - new if metric.direction == "minimize" else new - old
    scale = max(abs(old), abs(new))
    if scale == 0 or abs(difference) < TOLERANCE * scale:
        return 0.0
    return difference / (abs(old) or scale)


def change_phrase(new: float, old: float, metric: Metric) -> str:
    """One metric against its earlier value: ``3 % less long-link bandwidth``, ``the same …``."""
    if gain(new, old, metric) == 0:
        return f"the same {metric.title}"
    change = format_change(new, old, metric)
    return f"{change}{' the' if change.endswith('x') else ''} {metric.title}"


def lead_phrase(new: float, old: float, metric: Metric) -> str:
    """The metric that a sentence opens with: ``27 % faster`` for times, else the change."""
    percent = speed_up_percent(new, old, metric)
    is_time = metric.unit == "s" and metric.direction == "minimize"
    if not is_time or percent is None or gain(new, old, metric) == 0:
        return change_phrase(new, old, metric)
    if percent >= 100:
        return f"{percent / 100 + 1:.3g} times as fast"
    if percent < 0:
        slower = 100.0 * (new / old - 1.0)
        return f"{slower:.3g} % slower" if slower < 100 else f"{new / old:.3g} times as slow"
    return f"{percent:.3g} % faster"


def versus(trial: Trial, baseline: Trial, metrics: Sequence[Metric]) -> str:
    """Compare two measured trials in all metrics, the first metric leading.

    Returns:
        Such as ``27 % faster than today with 3 % less long-link bandwidth``, ``… at the same
        …`` or ``… for 2.1x the …`` where it costs something.
    """
    head, tail = _compared(trial, baseline, metrics)
    name = baseline.label or "the baseline"
    word = "as" if head.startswith("the same") or head.endswith((" fast", " slow")) else "than"
    return f"{head} {word} {name}{tail}"


def in_short(trial: Trial, baseline: Trial, metrics: Sequence[Metric]) -> str:
    """As `versus`, where it is clear what is compared with: ``27 % faster at the same …``."""
    if trial.number == baseline.number:
        return baseline.label or "the baseline"
    return "".join(_compared(trial, baseline, metrics))


def _compared(trial: Trial, baseline: Trial, metrics: Sequence[Metric]) -> tuple[str, str]:
    new, old = values_of(trial), values_of(baseline)
    lead, *others = metrics
    groups: dict[str, list[str]] = {"at": [], "with": [], "for": []}
    for metric in others:
        value = gain(new[metric.name], old[metric.name], metric)
        word = "at" if value == 0 else "with" if value > 0 else "for"
        groups[word].append(change_phrase(new[metric.name], old[metric.name], metric))
    tails = [f" {word} {_and(phrases)}" for word, phrases in groups.items() if phrases]
    return lead_phrase(new[lead.name], old[lead.name], lead), ",".join(tails)


def headlines(findings: Findings) -> list[str]:
    """What a study found, the most useful sentence first.

    It is about the best config that is worse in nothing; one that buys speed with something
    else comes second.
    """
    best, baseline = findings.best, findings.baseline
    if best is None:
        return [nothing_feasible(findings)]
    if baseline is None:
        values = measured(best.evaluation, findings.metrics)
        return [f"The best config has {values} (trial {best.number})."]
    if not baseline.feasible:
        return [
            f"{baseline.label or 'The baseline'} {why_unusable(baseline)}; the best config has "
            f"{measured(best.evaluation, findings.metrics)} (trial {best.number})."
        ]
    chosen = worse_in_nothing(findings)
    trials = [trial for trial in (chosen, best) if trial is not None]
    if len(trials) == 2 and trials[0].number == trials[1].number:
        trials = trials[:1]
    lead = findings.metrics[0]
    sentences = [
        _sentence(trial, baseline, findings.metrics)
        for trial in trials
        if trial is chosen or _gain(trial, baseline, lead) > 0
    ]
    return sentences or [f"Nothing measured so far beats {baseline.label or 'the baseline'}."]


def worse_in_nothing(findings: Findings) -> Trial | None:
    """The trial that beats the baseline without giving anything up.

    Returns:
        Of the front's trials that are no worse in any metric the best in the first metric that
        can be improved; None where there is none, or no usable baseline.
    """
    baseline = findings.baseline
    if baseline is None or not baseline.feasible:
        return None
    candidates = [
        trial
        for trial in findings.front
        if all(_gain(trial, baseline, metric) >= 0 for metric in findings.metrics)
    ]
    for metric in findings.metrics:
        better = [trial for trial in candidates if _gain(trial, baseline, metric) > 0]
        if better:
            return max(better, key=lambda trial: _gain(trial, baseline, metric))
    return None


def nothing_feasible(findings: Findings) -> str:
    """Say that no trial can be used, and the most frequent reason."""
    counts = findings.counts
    if counts.measured == 0:
        return "Nothing has been measured yet."
    reasons: Counter[str] = Counter()
    for trial in findings.trials:
        if trial.state is TrialState.FAILED:
            reasons[f"failed with {failure_kind(trial)}"] += 1
        reasons.update(f"break {name}" for name in broken_constraints(trial))
    most = ", ".join(f"{n} {reason}" for reason, n in reasons.most_common(3))
    return f"None of {counts.measured} measured configs can be used: {most or 'no values'}."


def why_unusable(trial: Trial) -> str:
    """Why a trial is not feasible: ``failed (oom: …)`` or ``breaks memory by 12 GB``."""
    if trial.evaluation is None:
        return f"is {trial.state.value}"
    return why_unusable_evaluation(trial.evaluation)


def why_unusable_evaluation(evaluation: Evaluation) -> str:
    """As `why_unusable`, of what was measured."""
    if not evaluation.ok:
        kind = evaluation.failure_kind.value if evaluation.failure_kind else evaluation.status.value
        reason = (evaluation.reason.splitlines() or [""])[0]
        return f"failed ({kind}: {reason})" if reason else f"failed ({kind})"
    return "breaks " + _and(
        f"{name} by {format_quantity(value, unit_of_name(name))}"
        for name, value in evaluation.constraints.items()
        if value > 0
    )


def unit_of_name(name: str) -> str:
    """The unit that a constraint's name ends in; constraints have no unit of their own."""
    suffixes = {"_bytes_per_s": "byte/s", "_bytes": "byte", "_s": "s", "_w": "W", "_j": "J"}
    return next((unit for suffix, unit in suffixes.items() if name.endswith(suffix)), "")


def measured(evaluation: Evaluation | None, metrics: Sequence[Metric]) -> str:
    """Values in words: ``step time 5.61 s and long-link bandwidth 12.8 Tbit/s``."""
    if evaluation is None or not evaluation.ok:
        return "no values"
    return _and(
        f"{metric.title} {format_quantity(evaluation.metrics[metric.name], metric.unit)}"
        for metric in metrics
        if metric.name in evaluation.metrics
    )


def knobs_phrase(change: Change) -> str:
    """What was changed: ``schedule 1F1B → ZBV, virtual stages 1 → 2``."""
    return ", ".join(
        f"{knob.name} {format_value(knob.before)} → {format_value(knob.after)}"
        for knob in change.knobs
    )


def effect_phrase(change: Change, metrics: Sequence[Metric]) -> str:
    """What a change is worth, ``step time 5.5 s instead of 6 s (8.3 % less)``, and if needed."""
    parts = []
    for metric in metrics:
        if metric.name not in change.effects or not change.affects(metric):
            continue
        without = change.without[metric.name]
        value = without + change.effects[metric.name]
        parts.append(
            f"{metric.title} {format_quantity(value, metric.unit)} instead of "
            f"{format_quantity(without, metric.unit)} ({format_change(value, without, metric)})"
        )
    if change.broken:
        parts.append(f"without it the config breaks {_and(change.broken)}")
    if change.reason:
        parts.append(f"without it the measurement fails: {change.reason.splitlines()[0]}")
    return "; ".join(parts) or "no effect on its own"


def format_value(value: object) -> str:
    """A parameter's value as people write it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def front_in_few(findings: Findings, most: int | None) -> list[Trial]:
    """Some of the front, evenly spread, its ends and `worse_in_nothing` among them.

    Args:
        findings: The study.
        most: How many, one more where `worse_in_nothing` is added; None for all.
    """
    front = findings.front
    if most is None or len(front) <= most:
        return list(front)
    step = (len(front) - 1) / (most - 1)
    shown = {round(i * step) for i in range(most)}
    named = worse_in_nothing(findings)
    return [trial for i, trial in enumerate(front) if i in shown or trial is named]


def term_title(term: str) -> str:
    """A term of a breakdown as words, without its unit."""
    return term.removesuffix("_s").replace("_", " ")


def _sentence(trial: Trial, baseline: Trial, metrics: Sequence[Metric]) -> str:
    text = versus(trial, baseline, metrics)
    values = measured(trial.evaluation, metrics)
    return f"{text[0].upper()}{text[1:]}: {values} (trial {trial.number})."


def _gain(trial: Trial, baseline: Trial, metric: Metric) -> float:
    return gain(values_of(trial)[metric.name], values_of(baseline)[metric.name], metric)


def _and(parts: Iterable[str]) -> str:
    *first, last = list(parts) or [""]
    return f"{', '.join(first)} and {last}" if first else last
