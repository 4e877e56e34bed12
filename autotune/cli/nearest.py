"""Exporting the nearest config that an exporter can express, with what the move costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from rich.text import Text

from autotune.between import differences
from autotune.cli import output, shapes, tables
from autotune.design_point import DesignPoint
from autotune.errors import Unsupported
from autotune.evaluation import Evaluation
from autotune.objective import Config, Objective
from autotune.report.sentences import lead_phrase, why_unusable_evaluation
from autotune.space import SearchSpace
from autotune.study.measuring import measure

_NAME = "nearest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A config to be exported.

    Attributes:
        study: Name of its study.
        trial: What the user called it.
        design_point: What it is for.
        config: The config.
        space: Where others are looked for.
        objective: Makes the backend that measures them, or says why there is none.
    """

    study: str
    trial: str
    design_point: DesignPoint
    config: Config
    space: SearchSpace
    objective: Callable[[], tuple[Objective | None, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The nearest config, and both as measured now.

    Attributes:
        source: The config that was asked for.
        config: The one that can be expressed.
        evaluations: Of both; None where there is no backend.
        objective: The backend, or None.
        why: Why there is none.
    """

    source: Source
    config: Config
    evaluations: tuple[Evaluation, Evaluation] | None
    objective: Objective | None
    why: str

    @property
    def shape(self) -> dict[str, Any]:
        """``{"changed": [{"name", "before", "after"}], "comparison": comparison_shape | null}``."""
        comparison = None
        if self.objective is not None and self.evaluations is not None:
            comparison = shapes.comparison_shape(
                (self.source.trial, _NAME),
                (self.source.config, self.config),
                self.evaluations,
                self.objective.metrics,
            )
        changed = differences(self.config, self.source.config)
        return {"changed": [asdict(change) for change in changed], "comparison": comparison}

    def show(self) -> None:
        """Both beside each other."""
        console = output.results()
        names = (self.source.trial, _NAME)
        if self.objective is None or self.evaluations is None:
            for change in differences(self.config, self.source.config):
                console.print(Text(f"{change.name}: {change.before} → {change.after}"))
            console.print(Text(self.why))
            return
        metrics = self.objective.metrics
        first, second = self.evaluations
        if first.ok and second.ok:
            lead = metrics[0]
            phrase = lead_phrase(second.metrics[lead.name], first.metrics[lead.name], lead)
            console.print(Text(f"{names[1]} against {names[0]}: {phrase}", style="bold"))
        configs = (self.source.config, self.config)
        console.print(tables.comparison_table(names, configs, self.evaluations, metrics))
        if not second.feasible:
            console.print(Text(f"{names[1]} {why_unusable_evaluation(second)}"))


def move(exporter: Any, name: str, source: Source, error: Unsupported) -> Moved:
    """Find the nearest config that an exporter takes, and measure both.

    Args:
        exporter: As loaded. Its attribute ``nearest``, where it has one, is called with
            ``(design_point, config, space=space)`` and gives a config of the space.
        name: How it is called.
        source: What it refuses.
        error: Its refusal.

    Raises:
        Unsupported: If it cannot say what is nearest, or takes no config of the space.
    """
    if not can_move(exporter):
        raise Unsupported(f"{error}\n{name} does not say which config would be nearest") from error
    config = exporter.nearest(source.design_point, source.config, space=source.space)
    objective, why = source.objective()
    evaluations = None
    if objective is not None:
        first, second = (
            measure(objective, each, seed=0).evaluation for each in (source.config, config)
        )
        evaluations = (first, second)
    return Moved(
        source=source, config=config, evaluations=evaluations, objective=objective, why=why
    )


def can_move(exporter: Any) -> bool:
    """Whether an exporter has the optional attribute ``nearest``, see `move`."""
    return callable(getattr(exporter, "nearest", None))
