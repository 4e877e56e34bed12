"""The objective contract over every backend that ships."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from autotune import Config, SearchSpace
from autotune.objective import ObjectiveFactory
from autotune.testing import ObjectiveContract
from autotune.testing.problems import coupled, coupled_space
from studies import binh_korn


class TestBinhKorn(ObjectiveContract):
    @pytest.fixture
    def factory(self) -> ObjectiveFactory:
        return binh_korn.binh_korn

    @pytest.fixture
    def space(self) -> SearchSpace:
        return binh_korn.space()

    @pytest.fixture
    def infeasible(self) -> Sequence[Config]:
        return [{"x": 0.0, "y": 3.0}]


class TestCoupled(ObjectiveContract):
    @pytest.fixture
    def factory(self) -> ObjectiveFactory:
        return coupled

    @pytest.fixture
    def space(self) -> SearchSpace:
        return coupled_space()
