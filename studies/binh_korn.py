"""A constrained problem of two variables with a known front: the study that is not about LLMs.

References:
    Binh and Korn, "MOBES: A multiobjective evolution strategy for constrained optimization
    problems", Mendel 97, Brno, 1997, pp. 176-182.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import FloatDistribution

from autotune import Config, DesignPoint, Metric, SearchSpace, StudySpec, objective

X_MAX = 5.0
Y_MAX = 3.0

REFERENCE_POINT = (140.0, 50.0)
"""Where hypervolumes are measured from: at the front's ends f1 and f2 are (0, 50) and (136, 4)."""


@objective(
    metrics=[Metric(name="f1"), Metric(name="f2")],
    constraints=["g1", "g2"],
    name="binh-korn",
    cost_s=1e-5,
)
def binh_korn(config: Config) -> dict[str, float]:
    """Squared distances to two points, inside one disc and outside another.

    Args:
        config: ``x`` in [0, 5] and ``y`` in [0, 3].

    Returns:
        ``f1``: four times the squared distance to (0, 0). ``f2``: squared distance to (5, 5).
        ``g1`` <= 0 inside the disc of radius 5 around (5, 0). ``g2`` <= 0 outside the disc of
        radius sqrt(7.7) around (8, -3).
    """
    x, y = config["x"], config["y"]
    return {
        "f1": 4 * x**2 + 4 * y**2,
        "f2": (x - 5) ** 2 + (y - 5) ** 2,
        "g1": (x - 5) ** 2 + y**2 - 25,
        "g2": 7.7 - (x - 8) ** 2 - (y + 3) ** 2,
    }


def exact_front(n: int) -> NDArray[np.float64]:
    """Points of the true Pareto front, evenly spaced along its configs.

    The Pareto-optimal configs are x = y from (0, 0) to (3, 3), where both gradients point in
    opposite directions, then y = 3 from there to (5, 3). Both constraints hold along the way.

    Args:
        n: How many, at least 2.

    Returns:
        Shape (n, 2): f1 rising, f2 falling.

    Raises:
        ValueError: If n is below 2.

    References:
        Coello Coello, Lamont and Van Veldhuizen, "Evolutionary Algorithms for Solving
        Multi-Objective Problems", 2nd ed., appendix on constrained test functions.
    """
    if n < 2:
        raise ValueError(f"a front needs its two ends: n must be at least 2, got {n}")
    x = np.linspace(0.0, X_MAX, n)
    y = np.minimum(x, Y_MAX)
    return np.column_stack([4 * x**2 + 4 * y**2, (x - 5) ** 2 + (y - 5) ** 2])


PROGRAM: dict[str, Any] = {
    "argv": ["{python}", "-m", "studies.binh_korn", "{x}", "{y}"],
    "deterministic": True,
    "timeout": "1 min",
    "metric": {"f1": {}, "f2": {}},
    "constraint": {"g1": {}, "g2": {}},
}
"""The same problem as a program that prints JSON, for the ``command`` backend."""


def space() -> SearchSpace:
    """The two variables within their bounds."""
    return SearchSpace({"x": FloatDistribution(0.0, X_MAX), "y": FloatDistribution(0.0, Y_MAX)})


def study() -> StudySpec:
    """One hundred trials of both objectives, against a feasible point off the front."""
    return StudySpec(
        name="binh-korn",
        description="Binh and Korn's constrained test problem, whose exact front is known.",
        space=space(),
        objective=binh_korn,
        metrics=("f1", "f2"),
        design_point=DesignPoint(
            name="binh-korn-1997",
            content={
                "problem": "Binh and Korn 1997",
                "x_max": X_MAX,
                "y_max": Y_MAX,
                "command": PROGRAM,
            },
            features={"num_variables": 2.0, "num_constraints": 2.0},
        ),
        baselines={"today": {"x": 2.5, "y": 0.5}},
        tags=("test problem",),
    )


def main() -> None:
    """Print metrics and constraints of the ``x`` and ``y`` given as arguments, as JSON."""
    x, y = (float(argument) for argument in sys.argv[1:])
    evaluation = binh_korn(DesignPoint(name="program")).evaluate({"x": x, "y": y}, seed=0)
    sys.stdout.write(json.dumps({**evaluation.metrics, **evaluation.constraints}) + "\n")


if __name__ == "__main__":
    main()
