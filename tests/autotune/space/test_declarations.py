from __future__ import annotations

import json
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from autotune import Compound, Condition, Divides, InvalidInput, Predicate, Product, SearchSpace

DEGREES = CategoricalDistribution((1, 2, 4, 8))


def always(**columns: np.ndarray) -> np.ndarray:
    return np.ones(len(next(iter(columns.values()))), dtype=bool)


def at_most_eight(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a * b <= 8


def test_all_problems_of_a_declaration_are_reported_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        SearchSpace(
            {
                "a": DEGREES,
                "b": DEGREES,
                "f": FloatDistribution(0, 1),
                "huge": IntDistribution(1, 10**9),
            },
            constraints=[
                Product(name="unknown", factors=("a", "typo"), equals=4),
                Predicate(name="float", reads=("f", "a"), holds=always),
                Predicate(name="huge", reads=("huge",), holds=always),
                Predicate(name="twice", reads=("a",), holds=always),
                Predicate(name="twice", reads=("b",), holds=always),
            ],
            conditions=[
                Condition(parameter="a", active_when={"b": (3,)}, otherwise=5),
                Condition(parameter="f", active_when={"nothing": (1,)}, otherwise=0.5),
            ],
            compounds=[
                Compound(name="a", parameters=("a", "b"), choices=((1, 1), (1, 3), (1, 1))),
                Compound(name="again", parameters=("b",), choices=((1,),)),
            ],
            defaults={"b": 7},
            aliases={"b": {16: 3, 1: 2}, "gone": {1: 2}},
        )
    text = str(caught.value)
    assert len(caught.value.problems) == 15
    for said in (
        "unknown: reads 'typo', which is no parameter; there are: a, b, f, huge",
        "float: reads 'f', which is continuous",
        "huge: reads 'huge', which has 1,000,000,000 values",
        "twice: must be the name of one constraint or compound, it is of 2",
        "condition on a: otherwise must be one of 1, 2, 4, 8, got 5",
        "condition on a: b must be one of 1, 2, 4, 8, got 3",
        "condition on f: reads 'nothing'",
        "a: a compound must not have the name of a parameter",
        "choice (1, 3): b must be one of 1, 2, 4, 8",
        "choice (1, 1) is there twice",
        "b: must be the name of one compound's member",
        "defaults.b: must be one of 1, 2, 4, 8, got 7",
        "aliases.b: 16 must become one of 1, 2, 4, 8, got 3",
        "aliases.b: 1 is still a choice",
        "aliases.gone: is no parameter",
    ):
        assert said in text


def test_rules_that_cannot_be_tabulated_are_reported_together() -> None:
    def wrong_type(a: np.ndarray) -> np.ndarray:
        return a

    def scalar_logic(a: np.ndarray, b: np.ndarray) -> bool:
        return bool(a < b and b < 9)

    with pytest.raises(InvalidInput) as caught:
        SearchSpace(
            {"a": DEGREES, "b": DEGREES, "text": CategoricalDistribution(("x", "y"))},
            constraints=[
                Predicate(name="type", reads=("a",), holds=wrong_type),
                Predicate(name="scalar", reads=("a", "b"), holds=scalar_logic),
                Predicate(name="keyword", reads=("b",), holds=wrong_type),
                Product(name="text", factors=("a", "text"), equals=4),
                Predicate(name="fine", reads=("a",), holds=always),
            ],
        )
    text = str(caught.value)
    assert len(caught.value.problems) == 4
    assert "must return a boolean array of shape (4,), got int64" in text
    assert "scalar" in text
    assert "ValueError" in text
    assert "TypeError" in text
    assert "values of text must be positive integers, it is one of 'x', 'y'" in text


def test_a_predicate_too_wide_is_refused_with_advice() -> None:
    names = [f"p{i}" for i in range(7)]
    with pytest.raises(InvalidInput, match=r"wide: .*35,831,808 combinations.*read fewer"):
        SearchSpace(
            {name: IntDistribution(1, 12) for name in names},
            constraints=[Predicate(name="wide", reads=names, holds=always)],
        )


def test_constraints_that_tie_too_much_together_are_named() -> None:
    names = [f"p{i}" for i in range(12)]

    def differ(**read: np.ndarray) -> np.ndarray:
        return np.not_equal(*read.values())

    pairs = [(a, b) for i, a in enumerate(names) for b in names[:i]]
    with pytest.raises(InvalidInput, match=r"p1 and p0.*together tie.*compound"):
        SearchSpace(
            {name: IntDistribution(1, 12) for name in names},
            constraints=[
                Predicate(name=f"{a} and {b}", reads=(a, b), holds=differ) for a, b in pairs
            ],
        )


def test_a_contradiction_names_only_the_rules_that_cause_it() -> None:
    with pytest.raises(InvalidInput, match="no config satisfies") as caught:
        SearchSpace(
            {"a": DEGREES, "b": DEGREES, "c": DEGREES, "d": DEGREES},
            constraints=[
                Product(name="world", factors=("a", "b", "c"), equals=512),
                Predicate(name="small a", reads=("a",), holds=lambda a: a <= 4),
                Predicate(name="harmless", reads=("c", "d"), holds=lambda c, d: c <= d),
                Divides(name="also harmless", divisor=("b",), dividend=("d",)),
            ],
        )
    assert "'small a', 'world'" in str(caught.value)
    assert "harmless" not in str(caught.value)


def test_a_contradiction_with_a_compound_names_it() -> None:
    with pytest.raises(InvalidInput, match="constraint 'world' with compound 'layout'"):
        SearchSpace(
            {"a": DEGREES, "b": DEGREES},
            constraints=[Product(name="world", factors=("a", "b"), equals=16)],
            compounds=[Compound(name="layout", parameters=("a", "b"), choices=((8, 4), (1, 1)))],
        )


@pytest.mark.parametrize(
    "declare",
    [
        lambda: Product(name="x", factors="ab", equals=2),
        lambda: Product(name="x", factors=("a", "a"), equals=2),
        lambda: Product(name="x", factors=(), equals=2),
        lambda: Product(name="x", factors=("a",), equals=0),
        lambda: Product(name="x", factors=("a",), equals=True),
        lambda: Divides(name="x", divisor=("a",), dividend=-4),
        lambda: Predicate(name="x", reads=("a",), holds=3),  # type: ignore[arg-type]
        lambda: Condition(parameter="a", active_when={}, otherwise=1),
        lambda: Condition(parameter="a", active_when={"a": (1,)}, otherwise=1),
        lambda: Condition(parameter="a", active_when={"b": "text"}, otherwise=1),
        lambda: Compound(name="x", parameters=("a", "b"), choices=((1,),)),
        lambda: Compound(name="x", parameters=("a", "b"), choices=()),
        lambda: SearchSpace({}),
        lambda: SearchSpace({"": DEGREES}),
        lambda: SearchSpace({"a": (1, 2)}),  # type: ignore[dict-item]
    ],
)
def test_meaningless_declarations_are_refused(declare: object) -> None:
    with pytest.raises(InvalidInput):
        declare()  # type: ignore[operator]


def full_space() -> SearchSpace:
    return SearchSpace(
        {
            "a": DEGREES,
            "b": DEGREES,
            "c": IntDistribution(1, 3),
            "d": CategoricalDistribution(("x", "y", None)),
            "f": FloatDistribution(1e-3, 1, log=True),
            "g": FloatDistribution(0, 1, step=0.25),
        },
        constraints=[
            Product(name="ab", factors=("a", "b"), equals=8),
            Divides(name="ca", divisor=("c",), dividend=("a", "b")),
            Divides(name="c6", divisor=("c",), dividend=6),
            Predicate(name="small", reads=("a", "b"), holds=at_most_eight, description="a·b <= 8"),
        ],
        conditions=[Condition(parameter="c", active_when={"d": ("x", None)}, otherwise=1)],
        compounds=[Compound(name="ag", parameters=("b", "g"), choices=((1, 0.5), (8, 0.25)))],
        defaults={"c": 2, "gone": [1, 2]},
        aliases={"d": {"why": "y"}, "b": {16: 8}},
    )


def test_json_round_trip_without_and_with_functions() -> None:
    space = full_space()
    data = json.loads(json.dumps(space.to_json()))
    for again in (
        SearchSpace.from_json(data),
        SearchSpace.from_json(data, predicates={"small": at_most_eight}),
    ):
        assert again.fingerprint == space.fingerprint
        assert again.to_json() == space.to_json()
        assert again.names == space.names
        assert again.sample(20, seed=0) == space.sample(20, seed=0)
        assert again.explain({"a": 8}) == space.explain({"a": 8})
    with pytest.raises(InvalidInput, match="small: its function answers otherwise"):
        SearchSpace.from_json(data, predicates={"small": always})


@pytest.mark.parametrize("damage", ["parameters", "constraints", "compounds", "aliases"])
def test_foreign_json_is_refused(damage: str) -> None:
    data = full_space().to_json()
    for wrong in ({k: v for k, v in data.items() if k != damage}, data | {damage: [{"x": 1}]}):
        with pytest.raises(InvalidInput, match="stored search space"):
            SearchSpace.from_json(wrong)


def test_survives_the_way_to_a_worker() -> None:
    space = full_space()
    again = pickle.loads(pickle.dumps(space))
    assert again.fingerprint == space.fingerprint
    assert again.sample(5, seed=0) == space.sample(5, seed=0)


def test_explains_with_names_and_values() -> None:
    space = full_space()
    config = {"a": 4, "b": 8, "c": 3, "d": "y", "f": 2, "g": 0.5, "typo": 1}
    assert [str(problem) for problem in space.explain(config)] == [
        "typo: is no parameter; there are: a, b, c, d, f, g",
        "f: must be a number from 0.001 to 1.0, got 2",
        "ab: a·b = 32 must be 8 (a = 4, b = 8)",
        "ca: c = 3 must divide a·b = 32 (c = 3, a = 4, b = 8)",
        "small: a·b <= 8, got a = 4, b = 8",
        "condition on c: must be 1 where d = 'y', got 3",
        "ag: must be one of its 2 joint choices, got b = 8, g = 0.5",
    ]
    with pytest.raises(InvalidInput, match="7 problems"):
        space.check(config)
    (missing,) = (p for p in space.explain({"a": 8, "b": 1}) if p.path == "c")
    assert missing.message == "is missing; it must be an integer from 1 to 3"


def test_what_is_no_rule_is_refused_with_its_place() -> None:
    with pytest.raises(InvalidInput, match=r"constraints\[1\]: must be a Product or Divides or"):
        SearchSpace(
            {"a": DEGREES},
            constraints=[Product(name="a", factors=("a",), equals=4), always],  # type: ignore[list-item]
        )


def test_bounds_of_numpy_types_reach_storages_as_plain_numbers() -> None:
    space = SearchSpace(
        {
            "n": IntDistribution(np.int64(1), np.int64(4)),  # type: ignore[arg-type]
            "c": CategoricalDistribution((np.float64(0.5), 1)),
        }
    )
    for distribution in space.optuna_distributions().values():
        json.dumps(distribution._asdict())
    json.dumps(space.to_json())
    assert {type(value) for value in space.sample(1, seed=0)[0].values()} <= {int, float}


def test_products_stay_within_64_bits() -> None:
    huge = IntDistribution(2**30, 2**30 + 1)
    with pytest.raises(InvalidInput, match="2\\^62"):
        SearchSpace(
            {"a": huge, "b": huge, "c": huge, "d": DEGREES},
            constraints=[Divides(name="x", divisor=("d",), dividend=("a", "b", "c"))],
        )
    with pytest.raises(InvalidInput, match="from 1 to 2\\^62"):
        Product(name="x", factors=("a",), equals=2**63)
    space = SearchSpace(
        {"a": huge, "b": huge, "c": DEGREES},
        constraints=[Product(name="x", factors=("a", "b", "c"), equals=2**61)],
    )
    assert space.sample(1, seed=0) == [{"a": 2**30, "b": 2**30, "c": 2}]


@pytest.mark.filterwarnings("ignore:Choices for a categorical:UserWarning")
@pytest.mark.parametrize(
    "declare",
    [
        lambda: SearchSpace({"x": CategoricalDistribution(["\ud800", "b"])}),
        lambda: SearchSpace({"\ud800": CategoricalDistribution(["a", "b"])}),
        lambda: SearchSpace({"x": CategoricalDistribution([("\ud800",), ("b",)])}),  # type: ignore[list-item]
        lambda: SearchSpace(
            {"x": DEGREES}, constraints=[Product(name="\ud800", factors=("x",), equals=4)]
        ),
        lambda: SearchSpace({"x": DEGREES}, aliases={"x": {"\ud800": 4}}),
        lambda: SearchSpace({"x": DEGREES}, defaults={"gone": "\ud800"}),
    ],
)
def test_text_that_cannot_be_stored_is_refused(declare: Callable[[], SearchSpace]) -> None:
    with pytest.raises(InvalidInput, match="UTF-8") as caught:
        declare()
    str(caught.value).encode()
