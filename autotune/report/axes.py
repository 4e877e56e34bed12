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

_LOG_FROM_RATIO = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """How a metric is drawn.

    Attributes:
        metric: What is drawn.
        factor: Multiplies values in the metric's unit.
        unit: The unit after that.
        ticks: Where a logarithmic axis is labelled, after the factor; none for a linear axis.
    """

    metric: Metric
    factor: float
    unit: str
    ticks: tuple[float, ...] = ()

    @property
    def title(self) -> str:
        """Label and unit."""
        name = text(self.metric.title)
        return f"{name} ({text(self.unit)})" if self.unit else name

    def layout(self) -> dict[str, Any]:
        """The axis as Plotly takes it."""
        title = {"title": {"text": self.title}}
        if not self.ticks:
            return title
        labels = [f"{tick:g}" for tick in self.ticks]
        return {**title, "type": "log", "tickvals": list(self.ticks), "ticktext": labels}


def axis_of(metric: Metric, values: NDArray[np.float64]) -> Axis:
    """Choose prefix and scale so that all values can be read off."""
    largest = float(np.max(np.abs(values), initial=0.0))
    factor, unit = shown_unit(largest, metric.unit)
    smallest = float(np.min(values, initial=np.inf))
    if smallest <= 0 or largest <= _LOG_FROM_RATIO * smallest:
        return Axis(metric=metric, factor=factor, unit=unit)
    decades = range(
        math.floor(math.log10(smallest * factor)), math.ceil(math.log10(largest * factor))
    )
    steps = (1, 2, 5) if len(decades) <= 3 else (1,)
    ticks = tuple(step * 10.0**decade for decade in [*decades, decades.stop] for step in steps)
    return Axis(metric=metric, factor=factor, unit=unit, ticks=ticks)


def text(value: object) -> str:
    """A text that Plotly shows as it is: it would read tags and entities in it."""
    return html.escape(str(value), quote=False)
