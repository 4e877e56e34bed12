"""What a changed spec means for trials that were measured under the old one."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from optuna.distributions import BaseDistribution, distribution_to_json
from sqlalchemy import Connection

from autotune.jsonable import canonical_json, to_jsonable
from autotune.metric import Metric
from autotune.objective import Objective
from autotune.space import SearchSpace
from autotune.storage import StudyRow, TrialRow
from autotune.storage.reader import read_trials
from autotune.storage.rows import NewTrial
from autotune.study.packing import StudyRecord, pack_config, state_of, unpack_config, unpack_study
from autotune.study.spec import StudySpec, optimised_metrics
from autotune.trial import Origin, TrialState

_logger = logging.getLogger(__name__)

_LONGEST_VALUE = 60


def differences(row: StudyRow, spec: StudySpec, objective: Objective) -> list[str]:
    """What distinguishes a stored study from a spec, one line each."""
    old = unpack_study(row)
    lines = SearchSpace.from_json(old.space).difference(spec.space)
    lines += _metric_lines(old.metrics, optimised_metrics(spec, objective))
    if list(old.constraints) != list(objective.constraints):
        lines.append(
            f"constraints: were {list(old.constraints)}, are {list(objective.constraints)}"
        )
    lines += [
        f"design point: {line}"
        for line in _value_lines("", old.design_point.content, spec.design_point.content)
    ]
    if old.objective_version != objective.version:
        lines.append(
            f"objective {objective.name}: was version {old.objective_version}, is "
            f"{objective.version}"
        )
    return lines


def _metric_lines(old: Sequence[Metric], new: Sequence[Metric]) -> list[str]:
    before, after = ([f"{m.name} ({m.direction}, {m.unit})" for m in each] for each in (old, new))
    return [f"metrics: were {', '.join(before)}, are {', '.join(after)}"] if before != after else []


def _value_lines(path: str, old: Any, new: Any) -> Iterator[str]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in sorted(old.keys() | new.keys()):
            here = f"{path}.{name}" if path else name
            if name not in old:
                yield f"{here}: added ({_short(new[name])})"
            elif name not in new:
                yield f"{here}: removed (was {_short(old[name])})"
            else:
                yield from _value_lines(here, old[name], new[name])
    elif canonical_json(old) != canonical_json(new):
        yield f"{path}: was {_short(old)}, is {_short(new)}"


def _short(value: Any) -> str:
    text = canonical_json(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def adopted_trials(
    connection: Connection, row: StudyRow, spec: StudySpec, objective: Objective
) -> tuple[NewTrial, ...]:
    """The trials of a stored study that a successor starts with.

    They are those that were measured by the same backend at the same design point, gave every
    metric and constraint of the new study, and lie in its space; and failed ones, which teach.

    Args:
        connection: To the storage.
        row: The older study.
        spec: The new one.
        objective: The new one's.
    """
    old = unpack_study(row)
    if not _comparable(old, spec, objective):
        _logger.warning(
            "no trial of %s is taken over: it was measured by another version of the objective "
            "or at another design point, so its numbers do not compare",
            old.storage_name,
        )
        return ()
    adopter = _Adopter(old, spec, objective)
    adopted = [adopter.adopt(trial) for trial in read_trials(connection, old.study_id)]
    return tuple(trial for trial in adopted if trial is not None)


def _comparable(old: StudyRecord, spec: StudySpec, objective: Objective) -> bool:
    return (
        old.objective_version == objective.version
        and old.design_point.fingerprint == spec.design_point.fingerprint
    )


class _Adopter:
    """Brings trials of one study into another one's space."""

    def __init__(self, old: StudyRecord, spec: StudySpec, objective: Objective) -> None:
        self._old = old
        self._old_space = SearchSpace.from_json(old.space)
        self._space = spec.space
        self._metrics = spec.metrics
        self._constraints = objective.constraints
        self._distributions: dict[str, BaseDistribution] = spec.space.optuna_distributions()
        self._texts = {name: distribution_to_json(d) for name, d in self._distributions.items()}

    def adopt(self, row: TrialRow) -> NewTrial | None:
        state = state_of(row)
        counted = row.packed["slot"] is not None or row.packed["origin"] == Origin.IMPORTED
        if state not in (TrialState.COMPLETE, TrialState.FAILED) or not counted:
            return None
        result = row.packed["evaluation"]
        complete = state is TrialState.COMPLETE
        if complete and not self._has_everything(result):
            return None
        config = self._space.adopt(unpack_config(row.packed["config"]), old=self._old_space)
        if config is None:
            return None
        params = self._space.to_optuna(config)
        return NewTrial(
            state="COMPLETE" if complete else "FAIL",
            params={
                name: float(self._distributions[name].to_internal_repr(value))
                for name, value in params.items()
            },
            distributions=self._texts,
            packed=self._packed(row, config),
            values=tuple(result["metrics"][name] for name in self._metrics) if complete else (),
            constraints=tuple(result["constraints"][name] for name in self._constraints)
            if complete
            else None,
            started=row.started,
            finished=row.finished,
        )

    def _has_everything(self, result: Mapping[str, Any]) -> bool:
        return all(name in result["metrics"] for name in self._metrics) and all(
            name in result["constraints"] for name in self._constraints
        )

    def _packed(self, row: TrialRow, config: Mapping[str, Any]) -> dict[str, Any]:
        source = {"study": self._old.storage_name, "number": row.number}
        earlier = row.packed["notes"].get("imported_from")
        return {
            **row.packed,
            "slot": None,
            "attempt": 1,
            "origin": Origin.IMPORTED.value,
            "label": row.packed["label"] if earlier else self._old.storage_name,
            "config": pack_config(config),
            "notes": to_jsonable({**row.packed["notes"], "imported_from": earlier or source}),
            "sampler_state": {},
            "queue_id": None,
        }
