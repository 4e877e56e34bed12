"""Names for the arrays that the physics computes on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Numbers = NDArray[Any] | float | int
"""A number for all configs, or an array of shape (n,) with one per config."""
