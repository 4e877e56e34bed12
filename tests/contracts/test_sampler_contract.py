"""The sampler contract over every registered sampler."""

from __future__ import annotations

import importlib.util

import pytest

from autotune.samplers import SAMPLER_NAMES
from autotune.testing import SamplerContract


@pytest.mark.parametrize("sampler", SAMPLER_NAMES)
class TestSampler(SamplerContract):
    @pytest.fixture(autouse=True)
    def _needs_torch(self, sampler: str) -> None:
        if sampler == "gp" and importlib.util.find_spec("torch") is None:
            pytest.skip("the sampler 'gp' needs torch, from the extra `gp`")
