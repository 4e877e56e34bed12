"""Samplers by name: each proposes one config from a study's history."""

from __future__ import annotations

from autotune.errors import UnknownName
from autotune.samplers.base import Fate, Observation, Sampler, Suggestion, derived_seed
from autotune.samplers.uniform import QmcSampler, RandomSampler
from autotune.space import SearchSpace

SAMPLER_NAMES = ("gp", "nsga2", "qmc", "random", "tpe")

_LARGEST_POPULATION = 50
_SMALLEST_POPULATION = 6
_GENERATIONS = 5

__all__ = [
    "SAMPLER_NAMES",
    "Fate",
    "Observation",
    "Sampler",
    "Suggestion",
    "check_sampler",
    "derived_seed",
    "make_sampler",
    "population_for",
]


def check_sampler(name: str) -> None:
    """Refuse a name that no sampler has.

    Raises:
        UnknownName: Lists those that there are.
    """
    if name not in SAMPLER_NAMES:
        raise UnknownName("sampler", name, SAMPLER_NAMES)


def population_for(n_trials: int) -> int:
    """A population that leaves a budget several generations to improve in."""
    return min(max(n_trials // _GENERATIONS, _SMALLEST_POPULATION), _LARGEST_POPULATION)


def make_sampler(
    name: str,
    *,
    space: SearchSpace,
    seed: int,
    population_size: int = _LARGEST_POPULATION,
    deterministic: bool = True,
) -> Sampler:
    """Make a sampler.

    Args:
        name: One of `SAMPLER_NAMES`.
        space: What it proposes in.
        seed: With the slot it decides every proposal.
        population_size: Individuals of a generation, for the genetic ones.
        deterministic: Whether a config always gives the same values.

    Raises:
        UnknownName: If there is no such sampler; lists those that there are.
        Unsupported: If it needs a package that is not installed; names the extra.
    """
    check_sampler(name)
    if name == "random":
        return RandomSampler()
    if name == "qmc":
        return QmcSampler(space=space, seed=seed)
    from autotune.samplers import optuna_samplers  # loads half of Optuna

    if name == "nsga2":
        return optuna_samplers.nsga2(space, seed, population_size=population_size)
    if name == "gp":
        return optuna_samplers.gp(space, seed, deterministic=deterministic)
    return optuna_samplers.tpe(space, seed)
