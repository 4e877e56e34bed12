"""Which parameters a metric depends on, over all that a study has measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.metric import Metric
from autotune.space import SearchSpace
from autotune.trial import Trial, TrialState

MIN_TRIALS = 20
MAX_TRIALS = 1000
_FOLDS = 4
_TREES = 64
_REPEATS = 3

METHOD = (
    f"Permutation importance: {_TREES} extremely randomised trees learn the rank of the metric "
    f"from the parameters; a parameter's share is how much worse they predict held-out trials "
    f"({_FOLDS}-fold) when its values are shuffled."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Importances:
    """How much of a metric's variation each parameter explains.

    Attributes:
        metric: Name of the metric.
        shares: By parameter, largest first; they sum to 1, or are all 0 where the model finds
            nothing.
        quality: Share of the variation of held-out trials that the model predicts (R²); near or
            below 0 means that the shares say nothing.
        num_trials: How many trials it learnt from.
    """

    metric: str
    shares: Mapping[str, float]
    quality: float
    num_trials: int


def importances(
    trials: Sequence[Trial], space: SearchSpace, metric: Metric, *, seed: int = 0
) -> Importances | None:
    """Estimate parameter importances from a study's measured trials, feasible or not.

    Args:
        trials: Those outside the space or without the metric are left out; of more than
            `MAX_TRIALS` a random part is used.
        space: Encodes the configs.
        metric: What is explained.
        seed: Of the model, the folds and the shuffling; equal seeds give equal results.

    Returns:
        None with fewer than `MIN_TRIALS` usable trials, or when all have the same value.

    References:
        Breiman, "Random forests", Machine Learning 45, 2001, section 10 (permutation
        importance); Geurts, Ernst and Wehenkel, "Extremely randomized trees", ibid. 63, 2006.
    """
    measured = [
        trial
        for trial in trials
        if trial.state is TrialState.COMPLETE
        and trial.evaluation is not None
        and metric.name in trial.evaluation.metrics
    ]
    rng = np.random.default_rng(seed)
    if len(measured) > MAX_TRIALS:
        kept = np.sort(rng.choice(len(measured), MAX_TRIALS, replace=False))
        measured = [measured[i] for i in kept]
    usable = [trial for trial in measured if space.contains(trial.config)]
    values = np.array([t.evaluation.metrics[metric.name] for t in usable if t.evaluation])
    if len(usable) < MIN_TRIALS or np.ptp(values) == 0:
        return None
    features = space.encode([trial.config for trial in usable])
    blocks = _blocks(space)
    worse, quality = _permutation(features, _ranks(values), list(blocks.values()), rng, seed)
    total = worse.sum()
    shares = worse / total if total > 0 else worse
    order = np.argsort(-shares, kind="stable")
    names = list(blocks)
    return Importances(
        metric=metric.name,
        shares={names[i]: float(shares[i]) for i in order},
        quality=quality,
        num_trials=len(usable),
    )


def _blocks(space: SearchSpace) -> dict[str, list[int]]:
    """The columns of each parameter in the encoded matrix."""
    blocks: dict[str, list[int]] = {name: [] for name in space.names}
    names = iter(space.names)
    current = next(names)
    for column, feature in enumerate(space.feature_names):
        while feature != current and not feature.startswith(f"{current}="):
            current = next(names)
        blocks[current].append(column)
    return blocks


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks on [0, 1], equal ones sharing their mean: no outlier must decide everything."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(sizes) - (sizes + 1) / 2
    ranks: NDArray[np.float64] = middle[group] / (len(values) - 1)
    return ranks


def _permutation(
    features: NDArray[np.float64],
    target: NDArray[np.float64],
    blocks: Sequence[Sequence[int]],
    rng: np.random.Generator,
    seed: int,
) -> tuple[NDArray[np.float64], float]:
    """Increase of the squared error on held-out rows by block of columns, and R²."""
    from sklearn.ensemble import ExtraTreesRegressor
    from sklearn.model_selection import KFold

    worse = np.zeros(len(blocks))
    error = 0.0
    for train, test in KFold(_FOLDS, shuffle=True, random_state=seed).split(features):
        model: Any = ExtraTreesRegressor(_TREES, min_samples_leaf=2, random_state=seed)
        model.fit(features[train], target[train])
        held_out = features[test]
        plain = np.square(model.predict(held_out) - target[test]).sum()
        error += float(plain)
        # One call for all shuffled copies: the trees' overhead is per call.
        copies = np.tile(held_out, (len(blocks) * _REPEATS, 1, 1))
        for i, columns in enumerate(block for block in blocks for _ in range(_REPEATS)):
            shuffled = rng.permutation(len(test))
            copies[i][:, columns] = held_out[shuffled][:, columns]
        predicted = model.predict(copies.reshape(-1, features.shape[1]))
        squared = np.square(predicted.reshape(len(blocks), _REPEATS, len(test)) - target[test])
        worse += squared.sum(axis=2).mean(axis=1) - plain
    quality = 1.0 - error / float(np.square(target - target.mean()).sum())
    # Shuffling a constant changes nothing but the last bit.
    return np.where(worse > 1e-9 * error, worse, 0.0), quality
