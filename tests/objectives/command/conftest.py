from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from autotune import DesignPoint, Objective
from objectives.command import command_objective

Make = Callable[..., Objective]


@pytest.fixture
def make() -> Make:
    """An objective that runs a piece of Python, with changes to its definition."""

    def build(code: str, *arguments: str, **changes: Any) -> Objective:
        definition = {
            "argv": ["{python}", "-I", "-S", "-c", code, *arguments],
            "metric": {"loss": {}},
            "timeout": "20 s",
            "grace": "0.2 s",
            "retry_delay": "0 s",
            **changes,
        }
        return command_objective(definition)(DesignPoint(name="any", content={"gpus": 8}))

    return build
