"""How a metric is drawn: prefix, unit, and linear or logarithmic."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.metric import Metric
from autotune.quantity import shown_unit

_LOG_FROM_RATIO = 10.0
_FOCUS = 0.75
_ROOM = 0.25
_MARGIN = 0.06


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """How a metric is drawn.

    Attributes:
        metric: What is drawn.
        factor: Multiplies values in the metric's unit.
        unit: The unit after that.
        shown: Lowest and highest value at first, after the factor; None for all there are.
        ticks: Where a logarithmic axis is labelled, after the factor; none for a linear axis.
    """

    metric: Metric
    factor: float
    unit: str
    shown: tuple[float, float] | None = None
    ticks: tuple[float, ...] = ()

    @property
    def title(self) -> str:
        """Label and unit."""
        name = text(self.metric.title)
        return f"{name} ({text(self.unit)})" if self.unit else name

    def layout(self) -> dict[str, Any]:
        """The axis as Plotly takes it."""
        layout: dict[str, Any] = {"title": {"text": self.title}}
        if self.ticks:
            labels = [f"{tick:g}" for tick in self.ticks]
            layout |= {"type": "log", "tickvals": list(self.ticks), "ticktext": labels}
        if self.shown is not None:
            low, high = np.log10(self.shown) if self.ticks else self.shown
            margin = _MARGIN * (high - low)
            layout["range"] = [low - margin, high + margin]
        return layout

    def hides(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which values, in the metric's unit, lie outside of what is shown at first."""
        if self.shown is None:
            return np.zeros(len(values), dtype=np.bool_)
        low, high = self.shown
        outside: NDArray[np.bool_] = (values * self.factor < low) | (values * self.factor > high)
        return outside


def axis_of(
    metric: Metric, values: NDArray[np.float64], anchors: NDArray[np.float64] | None = None
) -> Axis:
    """Choose prefix, scale and part of the axis so that what matters can be read off.

    Args:
        metric: What is drawn.
        values: All that is drawn; a few that are far worse than most do not set the scale.
        anchors: Those that must be seen.
    """
    if not len(values):
        return Axis(metric=metric, factor=1.0, unit=metric.unit)
    losses = metric.as_loss(values)
    usual = values[losses <= np.quantile(losses, _FOCUS)]
    focus = usual if anchors is None else np.concatenate([usual, anchors])
    is_log = focus.min() > 0 and focus.max() > _LOG_FROM_RATIO * focus.min()
    near = _near(values, focus, is_log=is_log and values.min() > 0)
    everything = np.concatenate([values[near], focus])
    low, high = float(everything.min()), float(everything.max())
    # Over many decades the middle decides, so that both ends stay readable.
    typical = float(np.median(focus)) if is_log else max(abs(low), abs(high))
    factor, unit = shown_unit(typical, metric.unit)
    return Axis(
        metric=metric,
        factor=factor,
        unit=unit,
        shown=None if near.all() else (low * factor, high * factor),
        ticks=_ticks(low * factor, high * factor) if is_log else (),
    )


def _near(
    values: NDArray[np.float64], focus: NDArray[np.float64], *, is_log: bool
) -> NDArray[np.bool_]:
    """Which values are not far outside of those that matter."""
    if is_log:
        values, focus = np.log10(values), np.log10(focus)
    room = _ROOM * np.ptp(focus)
    inside: NDArray[np.bool_] = (values >= focus.min() - room) & (values <= focus.max() + room)
    return inside


def _ticks(low: float, high: float) -> tuple[float, ...]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)))
    steps = (1, 2, 5) if len(decades) <= 3 else (1,)
    return tuple(step * 10.0**decade for decade in [*decades, decades.stop] for step in steps)


def text(value: object) -> str:
    """A text that Plotly shows as it is: it would read tags and entities in it."""
    return html.escape(str(value), quote=False)
