"""Optuna's samplers, asked for one whole config over a history in memory."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler, GPSampler, NSGAIISampler, TPESampler
from optuna.study import load_study
from optuna.trial import FrozenTrial, TrialState

from autotune.errors import Unsupported
from autotune.samplers.base import Fate, Observation, Suggestion, derived_seed
from autotune.samplers.caution import ACCEPTABLE_ODDS, FailureOdds
from autotune.samplers.history_storage import STUDY_NAME, HistoryStorage
from autotune.samplers.thinning import thinned
from autotune.space import SearchSpace

_CONSTRAINTS = "constraints"
_NOT_FAILED = -1.0
_HAS_FAILED = 1.0
_ON_TRIAL = "trial"
_ON_STUDY = "study"
_LARGEST_GP_HISTORY = 300
_LARGEST_TPE_HISTORY = 2000
_ATTEMPTS = 4
_GENERATION = "NSGAIISampler:generation"
_PARENTS = "NSGAIISampler:parent:"
_TRIAL_STATES = {
    Fate.MEASURED: TrialState.COMPLETE,
    Fate.FAILED: TrialState.COMPLETE,
    Fate.RUNNING: TrialState.RUNNING,
}
_EPOCH = datetime(2000, 1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class OptunaSampler:
    """One of Optuna's samplers; a fresh one is made for every proposal.

    Attributes:
        space: The study's space.
        seed: The study's seed.
        make: The sampler for a seed.
        first_notes: Notes on a config that the sampler did not propose.
        kept_on_trial: Names of the notes on a trial that the sampler needs back.
        kept_on_study: How names begin of its notes on the study that it needs back.
        largest_history: Observations that it is shown at most; None for all.
        attempts: How often it is asked for one suggestion while what it says is likely to fail.
    """

    space: SearchSpace
    seed: int
    make: Callable[[int], BaseSampler]
    first_notes: Mapping[str, Any] = field(default_factory=dict)
    kept_on_trial: tuple[str, ...] = ()
    kept_on_study: tuple[str, ...] = ()
    largest_history: int | None = None
    attempts: int = 1
    _odds: FailureOdds = field(init=False, repr=False)
    _frozen: dict[tuple[int, bool], FrozenTrial] = field(default_factory=dict, repr=False)
    _params: dict[int, dict[str, Any]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_odds", FailureOdds(space=self.space))

    @property
    def starts_with_draws(self) -> bool:
        """They learn from what they are given."""
        return True

    def suggest(self, past: Sequence[Observation], *, slot: int, number: int) -> Suggestion:
        """Propose one config, see `Sampler`: of several attempts the least likely to fail."""
        if self.largest_history is not None:
            past = thinned(past, self.largest_history)
        best: tuple[float, Suggestion] | None = None
        for attempt in range(self.attempts):
            seed = derived_seed(self.seed, slot, *([attempt] if attempt else []))
            suggestion = self._suggest(past, number, seed)
            if suggestion.config is None:
                return suggestion
            odds = self._odds.of(suggestion.config, past) if self.attempts > 1 else 0.0
            if best is None or odds < best[0]:
                best = (odds, suggestion)
            if odds <= ACCEPTABLE_ODDS:
                break
        assert best is not None, "there is at least one attempt"
        return best[1]

    def _suggest(self, past: Sequence[Observation], number: int, seed: int) -> Suggestion:
        distributions = self.space.optuna_distributions()
        open_ones = {name: d for name, d in distributions.items() if not d.single()}
        if not open_ones or all(each.fate is Fate.RUNNING for each in past):
            return Suggestion(config=None)
        n_values = max(len(each.losses) for each in past) or 1
        scratch = _frozen_trial(number, TrialState.RUNNING, {}, {})
        trials, notes = self._trials(past, distributions, n_values), _study_notes(past)
        storage = HistoryStorage(trials, scratch, n_values, notes)
        params = self._ask(storage, scratch, open_ones, seed)
        state = self._state(scratch.system_attrs, storage.study_notes, notes)
        if not params:
            return Suggestion(config=None, state=state)
        params |= {name: _only_value(d) for name, d in distributions.items() if d.single()}
        return Suggestion(config=self.space.from_optuna(params), state=state)

    def _ask(
        self,
        storage: HistoryStorage,
        scratch: FrozenTrial,
        open_ones: dict[str, BaseDistribution],
        seed: int,
    ) -> dict[str, Any]:
        sampler = self.make(seed)
        study = load_study(study_name=STUDY_NAME, storage=storage, sampler=sampler)
        params = sampler.sample_relative(study, scratch, open_ones)
        missing = sorted(open_ones.keys() - params.keys()) if params else []
        return params | {
            name: sampler.sample_independent(study, scratch, name, open_ones[name])
            for name in missing
        }

    def _state(
        self, on_trial: Mapping[str, Any], on_study: Mapping[str, Any], known: Mapping[str, Any]
    ) -> dict[str, Any]:
        """What the sampler noted and needs back; empty for most samplers."""
        kept = {name: on_trial[name] for name in self.kept_on_trial if name in on_trial}
        new = {
            name: value
            for name, value in on_study.items()
            if name.startswith(self.kept_on_study) and name not in known
        }
        return {key: notes for key, notes in ((_ON_TRIAL, kept), (_ON_STUDY, new)) if notes}

    def _trials(
        self,
        past: Sequence[Observation],
        distributions: dict[str, BaseDistribution],
        n_values: int,
    ) -> list[FrozenTrial]:
        any_failed = any(each.fate is Fate.FAILED for each in past)
        as_failed = _failure_result(past, n_values) if any_failed else ((), ())
        return [self._trial(each, distributions, any_failed, as_failed) for each in past]

    def _trial(
        self,
        each: Observation,
        distributions: dict[str, BaseDistribution],
        any_failed: bool,
        as_failed: tuple[tuple[float, ...], tuple[float, ...]],
    ) -> FrozenTrial:
        known = self._frozen.get((each.number, any_failed))
        if known is not None:
            return known
        losses, constraints = each.losses, each.constraints
        if each.fate is Fate.FAILED:
            losses, constraints = as_failed
        elif any_failed:
            constraints = (*constraints, _NOT_FAILED)
        attributes: dict[str, Any] = dict(each.state.get(_ON_TRIAL) or self.first_notes)
        if each.fate is not Fate.RUNNING and constraints:
            attributes[_CONSTRAINTS] = list(constraints)
        if each.number not in self._params:
            self._params[each.number] = self.space.to_optuna(each.config)
        trial = _frozen_trial(
            each.number,
            _TRIAL_STATES[each.fate],
            self._params[each.number],
            distributions,
            values=losses if each.fate is not Fate.RUNNING else None,
            system_attrs=attributes,
        )
        if each.fate is Fate.MEASURED:  # the others will look different later
            self._frozen[each.number, any_failed] = trial
        return trial


def _study_notes(past: Sequence[Observation]) -> dict[str, Any]:
    """What the sampler noted on the study so far; of two workers' notes the earlier counts."""
    notes: dict[str, Any] = {}
    for each in past:
        for name, value in each.state.get(_ON_STUDY, {}).items():
            notes.setdefault(name, value)
    return notes


