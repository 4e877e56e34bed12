"""Search spaces: distributions, known constraints, conditions and compounds.

`SearchSpace` answers every question from tables that are built once. `domains` numbers the values
of each parameter; `factors` and `products` turn the rules into relations over these numbers;
`elimination` joins the relations variable by variable and counts. Sampling and enumeration unrank
by these counts (`sampling`); `projection` runs the same elimination for the least cost.
"""

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
