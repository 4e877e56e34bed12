"""The nearest config that a program can express: what an exporter refuses is taken back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from autotune import Config, DesignPoint, SearchSpace
from objectives.exporters.job import Inexpressible

Exporter = Callable[[DesignPoint, Config], Mapping[str, str]]


def nearest_expressible(
    export: Exporter,
    design_point: DesignPoint,
    config: Config,
    *,
    space: SearchSpace,
    towards: Config,
) -> dict[str, Any]:
    """Move a config until an exporter takes it.

    The knobs that the exporter refuses get the values of another config; what then breaks a
    rule of the space moves to the nearest valid config or, where that brings refused values
    back, is taken from the other config as well. The result is another config: measure it.

    Args:
        export: An exporter.
        design_point: What the config is for.
        config: A valid config of the space.
        space: Its rules hold for the result.
        towards: A valid config that the exporter takes, such as the baseline.

    Raises:
        Inexpressible: If the exporter does not take ``towards``.
        Unsupported: If the exporter does not take the model.
    """
    taken: set[str] = set()
    moved = dict(config)
    while True:
        try:
            export(design_point, moved)
        except Inexpressible as error:
            if moved == dict(towards):
                raise
            # Growing with every round, so that the end is `towards` itself.
            taken |= (set(error.reasons) - taken) or _tied(space, config, towards, taken)
        else:
            return moved
        moved = space.project(_mixed(config, towards, taken))


def _mixed(config: Config, towards: Config, taken: Iterable[str]) -> dict[str, Any]:
    return {**config, **{knob: towards[knob] for knob in taken if knob in towards}}


def _tied(space: SearchSpace, config: Config, towards: Config, taken: set[str]) -> set[str]:
    """What the broken rules read beyond the knobs taken; everything where no rule is broken."""
    reads: dict[str, set[str]] = {rule.name: set(rule.reads) for rule in space.constraints}
    reads |= {
        f"condition on {each.parameter}": {each.parameter, *each.active_when}
        for each in space.conditions
    }
    reads |= {each.name: set(each.parameters) for each in space.compounds}
    broken = [problem.path for problem in space.explain(_mixed(config, towards, taken))]
    tied = {knob for path in broken for knob in reads.get(path, ())} - taken
    return tied or set(towards)