def _failure_result(
    past: Sequence[Observation], n_values: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """What a failed config looks like to a sampler: losses and constraints.

    As bad as the worst that was measured in every respect, and infeasible in one respect more:
    so that it ranks behind all that was measured, without numbers of another magnitude.
    """
    measured = [each for each in past if each.fate is Fate.MEASURED]
    if not measured:
        return (0.0,) * n_values, (_HAS_FAILED,)
    losses = np.max([each.losses for each in measured], axis=0)
    constraints = np.max([each.constraints for each in measured], axis=0).clip(min=0.0)
    return tuple(losses.tolist()), (*constraints.tolist(), _HAS_FAILED)


def _frozen_trial(
    number: int,
    state: TrialState,
    params: dict[str, Any],
    distributions: dict[str, BaseDistribution],
    *,
    values: Sequence[float] | None = None,
    system_attrs: dict[str, Any] | None = None,
) -> FrozenTrial:
    return FrozenTrial(
        number=number,
        trial_id=number,
        state=state,
        value=None,
        values=values,
        datetime_start=_EPOCH,
        datetime_complete=None if state is TrialState.RUNNING else _EPOCH,
        params=params,
        distributions=distributions,
        user_attrs={},
        system_attrs=system_attrs or {},
        intermediate_values={},
    )


def _only_value(distribution: BaseDistribution) -> Any:
    choices = getattr(distribution, "choices", None)
    return choices[0] if choices else getattr(distribution, "low")  # noqa: B009


def tpe(space: SearchSpace, seed: int) -> OptunaSampler:
    """Tree-structured Parzen estimator over whole configs; running ones count as poor.

    It takes the best tenth, at most 25, for good and the rest for poor: of a long history the
    best and the newest say the same as all.

    References:
        Bergstra et al., "Algorithms for hyper-parameter optimization", NeurIPS 2011; Watanabe,
        arXiv 2304.11127.
    """

    def make(seed: int) -> BaseSampler:
        return TPESampler(n_startup_trials=1, multivariate=True, constant_liar=True, seed=seed)

    return OptunaSampler(
        space=space,
        seed=seed,
        make=make,
        largest_history=_LARGEST_TPE_HISTORY,
        attempts=_ATTEMPTS,
    )


def nsga2(space: SearchSpace, seed: int, *, population_size: int) -> OptunaSampler:
    """Genetic search by non-dominated sorting; what it did not propose is generation 0.

    References:
        Deb et al., "A fast and elitist multiobjective genetic algorithm: NSGA-II", IEEE Trans.
        Evol. Comp. 6(2), 2002.
    """

    def make(seed: int) -> BaseSampler:
        return NSGAIISampler(population_size=population_size, seed=seed)

    return OptunaSampler(
        space=space,
        seed=seed,
        make=make,
        first_notes={_GENERATION: 0},
        kept_on_trial=(_GENERATION,),
        kept_on_study=(_PARENTS,),
        attempts=_ATTEMPTS,
    )


def gp(space: SearchSpace, seed: int, *, deterministic: bool) -> OptunaSampler:
    """Bayesian optimisation with a Gaussian process; needs torch.

    Its cost grows with the cube of the history, of which it is shown a part.

    Raises:
        Unsupported: If torch is not installed.
    """
    if importlib.util.find_spec("torch") is None:
        raise Unsupported(
            "the sampler 'gp' needs torch: pip install 'scale-across-autotune[gp]', or take "
            "another sampler, such as 'tpe'"
        )

    def make(seed: int) -> BaseSampler:
        with warnings.catch_warnings():
            # That Optuna may rename the argument is a matter of the version we depend on.
            warnings.simplefilter("ignore", ExperimentalWarning)
            return GPSampler(seed=seed, n_startup_trials=1, deterministic_objective=deterministic)

    return OptunaSampler(space=space, seed=seed, make=make, largest_history=_LARGEST_GP_HISTORY)
