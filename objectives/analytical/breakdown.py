"""Where the time of a step goes, in the words of the domain, by dimension and tier."""

from __future__ import annotations

from collections.abc import Mapping

from objectives.analytical import collectives as names
from objectives.analytical.terms import Terms, add
from objectives.physics.arrays import FloatArray
from objectives.physics.tiers import TIERS

DIMENSIONS = {
    "tensor parallel": (names.TENSOR, names.TENSOR_VISITS),
    "context parallel": (names.CONTEXT,),
    "expert parallel": (names.DISPATCH, names.COMBINE),
    "pipeline parallel": names.BORDERS,
    "data parallel": names.SHARDING,
}

_PLACES = ("in node", "in zone", "across zones", "across buildings", "across regions")
TIER_LABELS = dict(zip(TIERS, _PLACES, strict=True))

_DIMENSION_OF = {name: label for label, group in DIMENSIONS.items() for name in group}


def breakdown(terms: Terms, shares: Mapping[str, FloatArray]) -> Terms:
    """Exposed communication by dimension and tier, everything else as it is.

    Args:
        terms: Seconds by term, communication by collective.
        shares: Of each tier in a collective's time, arrays of shape (5, n) that sum to 1.
    """
    split: Terms = {}
    for name, seconds in terms.items():
        dimension = _DIMENSION_OF.get(name)
        if dimension is None:
            add(split, name, seconds)
        elif name in shares:
            for label, share in zip(TIER_LABELS.values(), shares[name], strict=True):
                add(split, f"{dimension} {label}", share * seconds)
    return split
