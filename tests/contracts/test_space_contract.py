"""The space contract over every space that ships and a miniature with every kind of rule."""

from __future__ import annotations

import pytest

from autotune.space import SearchSpace
from autotune.testing import SpaceContract
from autotune.testing.problems import coupled_space, grid_space


class TestCoupledSpace(SpaceContract):
    @pytest.fixture
    def space(self) -> SearchSpace:
        return coupled_space()


class TestGridSpace(SpaceContract):
    @pytest.fixture
    def space(self) -> SearchSpace:
        return grid_space()
