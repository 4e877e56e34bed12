"""The space contract over every space that ships and a miniature with every kind of rule."""

from __future__ import annotations

from functools import cache

import pytest

from autotune.plugins import installed, load
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


@cache
def shipped() -> dict[str, SearchSpace]:
    """The space of every study that ships, by study; of equal spaces only the first."""
    made = (load("autotune.studies", name)() for name in sorted(installed("autotune.studies")))
    specs = [spec for each in made for spec in (each if isinstance(each, tuple) else (each,))]
    first = {spec.space.fingerprint: spec for spec in reversed(specs)}
    return {spec.name: spec.space for spec in first.values()}


@pytest.mark.parametrize("study", shipped())
class TestShippedSpace(SpaceContract):
    @pytest.fixture
    def space(self, study: str) -> SearchSpace:
        return shipped()[study]
