"""A space that changed, and what becomes of the configs measured before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from autotune import Compound, Condition, Predicate, Product, SearchSpace

PARAMETERS: dict[str, BaseDistribution] = {
    "tp": CategoricalDistribution((1, 2, 4, 8)),
    "pp": CategoricalDistribution((1, 2, 4, 8)),
    "schedule": CategoricalDistribution(("one_f_one_b", "gpipe")),
    "depth": IntDistribution(1, 3),
    "precision": CategoricalDistribution(("bf16",)),
}
WORLD = Product(name="world", factors=("tp", "pp"), equals=8)
OLD = {"tp": 2, "pp": 4, "schedule": "gpipe", "depth": 3, "precision": "bf16"}


def space(changed: dict[str, BaseDistribution | None] | None = None, **rest: Any) -> SearchSpace:
    merged = PARAMETERS | (changed or {})
    kept = {name: d for name, d in merged.items() if d is not None}
    return SearchSpace(kept, constraints=rest.pop("constraints", [WORLD]), **rest)


def test_an_added_choice_and_a_wider_range_keep_every_config() -> None:
    new = space({"tp": CategoricalDistribution((1, 2, 4, 8, 16)), "depth": IntDistribution(1, 9)})
    assert space().difference(new) == [
        "parameter depth: was int 1 to 3, is int 1 to 9",
        "parameter tp: choices added: 16",
    ]
    assert new.fingerprint != space().fingerprint
    for config in space().sample(30, seed=0):
        assert new.adopt(config, old=space()) == config


def test_a_removed_choice_leaves_its_configs_behind() -> None:
    new = space({"schedule": CategoricalDistribution(("one_f_one_b",))})
    assert space().difference(new) == ["parameter schedule: choices removed: 'gpipe'"]
    assert new.adopt(OLD, old=space()) is None
    kept = OLD | {"schedule": "one_f_one_b"}
    assert new.adopt(kept, old=space()) == kept


def test_a_renamed_choice_is_renamed() -> None:
    new = space(
        {"schedule": CategoricalDistribution(("1F1B", "gpipe"))},
        aliases={"schedule": {"one_f_one_b": "1F1B"}},
    )
    assert new.adopt(OLD | {"schedule": "one_f_one_b"}) == OLD | {"schedule": "1F1B"}
    assert new.adopt(OLD) == OLD
    assert space().difference(new) == [
        "parameter schedule: choices added: '1F1B'; choices removed: 'one_f_one_b'"
    ]


def test_an_added_parameter_takes_its_default_or_its_only_value() -> None:
    added = {"chunks": CategoricalDistribution((1, 2, 4)), "fp": IntDistribution(32, 32)}
    assert space(added).adopt(OLD) is None
    assert space(added, defaults={"chunks": 1}).adopt(OLD) == OLD | {"chunks": 1, "fp": 32}
    assert space().difference(space(added)) == [
        "parameter chunks: added (one of 1, 2, 4)",
        "parameter fp: added (int 32 to 32)",
    ]


def test_an_added_float_takes_its_default() -> None:
    added: dict[str, BaseDistribution | None] = {"rate": FloatDistribution(1e-3, 1, log=True)}
    assert space(added).adopt(OLD) is None
    assert space(added, defaults={"rate": 1}).adopt(OLD) == OLD | {"rate": 1.0}
    assert space().difference(space(added)) == [
        "parameter rate: added (float 0.001 to 1.0 by logarithm)"
    ]


def test_an_added_parameter_is_fixed_where_its_condition_does_not_hold() -> None:
    new = space(
        {"virtual": IntDistribution(1, 4), "deep": IntDistribution(0, 2)},
        conditions=[
            Condition(parameter="virtual", active_when={"schedule": ("one_f_one_b",)}, otherwise=1),
            Condition(parameter="deep", active_when={"virtual": (2, 3, 4)}, otherwise=0),
        ],
    )
    assert new.adopt(OLD) == OLD | {"virtual": 1, "deep": 0}
    assert new.adopt(OLD | {"schedule": "one_f_one_b"}) is None


def test_a_removed_parameter_is_dropped_at_its_declared_value_only() -> None:
    new = space({"depth": None}, defaults={"depth": 3})
    rest = {name: value for name, value in OLD.items() if name != "depth"}
    assert new.adopt(OLD, old=space()) == rest
    assert new.adopt(OLD | {"depth": 2}, old=space()) is None
    assert space({"depth": None}).adopt(OLD, old=space()) is None
    assert space().difference(new) == ["parameter depth: removed (was int 1 to 3)"]


def test_a_removed_parameter_that_had_one_value_is_dropped() -> None:
    new = space({"precision": None})
    rest = {name: value for name, value in OLD.items() if name != "precision"}
    assert new.adopt(OLD, old=space()) == rest
    assert new.adopt(OLD) is None


def test_configs_outside_new_rules_are_left_behind() -> None:
    shallow = Predicate(name="shallow", reads=("pp", "depth"), holds=lambda pp, depth: pp > depth)
    new = space(constraints=[WORLD, shallow])
    assert new.adopt(OLD, old=space()) == OLD
    assert new.adopt(OLD | {"depth": 1, "pp": 1, "tp": 8}, old=space()) is None
    assert space().difference(new) == ["constraint shallow: added"]
    assert new.difference(space()) == ["constraint shallow: removed"]


def test_changed_rules_are_told() -> None:
    def predicate(limit: int) -> Predicate:
        return Predicate(
            name="limit", reads=("tp", "depth"), holds=lambda tp, depth: tp * depth < limit
        )

    before = space(constraints=[WORLD, predicate(20)])
    after = space(
        constraints=[Product(name="world", factors=("tp", "pp"), equals=16), predicate(10)],
        conditions=[Condition(parameter="depth", active_when={"pp": (4,)}, otherwise=1)],
        compounds=[Compound(name="both", parameters=("schedule",), choices=(("gpipe",),))],
    )
    assert before.difference(after) == [
        "constraint limit: holds for other values than before",
        "constraint world: equals was 8, is 16",
        "condition depth: added",
        "compound both: added",
    ]
    wider = space({"depth": IntDistribution(1, 5)}, constraints=[WORLD, predicate(20)])
    assert before.difference(wider) == ["parameter depth: was int 1 to 3, is int 1 to 5"]


def test_the_fingerprint_is_of_what_is_valid() -> None:
    def same(pp: np.ndarray, depth: np.ndarray) -> np.ndarray:
        return ~(pp <= depth)

    first = Predicate(name="rule", reads=("pp", "depth"), holds=lambda pp, depth: pp > depth)
    second = Predicate(name="rule", reads=("pp", "depth"), holds=same, description="deep enough")
    a = space(constraints=[WORLD, first])
    b = space(constraints=[second, WORLD], defaults={"depth": 1}, aliases={"tp": {16: 8}})
    assert a.fingerprint == b.fingerprint
    assert a.difference(b) == []
    other = Predicate(name="rule", reads=("pp", "depth"), holds=lambda pp, depth: pp >= depth)
    assert space(constraints=[WORLD, other]).fingerprint != a.fingerprint


@pytest.mark.parametrize("name", ["tp", "schedule"])
def test_reordered_choices_are_a_change_that_keeps_every_config(name: str) -> None:
    distribution = PARAMETERS[name]
    assert isinstance(distribution, CategoricalDistribution)
    new = space({name: CategoricalDistribution(distribution.choices[::-1])})
    assert space().difference(new) == [f"parameter {name}: choices in another order"]
    assert new.adopt(OLD) == OLD


def test_an_inactive_added_parameter_is_fixed_whatever_its_default() -> None:
    new = space(
        {"virtual": IntDistribution(1, 4)},
        conditions=[
            Condition(parameter="virtual", active_when={"schedule": ("one_f_one_b",)}, otherwise=1)
        ],
        defaults={"virtual": 2},
    )
    assert new.adopt(OLD) == OLD | {"virtual": 1}
    active = OLD | {"schedule": "one_f_one_b"}
    assert new.adopt(active) == active | {"virtual": 2}
