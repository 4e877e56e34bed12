from __future__ import annotations

from typing import Any

from autotune.samplers import Fate, Observation
from autotune.samplers.thinning import thinned


def seen(number: int, loss: float | None, over: float = 0.0) -> Observation:
    more: dict[str, Any] = {} if loss is None else {"losses": (loss,), "constraints": (over,)}
    fate = Fate.FAILED if loss is None else Fate.MEASURED
    return Observation(number=number, config={}, fate=fate, **more)


def test_few_are_all_kept() -> None:
    past = [seen(i, 1.0) for i in range(4)]
    assert thinned(past, 4) == past


def test_the_newest_and_the_best_stay_in_order() -> None:
    old = [seen(0, 5.0), seen(1, 1.0), seen(2, None), seen(3, 0.0, over=1.0), seen(4, 2.0)]
    new = [seen(5, 9.0), seen(6, None)]
    assert [each.number for each in thinned(old + new, 4)] == [1, 4, 5, 6]


def test_less_infeasible_is_better_and_failed_is_last() -> None:
    past = [seen(0, None), seen(1, 0.0, over=2.0), seen(2, 9.0, over=1.0), seen(3, 5.0)]
    assert [each.number for each in thinned(past, 2)] == [2, 3]
    assert [each.number for each in thinned(past, 3)] == [1, 2, 3]
