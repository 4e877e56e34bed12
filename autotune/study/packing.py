"""Studies and trials as the JSON that is stored of them, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from autotune.design_point import DesignPoint
from autotune.errors import InvalidInput
from autotune.evaluation import Evaluation, FailureKind, Status
from autotune.jsonable import fingerprint, to_jsonable
from autotune.metric import Metric
from autotune.objective import Config, Objective
from autotune.samplers import population_for
from autotune.storage.rows import StudyRow, TrialRow
from autotune.study.provenance import versions
from autotune.study.spec import StudySpec, identity
from autotune.trial import Origin, Trial, TrialState

FORMAT = 1
"""Version of the packed attributes; raised when an older reader would misunderstand them."""

_LONGEST_TEXT = 8000


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRecord:
    """What a storage knows of a study, without the code that defined it.

    Attributes:
        study_id: Optuna's number of it in the storage.
        storage_name: Its name in the storage: ``NAME@OBJECTIVE``, with ``~2`` and so on for
            successors.
        name: As in the spec, and so the following.
        description: See `StudySpec`.
        tags: See `StudySpec`.
        fingerprint: Identity of what is measured.
        metrics: The optimised ones.
        recorded: All metrics of the objective.
        constraints: Names, in the order of Optuna's list.
        design_point: See `StudySpec`.
        objective: The backend's name.
        objective_version: The backend's version.
        deterministic: Whether the backend is.
        baselines: See `StudySpec`.
        sampler: See `StudySpec`.
        seed: See `StudySpec`.
        n_trials: The largest budget anybody asked for.
        n_startup_trials: See `StudySpec`.
        population_size: Of a genetic sampler; fixed when the study is made.
        created: UTC.
        predecessor: Storage name of the study whose trials were taken over; None for most.
        space: For `SearchSpace.from_json`.
    """

    study_id: int
    storage_name: str
    name: str
    description: str
    tags: tuple[str, ...]
    fingerprint: str
    metrics: tuple[Metric, ...]
    recorded: tuple[Metric, ...]
    constraints: tuple[str, ...]
    design_point: DesignPoint
    objective: str
    objective_version: str
    deterministic: bool
    baselines: Mapping[str, Config]
    sampler: str
    seed: int
    n_trials: int
    n_startup_trials: int
    population_size: int
    created: datetime
    predecessor: str | None = None
    space: Mapping[str, Any] = field(repr=False)


def pack_study(
    spec: StudySpec, objective: Objective, *, predecessor: str | None = None
) -> dict[str, Any]:
    """Everything a study is opened with, as stored."""
    packed: dict[str, Any] = to_jsonable(
        {
            "format": FORMAT,
            "name": spec.name,
            "description": spec.description,
            "tags": spec.tags,
            "fingerprint": fingerprint(identity(spec, objective)),
            "optimised": spec.metrics,
            "metrics": [asdict(metric) for metric in objective.metrics],
            "constraints": objective.constraints,
            "design_point": asdict(spec.design_point),
            "objective": objective.name,
            "objective_version": objective.version,
            "deterministic": objective.deterministic,
            "baselines": spec.baselines,
            "sampler": spec.sampler,
            "seed": spec.seed,
            "n_trials": spec.n_trials,
            "n_startup_trials": spec.n_startup_trials,
            "population_size": population_for(spec.n_trials),
            "created": datetime.now(UTC),
            "versions": versions(),
            "predecessor": predecessor,
        },
        "study",
    )
    return {**packed, "space": spec.space.to_json()}


def unpack_study(row: StudyRow) -> StudyRecord:
    """A study as stored, in the types of this package.

    Raises:
        InvalidInput: If a newer version of this package packed it.
    """
    packed = row.packed
    if packed["format"] > FORMAT:
        raise InvalidInput(
            f"study {row.name!r}",
            f"was written in format {packed['format']} and this version reads up to {FORMAT}; "
            "update this program",
        )
    metrics = {metric["name"]: Metric(**metric) for metric in packed["metrics"]}
    return StudyRecord(
        study_id=row.study_id,
        storage_name=row.name,
        name=packed["name"],
        description=packed["description"],
        tags=tuple(packed["tags"]),
        fingerprint=packed["fingerprint"],
        metrics=tuple(metrics[name] for name in packed["optimised"]),
        recorded=tuple(metrics.values()),
        constraints=tuple(packed["constraints"]),
        design_point=DesignPoint(**packed["design_point"]),
        objective=packed["objective"],
        objective_version=packed["objective_version"],
        deterministic=packed["deterministic"],
        baselines={name: unpack_config(each) for name, each in packed["baselines"].items()},
        sampler=packed["sampler"],
        seed=packed["seed"],
        n_trials=packed["n_trials"],
        n_startup_trials=packed["n_startup_trials"],
        population_size=packed["population_size"],
        created=datetime.fromisoformat(packed["created"]),
        predecessor=packed["predecessor"],
        space=packed["space"],
    )


def pack_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config, or notes on one, as JSON values."""
    packed: dict[str, Any] = to_jsonable(config, "config")
    return packed


