"""Where the time of a step goes, in the words of the domain, by dimension and tier."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from objectives.analytical import collectives as names
from objectives.analytical.collectives import Time
from objectives.physics.arrays import FloatArray
from objectives.physics.tiers import TIERS

DIMENSIONS = {
    "tensor parallel": (names.TENSOR, names.TENSOR_VISITS),
    "context parallel": (names.CONTEXT,),
    "expert parallel": (names.DISPATCH, names.COMBINE),
    "pipeline parallel": names.BORDERS,
    "data parallel": (
        names.GATHER,
        names.REDUCE,
        names.REPLICATE,
        names.EXPERT_GATHER,
        names.EXPERT_REDUCE,
        names.EXPERT_REPLICATE,
    ),
}

TIER_LABELS = dict(
    zip(
        TIERS,
        ("in node", "in zone", "across zones", "across buildings", "across regions"),
        strict=True,
    )
)


def breakdown(terms: Mapping[str, FloatArray], times: Mapping[str, Time]) -> dict[str, FloatArray]:
    """Exposed communication by dimension and tier, everything else as it is.

    Args:
        terms: Seconds by term, communication by collective.
        times: How each collective's time divides over the tiers.
    """
    dimension_of = {name: label for label, group in DIMENSIONS.items() for name in group}
    split: dict[str, FloatArray] = {}
    for name, seconds in terms.items():
        if name not in dimension_of:
            split[name] = split[name] + seconds if name in split else seconds
            continue
        for tier, share in zip(TIERS, _shares(times[name]), strict=True):
            label = f"{dimension_of[name]} {TIER_LABELS[tier]}"
            part = share * seconds
            split[label] = split[label] + part if label in split else part
    return split


def _shares(time: Time) -> FloatArray:
    """Of each tier, (5, n), summing to 1 also where nothing is sent."""
    shares = time.share.copy()
    shares[0] += 1.0 - np.sum(shares, axis=0)
    return shares
