from __future__ import annotations

import enum
import warnings

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from autotune import InvalidInput, SearchSpace


class Ring(enum.StrEnum):
    ON = "on"


def one(distribution: object) -> SearchSpace:
    return SearchSpace({"x": distribution})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("distribution", "value"),
    [
        (IntDistribution(0, 5), 3.7),
        (IntDistribution(0, 5), True),
        (IntDistribution(0, 5), "3"),
        (IntDistribution(0, 5), 6),
        (IntDistribution(0, 6, step=2), 3),
        (IntDistribution(0, 5), None),
        (IntDistribution(0, 5), float("nan")),
        (CategoricalDistribution((1, 2)), True),
        (CategoricalDistribution((True, False)), 1),
        (CategoricalDistribution((True, False)), 0.0),
        (CategoricalDistribution(("1", "2")), 1),
        (CategoricalDistribution((0.1, 0.2)), np.float32(0.1)),
        (CategoricalDistribution((1, 2)), object()),
        (FloatDistribution(0, 1), True),
        (FloatDistribution(0, 1), 1.01),
        (FloatDistribution(0, 1), float("nan")),
        (FloatDistribution(0, 1), "0.5"),
        (FloatDistribution(0, 1, step=0.25), 0.3),
        (FloatDistribution(0.5, 0.5), 0.4),
    ],
)
def test_a_value_outside_the_domain_is_refused_not_coerced(
    distribution: object, value: object
) -> None:
    space = one(distribution)
    assert not space.contains({"x": value})
    (problem,) = space.explain({"x": value})
    assert problem.path == "x"
    assert repr(value) in problem.message
    with pytest.raises(InvalidInput):
        space.check({"x": value})
    with pytest.raises(InvalidInput):
        space.key({"x": value})


@pytest.mark.parametrize(
    ("distribution", "value", "plain"),
    [
        (IntDistribution(0, 5), np.int64(3), 3),
        (IntDistribution(0, 5), 3.0, 3),
        (CategoricalDistribution((1, 2)), np.int32(2), 2),
        (CategoricalDistribution((True, False)), np.bool_(True), True),
        (CategoricalDistribution((0.0, 0.5)), 0, 0.0),
        (CategoricalDistribution(("on", "off")), np.str_("on"), "on"),
        (CategoricalDistribution(("on", "off")), Ring.ON, "on"),
        (FloatDistribution(0, 1), np.float32(0.5), 0.5),
        (FloatDistribution(0, 1), 1, 1.0),
        (FloatDistribution(0, 1, step=0.1), 0.1 * 3, 0.3),
        (FloatDistribution(0.5, 0.5), 0.5, 0.5),
        (CategoricalDistribution((None, 1)), None, None),
    ],
)
def test_an_equal_value_becomes_the_plain_one(
    distribution: object, value: object, plain: object
) -> None:
    space = one(distribution)
    assert space.contains({"x": value})
    checked = space.check({"x": value})["x"]
    assert checked == plain
    assert type(checked) is type(plain)
    assert space.project({"x": value}) == {"x": plain}
    assert space.key({"x": value}) == space.key({"x": plain})


def test_true_and_one_are_two_choices() -> None:
    space = one(CategoricalDistribution((1, True, 0, False, "1", None)))
    assert space.count() == 6
    keys = {space.key({"x": value}) for value in (1, True, 0, False, "1", None)}
    assert len(keys) == 6
    for value in (1, True, 0, False, "1", None):
        back = space.from_optuna(space.to_optuna({"x": value}))["x"]
        assert back == value
        assert type(back) is type(value)


def test_tuples_lists_and_mappings_are_choices() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        space = one(CategoricalDistribution(((8, 1), [4, 2], {"tp": 2, "pp": (4,)})))
    assert space.check({"x": [8, 1]}) == {"x": (8, 1)}
    assert space.check({"x": (4, 2)}) == {"x": (4, 2)}
    assert space.check({"x": {"pp": [4], "tp": 2}}) == {"x": {"tp": 2, "pp": (4,)}}
    assert not space.contains({"x": (1, 8)})
    assert sorted(map(str, (c["x"] for c in space.sample(50, seed=0))))[0] == "(4, 2)"
    assert space.sample_columns(5, seed=0)["x"].shape == (5,)


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ((1, 1.0), "twice"),
        (("a", "a"), "twice"),
        ((float("nan"),), "finite"),
        ((object(),), "JSON"),
    ],
)
def test_choices_that_cannot_be_told_apart_or_stored_are_refused(
    choices: tuple[object, ...], said: str
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        distribution = CategoricalDistribution(choices)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=said):
        one(distribution)


def test_keys_ignore_the_order_and_tell_every_difference() -> None:
    space = SearchSpace(
        {
            "b": IntDistribution(0, 9),
            "a": FloatDistribution(0, 1),
            "ü": CategoricalDistribution("xy"),
        }
    )
    key = space.key({"ü": "x", "a": 0.25, "b": 3})
    assert key == '{"a":0.25,"b":3,"ü":"x"}'
    assert key == space.key({"b": 3, "a": np.float64(0.25), "ü": "x"})


def test_encodes_on_the_unit_interval() -> None:
    space = SearchSpace(
        {
            "degree": CategoricalDistribution((1, 2, 4, 16)),
            "odd": CategoricalDistribution((0, 3, 1)),
            "rate": FloatDistribution(1e-3, 1e1, log=True),
            "count": IntDistribution(10, 20),
            "flag": CategoricalDistribution((False, True)),
            "name": CategoricalDistribution(("ring", "tree")),
            "maybe": CategoricalDistribution((None, 1)),
            "fixed": IntDistribution(7, 7),
        }
    )
    assert space.feature_names == (
        *("degree", "odd", "rate", "count", "flag"),
        *("name=ring", "name=tree", "maybe=null", "maybe=1", "fixed"),
    )
    config = {
        "degree": 4,
        "odd": 1,
        "rate": 0.1,
        "count": 15,
        "flag": True,
        "name": "tree",
        "maybe": None,
        "fixed": 7,
    }
    row = [0.5, 0.5, 0.5, 0.5, 1, 0, 1, 1, 0, 0]
    assert space.encode([config]) == pytest.approx(np.array([row]))
    assert space.encode([]).shape == (0, 10)
    with pytest.raises(InvalidInput, match="degree must be one of"):
        space.encode([config | {"degree": 3}])
    with pytest.raises(InvalidInput, match="'rate'"):
        space.encode([{k: v for k, v in config.items() if k != "rate"}])
