"""The kinds of arrays that pass between the modules of this package."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Indices: TypeAlias = NDArray[np.intp]
"""Numbers of values, states, rows or groups."""

Floats: TypeAlias = NDArray[np.float64]
"""Places on [0, 1], distances and costs."""

Truth: TypeAlias = NDArray[np.bool_]
"""Whether something holds, element by element."""
