"""The nearest config that a program can express."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from autotune import Config, DesignPoint, InvalidInput, Predicate, SearchSpace
from objectives.exporters.refusal import Inexpressible, Refusal

Exporter = Callable[[DesignPoint, Config], Mapping[str, str]]


class MovingExporter(Protocol):
    """An exporter that also says which config it could express instead."""

    nearest: Callable[..., dict[str, Any]]
    """`nearest_expressible` of this exporter; `autotune export --nearest` calls it."""

    def __call__(self, design_point: DesignPoint, config: Config) -> Mapping[str, str]:
        """Give texts by file name."""
        ...


def with_nearest(export: Exporter) -> MovingExporter:
    """Give an exporter its attribute ``nearest``; a decorator."""
    moving = cast(MovingExporter, export)
    moving.nearest = partial(nearest_expressible, export)
    return moving


def nearest_expressible(
    export: Exporter, design_point: DesignPoint, config: Config, *, space: SearchSpace
) -> dict[str, Any]:
    """Move a config as little as possible until an exporter takes it.

    What the exporter refuses becomes a rule of the space, and the config is projected onto what
    is left. The result is another config: measure it.

    Args:
        export: An exporter.
        design_point: What the config is for.
        config: A valid config of the space.
        space: Where to look; discrete in the knobs that are refused.

    Raises:
        Inexpressible: If the exporter takes no config of the space.
        Unsupported: If the exporter does not take the model.
    """
    moved = dict(config)
    while True:
        try:
            export(design_point, moved)
        except Inexpressible as error:
            try:
                space = _without(space, moved, error)
            except InvalidInput:
                raise error from None
        else:
            return moved
        moved = space.project(config)


def _without(space: SearchSpace, config: Config, error: Inexpressible) -> SearchSpace:
    rules = [
        _rule(space, config, refusal, number)
        for number, refusal in enumerate(error.refusals, start=len(space.constraints))
    ]
    return SearchSpace(
        space.parameters,
        constraints=(*space.constraints, *rules),
        conditions=space.conditions,
        compounds=space.compounds,
    )


def _rule(space: SearchSpace, config: Config, refusal: Refusal, number: int) -> Predicate:
    """Forbid what is refused: one value or all but some, where others are as they are."""
    knob, refused, expressible = refusal.knob, config[refusal.knob], refusal.expressible
    where: dict[str, Sequence[Any]] = {name: (config[name],) for name in refusal.given}
    condition = next((each for each in space.conditions if each.parameter == knob), None)
    # A value that is refused while it does not matter is refused everywhere.
    if condition is not None and _matches(condition.active_when, config):
        where = {**condition.active_when, **where}

    def holds(**columns: NDArray[Any]) -> NDArray[np.bool_]:
        values = columns[knob]
        allowed = np.isin(values, expressible) if expressible else values != refused
        applies = np.ones(len(values), dtype=np.bool_)
        for name, wanted in where.items():
            applies &= np.isin(columns[name], wanted)
        return np.asarray(allowed | ~applies)

    return Predicate(
        name=f"expressible {knob} {number}",
        reads=(knob, *where),
        holds=holds,
        description="what the exporter takes",
    )


def _matches(wanted: Mapping[str, Sequence[Any]], config: Config) -> bool:
    return all(config[name] in values for name, values in wanted.items())
