"""The contract of every objective, on a program of one line."""

from __future__ import annotations

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from autotune import SearchSpace
from autotune.objective import ObjectiveFactory
from autotune.testing import ObjectiveContract
from objectives.command import command_objective

ONE_LINE = 'echo "{\\"loss\\": $1, \\"over\\": $2, \\"terms\\": {\\"all\\": $1}}"'


class TestCommand(ObjectiveContract):
    num_configs = 3
    breakdown_sums_to = "loss"

    @pytest.fixture
    def factory(self) -> ObjectiveFactory:
        return command_objective(
            {
                "argv": ["sh", "-c", ONE_LINE, "{mode}", "{x}", "{n}"],
                "metric": {"loss": {"unit": "s"}},
                "constraint": {"over": {"at_most": 10}},
                "breakdown": "terms",
                "deterministic": True,
                "timeout": "10 s",
            }
        )

    @pytest.fixture
    def space(self) -> SearchSpace:
        return SearchSpace(
            {
                "x": FloatDistribution(0.5, 2.0),
                "n": IntDistribution(1, 8),
                "mode": CategoricalDistribution(("ring", "tree")),
            }
        )
