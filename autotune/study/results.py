"""Tables and selections of a study's trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from autotune import pareto
from autotune.errors import UnknownName
from autotune.objective import Config
from autotune.study.packing import StudyRecord, config_key, pack_config
from autotune.trial import Trial, TrialState

if TYPE_CHECKING:
    import pandas as pd

_ORDER_WITHOUT_SLOT = float("inf")


def in_slot_order(trials: Sequence[Trial]) -> list[Trial]:
    """Slots first, in order, the counting attempt last within a slot; then what has no slot."""
    return sorted(
        trials,
        key=lambda trial: (
            _ORDER_WITHOUT_SLOT if trial.slot is None else trial.slot,
            trial.attempt,
            trial.number,
        ),
    )


def visible(trials: Sequence[Trial]) -> list[Trial]:
    """In the order of slots, without claims that were given up."""
    return in_slot_order([trial for trial in trials if trial.state is not TrialState.VOID])


def find_baseline(
    trials: Sequence[Trial], baselines: Mapping[str, Config], name: str | None
) -> Trial | None:
    """The trial that measured a baseline, whichever way its config came up.

    Args:
        trials: Of one study.
        baselines: The study's, in order.
        name: The first one when not given.

    Returns:
        None when it was not measured (yet), or when there is no baseline.

    Raises:
        UnknownName: If the study has no baseline of the name.
    """
    if name is not None and name not in baselines:
        raise UnknownName("baseline", name, baselines)
    if not baselines:
        return None
    key = config_key(pack_config(baselines[name or next(iter(baselines))]))
    found = [trial for trial in trials if config_key(pack_config(trial.config)) == key]
    complete = [trial for trial in found if trial.state is TrialState.COMPLETE]
    return next(iter(in_slot_order(complete) or in_slot_order(found)), None)


def find_best(trials: Sequence[Trial], record: StudyRecord, metric: str | None) -> Trial | None:
    """The feasible trial with the best value of a metric.

    Args:
        trials: Of one study.
        record: The study.
        metric: Any metric of the objective; the study's first one when not given.

    Returns:
        None when nothing is feasible.

    Raises:
        UnknownName: If the objective has no such metric.
    """
    wanted = metric or record.metrics[0].name
    known = {each.name: each for each in record.recorded}
    if wanted not in known:
        raise UnknownName("metric", wanted, known)
    return pareto.best(trials, known[wanted], constraints=record.constraints)


def to_frame(trials: Sequence[Trial]) -> pd.DataFrame:
    """One row per trial: how it was chosen, its config, and what was measured.

    Parameters, metrics and constraints have their own names as columns; a name that two of them
    share is preceded by its kind and a dot.
    """
    import pandas as pd

    rows = [_row(trial) for trial in trials]
    frame = pd.DataFrame(rows)
    return frame.rename(columns=_short_names(list(frame.columns)))


def _row(trial: Trial) -> dict[tuple[str, str], Any]:
    result = trial.evaluation
    row: dict[tuple[str, str], Any] = {
        ("trial", "number"): trial.number,
        ("trial", "slot"): trial.slot,
        ("trial", "state"): trial.state.value,
        ("trial", "origin"): trial.origin.value,
        ("trial", "label"): trial.label,
        ("trial", "feasible"): trial.feasible,
    }
    row |= {("parameter", name): value for name, value in trial.config.items()}
    if result is not None:
        row |= {("metric", name): value for name, value in result.metrics.items()}
        row |= {("constraint", name): value for name, value in result.constraints.items()}
        row[("trial", "cost_s")] = result.cost_s
        row[("trial", "failure_kind")] = result.failure_kind and result.failure_kind.value
        row[("trial", "reason")] = result.reason
    row[("trial", "started")] = trial.started
    row[("trial", "finished")] = trial.finished
    return row


def _short_names(columns: Sequence[Any]) -> dict[Any, str]:
    names = [name for _, name in columns]
    return {
        (kind, name): name if names.count(name) == 1 or kind == "trial" else f"{kind}.{name}"
        for kind, name in columns
    }
