from __future__ import annotations

import itertools

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from autotune import Compound, Condition, Predicate, Product, SearchSpace

DEGREES = CategoricalDistribution((1, 2, 4, 8, 16, 32, 64))


def layout() -> SearchSpace:
    return SearchSpace(
        {"tp": DEGREES, "pp": DEGREES, "dp": DEGREES},
        constraints=[Product(name="world", factors=("tp", "pp", "dp"), equals=128)],
    )


def test_a_valid_config_stays_as_it_is() -> None:
    space = layout()
    for config in space.sample(30, seed=0):
        assert space.project(config) == config


def test_a_degree_is_moved_by_as_few_doublings_as_possible() -> None:
    space = layout()
    assert space.project({"tp": 8, "pp": 16, "dp": 2}) in (
        {"tp": 4, "pp": 16, "dp": 2},
        {"tp": 8, "pp": 8, "dp": 2},
        {"tp": 8, "pp": 16, "dp": 1},
    )
    assert space.project({"tp": 7, "pp": 1, "dp": 16}) == {"tp": 8, "pp": 1, "dp": 16}


def test_an_unchecked_warm_start_is_repaired() -> None:
    space = SearchSpace({"x": IntDistribution(0, 1), "y": CategoricalDistribution(("a", "b"))})
    assert space.project({"x": 99, "typo": 1, "y": "b"}) == {"x": 1, "y": "b"}
    assert space.project({"x": -5, "y": "unknown"})["x"] == 0
    assert space.project({"x": "text", "y": None}) in space.sample(50, seed=0)
    assert space.project({"x": float("nan")})["x"] in (0, 1)
    assert space.project({}) in space.sample(50, seed=0)


def test_what_is_missing_takes_its_default_only_among_equals() -> None:
    space = SearchSpace(
        {"tp": DEGREES, "pp": DEGREES, "dp": DEGREES, "chunks": CategoricalDistribution((1, 2, 4))},
        constraints=[Product(name="world", factors=("tp", "pp", "dp"), equals=128)],
        defaults={"chunks": 4, "dp": 64},
    )
    assert space.project({"tp": 2, "pp": 8}) == {"tp": 2, "pp": 8, "dp": 8, "chunks": 4}


def test_an_inactive_value_costs_nothing_so_the_schedule_is_kept() -> None:
    space = SearchSpace(
        {
            "schedule": CategoricalDistribution(("1F1B", "Interleaved1F1B")),
            "virtual": CategoricalDistribution((1, 2, 4, 8)),
        },
        conditions=[
            Condition(
                parameter="virtual", active_when={"schedule": ("Interleaved1F1B",)}, otherwise=1
            )
        ],
    )
    assert space.project({"schedule": "1F1B", "virtual": 8}) == {"schedule": "1F1B", "virtual": 1}


def test_compound_members_move_together() -> None:
    space = SearchSpace(
        {"tp": DEGREES, "pp": DEGREES},
        compounds=[Compound(name="layout", parameters=("tp", "pp"), choices=((8, 1), (4, 4)))],
    )
    assert space.project({"tp": 8, "pp": 8}) == {"tp": 4, "pp": 4}
    assert space.project({"tp": 16, "pp": 1}) == {"tp": 8, "pp": 1}


@pytest.fixture(scope="module")
def thirty_two() -> SearchSpace:
    return SearchSpace(
        {
            "a": CategoricalDistribution(("x", "y")),
            "b": IntDistribution(1, 16),
            "c": CategoricalDistribution((True, False)),
        },
        constraints=[
            Predicate(name="even", reads=("b", "c"), holds=lambda b, c: (b % 2 == 0) == c)
        ],
    )


def test_all_points_come_once_and_then_none(thirty_two: SearchSpace) -> None:
    assert thirty_two.count() == 32
    seen: set[str] = set()
    for _ in range(32):
        config = thirty_two.project({"a": "x", "b": 7, "c": False}, exclude=seen)
        assert config is not None
        assert thirty_two.contains(config)
        assert thirty_two.key(config) not in seen
        seen.add(thirty_two.key(config))
    assert thirty_two.project({"a": "x", "b": 7, "c": False}, exclude=seen) is None


def test_the_wanted_config_itself_can_be_excluded(thirty_two: SearchSpace) -> None:
    config = {"a": "x", "b": 7, "c": False}
    other = thirty_two.project(config, exclude={thirty_two.key(config)})
    assert other in ({"a": "x", "b": 5, "c": False}, {"a": "x", "b": 9, "c": False})


def test_a_space_with_an_active_float_is_never_exhausted() -> None:
    space = SearchSpace(
        {
            "kind": CategoricalDistribution(("fixed", "tuned")),
            "rate": FloatDistribution(0.1, 1.0, log=True),
        },
        conditions=[Condition(parameter="rate", active_when={"kind": ("tuned",)}, otherwise=0.5)],
    )
    seen: set[str] = set()
    for _ in range(200):
        config = space.project({"kind": "fixed", "rate": 1.0}, exclude=seen)
        assert config is not None
        assert space.contains(config)
        assert space.key(config) not in seen
        seen.add(space.key(config))
    assert sum('"fixed"' in key for key in seen) == 1


def test_floats_are_clipped_and_kept_to_the_last_digit() -> None:
    space = SearchSpace({"x": FloatDistribution(0.1, 0.7), "n": IntDistribution(0, 1)})
    assert space.project({"x": 0.3000000000000001, "n": 5}) == {"x": 0.3000000000000001, "n": 1}
    assert space.project({"x": 9, "n": 0}) == {"x": 0.7, "n": 0}


def test_wide_ranges_are_searched_outwards() -> None:
    space = SearchSpace({"n": IntDistribution(0, 10**9)})
    seen: set[str] = set()
    for expected in (5, 4, 6, 3, 7):
        config = space.project({"n": 5}, exclude=seen)
        assert config is not None
        assert abs(config["n"] - 5) == abs(expected - 5)
        seen.add(space.key(config))
    assert len(seen) == 5


def test_stays_quick_with_a_thousand_excluded_neighbours() -> None:
    names = [f"p{i}" for i in range(12)]
    space = SearchSpace(
        dict.fromkeys(names, DEGREES),
        constraints=[Product(name="world", factors=names, equals=2**20)],
    )
    seen = {space.key(config) for config in space.sample(1_000, seed=0)}
    config = space.sample(1, seed=0)[0]
    other = space.project(config, exclude=seen)
    assert other is not None
    assert space.key(other) not in seen
    assert sum(other[name] != config[name] for name in names) == 2


def differ(**read: np.ndarray) -> np.ndarray:
    return np.not_equal(*read.values())


def test_long_chains_of_rules_do_not_exhaust_the_stack() -> None:
    names = [f"p{i:03}" for i in range(300)]
    space = SearchSpace(
        dict.fromkeys(names, IntDistribution(0, 3)),
        constraints=[
            Predicate(name=f"{a} and {b}", reads=(a, b), holds=differ)
            for a, b in itertools.pairwise(names)
        ],
    )
    seen: set[str] = set()
    for _ in range(3):
        config = space.project(dict.fromkeys(names, 2), exclude=seen)
        assert config is not None
        assert all(config[a] != config[b] for a, b in itertools.pairwise(names))
        seen.add(space.key(config))
    assert len(seen) == 3
