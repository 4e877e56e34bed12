"""The analytical backend: what a training step costs, in closed form, over arrays of configs."""

from __future__ import annotations

from objectives.analytical.objective import AnalyticalObjective, analytical

__all__ = ["AnalyticalObjective", "analytical"]
