"""Settings of every test run."""

from __future__ import annotations

import os

import hypothesis
import pytest

pytest.register_assert_rewrite("autotune.testing")

# The same examples on every machine: a failing property is a fault of the change at hand. Set
# HYPOTHESIS_PROFILE=explore to look for new ones.
hypothesis.settings.register_profile(
    "default", derandomize=True, deadline=None, max_examples=50, database=None
)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=2000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
