"""What an objective measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Direction = Literal["minimize", "maximize"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A named number with a unit and a direction.

    Attributes:
        name: Identifier with its unit as suffix, such as ``step_time_s``.
        unit: SI unit as text (``s``, ``byte``, ``byte/s``); empty for a plain number.
        direction: Which way is better.
        label: How people call it, such as ``step time``; the name when empty.
    """

    name: str
    unit: str = ""
    direction: Direction = "minimize"
    label: str = ""

    def __post_init__(self) -> None:
        if self.direction not in ("minimize", "maximize"):
            raise ValueError(
                f"direction of metric {self.name!r} must be 'minimize' or 'maximize', "
                f"got {self.direction!r}"
            )

    @property
    def title(self) -> str:
        """The label, or the name where there is none."""
        return self.label or self.name

    def as_loss(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn values so that smaller is better; its own inverse."""
        return values if self.direction == "minimize" else -values