def unpack_config(data: Mapping[str, Any]) -> dict[str, Any]:
    """A config read from JSON, in the plain values that its space uses: lists are tuples."""
    return {name: _frozen(value) for name, value in data.items()}


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, dict):
        return {key: _frozen(item) for key, item in value.items()}
    return value


def config_key(config: Mapping[str, Any]) -> str:
    """The same text as `SearchSpace.key` gives for a config in plain values."""
    return json.dumps(config, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def pack_evaluation(evaluation: Evaluation) -> dict[str, Any]:
    """A result as stored; what has no JSON form among its attributes is kept as text."""
    return {
        "status": evaluation.status.value,
        "metrics": _numbers(evaluation.metrics),
        "constraints": _numbers(evaluation.constraints),
        "cost_s": float(evaluation.cost_s),
        "failure_kind": evaluation.failure_kind and evaluation.failure_kind.value,
        "reason": _trimmed(evaluation.reason),
        "breakdown": _numbers(evaluation.breakdown),
        "attributes": {
            storable_text(str(k)): storable(v) for k, v in evaluation.attributes.items()
        },
    }


def unpack_evaluation(data: Mapping[str, Any]) -> Evaluation:
    """The inverse of `pack_evaluation`."""
    kind = data["failure_kind"]
    return Evaluation(
        status=Status(data["status"]),
        metrics=data["metrics"],
        constraints=data["constraints"],
        cost_s=data["cost_s"],
        failure_kind=None if kind is None else FailureKind(kind),
        reason=data["reason"],
        breakdown=data["breakdown"],
        attributes=data["attributes"],
    )


def _numbers(group: Mapping[str, float]) -> dict[str, float]:
    return {storable_text(str(name)): float(value) for name, value in group.items()}


def storable(value: Any) -> Any:
    """Any value as JSON; what has no JSON form as a text."""
    try:
        plain = to_jsonable(value)
        if isinstance(plain, str):
            return _trimmed(plain)
        # There and back: what is stored can be read, whatever was in it.
        return json.loads(storable_text(json.dumps(plain, ensure_ascii=False, allow_nan=False)))
    except Exception:  # an attribute is anything at all, and never the reason to lose a result
        return _trimmed(_shown(value))


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except Exception:
        return f"a {type(value).__name__} that has no text"


def _trimmed(text: str) -> str:
    """The end of a long text: that is where a traceback says what happened."""
    text = storable_text(text).replace("\x00", "")
    return text if len(text) <= _LONGEST_TEXT else f"… {text[-_LONGEST_TEXT:]}"


def storable_text(text: str) -> str:
    """A text as every database takes it inside of JSON: without lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")


def to_trial(row: TrialRow) -> Trial:
    """A trial as users see it."""
    packed = row.packed
    evaluation = packed.get("evaluation")
    return Trial(
        number=row.number,
        slot=packed["slot"],
        attempt=packed["attempt"],
        state=state_of(row),
        origin=Origin(packed["origin"]),
        label=packed["label"],
        config=unpack_config(packed["config"]),
        evaluation=None if evaluation is None else unpack_evaluation(evaluation),
        seed=packed["seed"],
        started=row.started,
        finished=row.finished,
        attributes={
            **packed["notes"],
            "provenance": packed["provenance"],
            **({"wall_s": packed["wall_s"]} if "wall_s" in packed else {}),
        },
    )


def state_of(row: TrialRow) -> TrialState:
    """What a trial's state means here; a failure without a result counts nowhere."""
    match row.state:
        case "RUNNING":
            return TrialState.RUNNING
        case "COMPLETE":
            return TrialState.COMPLETE
        case "PRUNED":
            return TrialState.PRUNED
        case "FAIL" if "evaluation" in row.packed:
            return TrialState.FAILED
    return TrialState.VOID
