from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from autotune import Evaluation, Metric, Origin, Trial, TrialState

TIME = Metric(name="step_time_s", unit="s", label="step time")
LINK = Metric(name="link_bytes_per_s", unit="byte/s", label="long-link bandwidth")


@pytest.fixture
def metrics() -> tuple[Metric, ...]:
    return TIME, LINK


@pytest.fixture
def make() -> Callable[..., Trial]:
    """Builds a trial: number, step time, link bandwidth, and how far the memory is exceeded."""

    def build(
        number: int,
        time_s: float = 1.0,
        link: float = 1e9,
        over: float = -1.0,
        *,
        config: Mapping[str, Any] | None = None,
        evaluation: Evaluation | None = None,
        breakdown: Mapping[str, float] | None = None,
        **changes: Any,
    ) -> Trial:
        evaluation = evaluation or Evaluation(
            metrics={TIME.name: time_s, LINK.name: link},
            constraints={"memory_over_bytes": over},
            breakdown=breakdown or {},
        )
        fields: dict[str, Any] = {
            "number": number,
            "slot": number,
            "state": TrialState.COMPLETE if evaluation.ok else TrialState.FAILED,
            "origin": Origin.SAMPLER,
            "config": config or {"n": number},
            "evaluation": evaluation,
        }
        return Trial(**{**fields, **changes})

    return build


@pytest.fixture
def today(make: Callable[..., Trial]) -> Trial:
    """The baseline: 2 s at 4 GB/s."""
    return make(0, 2.0, 4e9, origin=Origin.BASELINE, label="today")
