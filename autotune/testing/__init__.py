"""Contract suites: what every objective, sampler, space and storage must do, as pytest classes.

A third party subclasses one, overrides its fixtures and has its backend tested as ours are::

    from autotune.testing import ObjectiveContract

    class TestMyBackend(ObjectiveContract):
        @pytest.fixture
        def factory(self):
            return my_backend

        @pytest.fixture
        def space(self):
            return my_space

Needs pytest, which the extra ``test`` brings.
"""

from __future__ import annotations

from autotune.testing.objective import ObjectiveContract
from autotune.testing.sampler import SamplerContract
from autotune.testing.space import SpaceContract
from autotune.testing.storage import StorageContract

__all__ = ["ObjectiveContract", "SamplerContract", "SpaceContract", "StorageContract"]
