"""Search spaces: distributions, known constraints, conditions and compounds."""

from __future__ import annotations

from autotune.space.constraints import (
    Compound,
    Condition,
    Constraint,
    Divides,
    Predicate,
    Product,
)
from autotune.space.space import SearchSpace

__all__ = [
    "Compound",
    "Condition",
    "Constraint",
    "Divides",
    "Predicate",
    "Product",
    "SearchSpace",
]
