"""Samplers that do not learn: independent draws and a low-discrepancy sequence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from autotune.samplers.base import Observation, Suggestion
from autotune.space import SearchSpace


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomSampler:
    """Uniform over the valid configs: the study's own draw, every time."""

    @property
    def starts_with_draws(self) -> bool:
        """There is nothing else."""
        return False

    def suggest(self, past: Sequence[Observation], *, slot: int, number: int) -> Suggestion:
        """No opinion, see `Sampler`."""
        return Suggestion(config=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class QmcSampler:
    """A scrambled Sobol' sequence, indexed by slot; each parameter is one dimension.

    The points spread evenly over all combinations. Those that break a rule move to the nearest
    valid config, so a strongly coupled space is covered less evenly than by `RandomSampler`.

    Attributes:
        space: The study's space.
        seed: Scrambles the sequence.

    References:
        Owen, "On dropping the first Sobol' point", arXiv 2008.08051.
    """

    space: SearchSpace
    seed: int

    @property
    def starts_with_draws(self) -> bool:
        """The sequence is its own start."""
        return False

    def suggest(self, past: Sequence[Observation], *, slot: int, number: int) -> Suggestion:
        """The point of this slot, see `Sampler`."""
        from scipy.stats import qmc  # takes a second to import, and few studies need it

        distributions = self.space.optuna_distributions()
        sequence = qmc.Sobol(len(distributions), scramble=True, rng=self.seed)
        if slot:  # scipy overflows on 0
            sequence.fast_forward(slot)
        point = sequence.random(1)[0]
        params = {
            name: _value_at(distribution, float(u))
            for (name, distribution), u in zip(distributions.items(), point, strict=True)
        }
        return Suggestion(config=self.space.from_optuna(params))


def _value_at(distribution: BaseDistribution, u: float) -> Any:
    """The value at a fraction u in [0, 1) of a distribution."""
    match distribution:
        case CategoricalDistribution(choices=choices):
            return choices[int(u * len(choices))]
        case IntDistribution(low=low, high=high, step=step, log=log):
            if log:
                return min(int(_by_logarithm(low, high + 1, u)), high)
            return low + step * int(u * ((high - low) // step + 1))
        case FloatDistribution(low=low, high=high, step=step, log=log):
            if log:
                return min(max(_by_logarithm(low, high, u), low), high)
            if step is not None:
                return low + step * int(u * (math.floor((high - low) / step + 1e-8) + 1))
            return low + u * (high - low)
    raise TypeError(f"a distribution of Optuna was expected, got {distribution!r}")


def _by_logarithm(low: float, high: float, u: float) -> float:
    return math.exp(math.log(low) + u * (math.log(high) - math.log(low)))
