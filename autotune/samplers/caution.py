"""How likely a config fails, judged by what became of its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from autotune.objective import Config
from autotune.samplers.base import Fate, Observation
from autotune.space import SearchSpace

ACCEPTABLE_ODDS = 0.3
"""A suggestion that is less likely to fail is not worth replacing."""

_NEIGHBOURS = 5
_SOFTENING = 0.05
"""Added to distances, in parameter ranges, so that an equal config does not decide alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureOdds:
    """Nearest neighbours on the encoded scale, weighted by the inverse of their distance.

    A failure says nothing about how far from working a config is, so samplers that rank by
    losses keep proposing along the edge of what fails. Neighbours know that edge.

    Attributes:
        space: Of the configs.
    """

    space: SearchSpace
    _rows: dict[int, NDArray[np.float64]] = field(default_factory=dict, repr=False)

    def of(self, config: Config, past: Sequence[Observation]) -> float:
        """The share of failures around a config, between 0 and 1; 0 where none ever failed."""
        known = [each for each in past if each.fate is not Fate.RUNNING]
        failed = np.array([each.fate is Fate.FAILED for each in known])
        if not failed.any():
            return 0.0
        rows = np.array([self._row(each) for each in known])
        distances = np.abs(rows - self.space.encode([config])[0]).sum(axis=1)
        nearest = np.argsort(distances, kind="stable")[:_NEIGHBOURS]
        weights = 1.0 / (distances[nearest] + _SOFTENING)
        return float(weights @ failed[nearest] / weights.sum())

    def _row(self, each: Observation) -> NDArray[np.float64]:
        if each.number not in self._rows:
            self._rows[each.number] = self.space.encode([each.config])[0]
        return self._rows[each.number]
