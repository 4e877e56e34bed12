"""What a study is: the definition a user writes, and its identity."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from autotune import plugins
from autotune.design_point import DesignPoint
from autotune.errors import InvalidInput, Problem, UnknownName, Unsupported
from autotune.jsonable import fingerprint
from autotune.metric import Metric
from autotune.objective import Config, Objective, ObjectiveFactory
from autotune.samplers import check_sampler
from autotune.space import SearchSpace

_NAME = re.compile(r"[^@~\s](?:[^@~\n]*[^@~\s])?")
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySpec:
    """The definition of a study; everything a worker needs to take part in it.

    Attributes:
        name: Unique in a storage together with the objective's name; without ``@`` and ``~``.
        space: What may be tuned.
        objective: What measures: the name of an installed backend, or a factory.
        metrics: Names of the metrics that are optimised, the most important one first; the
            objective's others are recorded too, and all its constraints apply.
        design_point: The scenario the objective is made for.
        baselines: Configs that run today, by name; measured first. The first one is what results
            are compared with unless another is asked for.
        sampler: See `autotune.samplers.SAMPLER_NAMES`.
        seed: Decides all proposals, together with the slot.
        n_trials: Budget: how many configs are measured in all, failures included.
        n_startup_trials: Draws before the sampler proposes: uniform ones and, where there are
            baselines, in every second slot one that differs from a baseline in a few parameters.
        tags: For finding the study again.
        description: One line for lists and reports.

    Raises:
        InvalidInput: With everything wrong with it.
    """

    name: str
    space: SearchSpace
    objective: str | ObjectiveFactory
    metrics: Sequence[str]
    design_point: DesignPoint = field(default_factory=lambda: DesignPoint(name="default"))
    baselines: Mapping[str, Config] = field(default_factory=dict)
    sampler: str = "tpe"
    seed: int = 0
    n_trials: int = 100
    n_startup_trials: int = 10
    tags: Sequence[str] = ()
    description: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.metrics, str):
            object.__setattr__(self, "metrics", (self.metrics,))
        object.__setattr__(self, "metrics", tuple(self.metrics))
        object.__setattr__(self, "tags", tuple(self.tags))
        problems = [*self._problems(), *self._baseline_problems()]
        if problems:
            raise InvalidInput(f"study {self.name!r}", problems)
        checked = {name: self.space.check(config) for name, config in self.baselines.items()}
        object.__setattr__(self, "baselines", checked)

    def make_objective(self) -> Objective:
        """Make the backend for the design point.

        Raises:
            UnknownName: If no installed backend has the name.
            Unsupported: If the backend does not measure a metric of the study.
        """
        factory: Callable[[DesignPoint], Objective] = (
            plugins.load("autotune.objectives", self.objective)
            if isinstance(self.objective, str)
            else self.objective
        )
        objective = factory(self.design_point)
        known = {metric.name for metric in objective.metrics}
        if missing := [name for name in self.metrics if name not in known]:
            raise Unsupported(
                f"study {self.name!r} optimises {', '.join(missing)}, which the objective "
                f"{objective.name!r} does not measure; it measures {', '.join(sorted(known))}"
            )
        return objective

    @property
    def fingerprint(self) -> str:
        """Identity of what is measured; makes the objective to ask for its name and version."""
        return fingerprint(identity(self, self.make_objective()))

    @property
    def storage_name(self) -> str:
        """The study's name in a storage, where each objective has a study of its own."""
        return storage_name(self, self.make_objective())

    def _problems(self) -> list[Problem]:
        rules = {
            "name": (
                len(self.name) <= _LONGEST_NAME and _NAME.fullmatch(self.name) is not None,
                f"must be 1 to {_LONGEST_NAME} characters without '@' and '~', got {self.name!r}",
            ),
            "metrics": (
                len(self.metrics) > 0 and len(set(self.metrics)) == len(self.metrics),
                f"must be at least one name and none twice, got {list(self.metrics)}",
            ),
            "seed": (_is_count(self.seed), f"must be an int >= 0, got {self.seed!r}"),
            "n_trials": (_is_count(self.n_trials), f"must be an int >= 0, got {self.n_trials!r}"),
            "n_startup_trials": (
                _is_count(self.n_startup_trials),
                f"must be an int >= 0, got {self.n_startup_trials!r}",
            ),
        }
        found = [
            Problem(path=path, message=text) for path, (holds, text) in rules.items() if not holds
        ]
        try:
            check_sampler(self.sampler)
        except UnknownName as error:
            found.append(Problem(path="sampler", message=str(error)))
        return found

    def _baseline_problems(self) -> list[Problem]:
        return [
            Problem(path=f"baselines.{name}.{problem.path}", message=problem.message)
            for name, config in self.baselines.items()
            for problem in self.space.explain(config)
        ]


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def optimised_metrics(spec: StudySpec, objective: Objective) -> tuple[Metric, ...]:
    """The metrics that a study optimises, in its order."""
    by_name = {metric.name: metric for metric in objective.metrics}
    return tuple(by_name[name] for name in spec.metrics)


def storage_name(spec: StudySpec, objective: Objective) -> str:
    """The name a study is stored under."""
    return f"{spec.name}@{objective.name}"


def identity(spec: StudySpec, objective: Objective) -> dict[str, Any]:
    """Everything that decides whether two measurements belong into one study."""
    return {
        "space": spec.space.fingerprint,
        "metrics": [
            [metric.name, metric.unit, metric.direction]
            for metric in optimised_metrics(spec, objective)
        ],
        "constraints": list(objective.constraints),
        "design_point": spec.design_point.fingerprint,
        "objective": [objective.name, objective.version],
    }
