"""Small random spaces, compared with the full Cartesian product."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from autotune import Compound, Condition, Divides, InvalidInput, Predicate, Product, SearchSpace

KINDS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "degrees": (CategoricalDistribution((1, 2, 4, 8)), (1, 2, 4, 8)),
    "numbers": (CategoricalDistribution((3, 1, 2)), (3, 1, 2)),
    "flags": (CategoricalDistribution((True, False)), (True, False)),
    "texts": (CategoricalDistribution(("ring", "tree", "none")), ("ring", "tree", "none")),
    "mixed": (CategoricalDistribution((None, 1, "1", True)), (None, 1, "1", True)),
    "int": (IntDistribution(1, 4), (1, 2, 3, 4)),
    "even": (IntDistribution(2, 6, step=2), (2, 4, 6)),
    "step": (FloatDistribution(0.1, 0.4, step=0.1), (0.1, 0.2, 0.3, 0.4)),
    "single": (IntDistribution(2, 2), (2,)),
}
"""Distributions and their values."""

WHOLE = [kind for kind, (_, values) in KINDS.items() if all(type(v) is int for v in values)]


@dataclass(frozen=True)
class Table:
    """A predicate that answers from a set of pairs of value numbers."""

    values: Mapping[str, tuple[Any, ...]]
    forbidden: frozenset[tuple[int, ...]]

    def __call__(self, **columns: Any) -> np.ndarray:
        rows = zip(*(columns[name] for name in self.values), strict=True)
        return np.array([self.scalar(row) for row in rows], dtype=bool)

    def scalar(self, row: tuple[Any, ...]) -> bool:
        numbers = tuple(
            next(i for i, v in enumerate(values) if same(v, value))
            for values, value in zip(self.values.values(), row, strict=True)
        )
        return numbers not in self.forbidden


def same(a: Any, b: Any) -> bool:
    a, b = (x.item() if isinstance(x, np.generic) else x for x in (a, b))
    return isinstance(a, bool) == isinstance(b, bool) and a == b


def some(names: list[str], most: int) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(names), min_size=1, max_size=most, unique=True)


@st.composite
def spaces(draw: st.DrawFn) -> SearchSpace:
    kinds = draw(st.lists(st.sampled_from([*KINDS, *WHOLE]), min_size=2, max_size=6))
    names = {f"p{i}": kind for i, kind in enumerate(kinds)}
    values = {name: KINDS[kind][1] for name, kind in names.items()}
    rules = draw(arithmetic([name for name, kind in names.items() if kind in WHOLE]))
    rules += draw(st.lists(predicates(values), max_size=3))
    try:
        return SearchSpace(
            {name: KINDS[kind][0] for name, kind in names.items()},
            constraints=[replace(rule, name=f"{rule.name} {i}") for i, rule in enumerate(rules)],
            conditions=draw(
                st.lists(conditions(values), max_size=2, unique_by=lambda c: c.parameter)
            ),
            compounds=draw(st.lists(compounds(values), max_size=1)),
        )
    except InvalidInput as error:
        assume("no config satisfies" not in str(error))
        raise


@st.composite
def arithmetic(draw: st.DrawFn, whole: list[str]) -> list[Any]:
    rules: list[Any] = []
    if whole and draw(st.booleans()):
        equals = draw(st.sampled_from((2, 4, 6, 8, 24)))
        rules.append(Product(name="product", factors=draw(some(whole, 5)), equals=equals))
    if whole and draw(st.booleans()):
        dividend = draw(st.one_of(st.just(12), some(whole, 3)))
        rules.append(Divides(name="divides", divisor=draw(some(whole, 3)), dividend=dividend))
    return rules


@st.composite
def predicates(draw: st.DrawFn, values: dict[str, tuple[Any, ...]]) -> Predicate:
    read = {name: values[name] for name in draw(some(list(values), 3))}
    cells = list(itertools.product(*(range(len(v)) for v in read.values())))
    forbidden = draw(st.lists(st.sampled_from(cells), max_size=len(cells) // 2 + 1))
    return Predicate(name="predicate", reads=list(read), holds=Table(read, frozenset(forbidden)))


@st.composite
def conditions(draw: st.DrawFn, values: dict[str, tuple[Any, ...]]) -> Condition:
    name = draw(st.sampled_from(list(values)))
    parents = draw(some([other for other in values if other != name], 2))
    return Condition(
        parameter=name,
        active_when={
            parent: draw(st.lists(st.sampled_from(values[parent]), min_size=1, max_size=2))
            for parent in parents
        },
        otherwise=draw(st.sampled_from(values[name])),
    )


@st.composite
def compounds(draw: st.DrawFn, values: dict[str, tuple[Any, ...]]) -> Compound:
    members = draw(some(list(values), 3))
    joint = list(itertools.product(*(values[name] for name in members)))
    chosen = draw(st.lists(st.integers(0, len(joint) - 1), min_size=1, max_size=8, unique=True))
    return Compound(name="joint", parameters=members, choices=[joint[i] for i in chosen])


def all_values(space: SearchSpace) -> dict[str, tuple[Any, ...]]:
    known = {id(distribution): values for distribution, values in KINDS.values()}
    return {name: known[id(d)] for name, d in space.parameters.items()}


def holds(space: SearchSpace, config: Mapping[str, Any]) -> bool:
    for rule in space.constraints:
        if isinstance(rule, Product):
            if math.prod(config[n] for n in rule.factors) != rule.equals:
                return False
        elif isinstance(rule, Divides):
            of = rule.dividend
            right = of if isinstance(of, int) else math.prod(config[n] for n in of)
            if right % math.prod(config[n] for n in rule.divisor):
                return False
        elif not rule.holds.scalar(tuple(config[n] for n in rule.reads)):
            return False
    for compound in space.compounds:
        got = [config[n] for n in compound.parameters]
        if not any(all(map(same, got, choice)) for choice in compound.choices):
            return False
    return all(
        active(c, config) or same(config[c.parameter], c.otherwise) for c in space.conditions
    )


def active(condition: Condition, config: Mapping[str, Any]) -> bool:
    return all(
        any(same(config[n], v) for v in values) for n, values in condition.active_when.items()
    )


def brute_force(space: SearchSpace) -> list[dict[str, Any]]:
    values = all_values(space)
    every = (dict(zip(values, row, strict=True)) for row in itertools.product(*values.values()))
    return [config for config in every if holds(space, config)]


def place(space: SearchSpace, name: str, value: Any) -> float | None:
    """Position of an ordered value on [0, 1]; None without order."""
    values = all_values(space)[name]
    if all(isinstance(v, bool) for v in values):
        return float(value)
    if any(isinstance(v, bool) or not isinstance(v, int | float) for v in values):
        return None
    if isinstance(space.parameters[name], CategoricalDistribution):
        return sorted(values).index(value) / max(len(values) - 1, 1)
    low, high = min(values), max(values)
    return (value - low) / (high - low) if high > low else 0.0


def cost(space: SearchSpace, config: Mapping[str, Any], wanted: Mapping[str, Any]) -> float:
    joint = {n for compound in space.compounds for n in compound.parameters}
    idle = {
        c.parameter for c in space.conditions if not active(c, config) and c.parameter not in joint
    }
    total = 0.0
    for name, value in config.items():
        if name in idle or name not in wanted:
            continue
        a, b = place(space, name, value), place(space, name, wanted[name])
        total += float(not same(value, wanted[name])) if a is None else abs(a - b)
    return total


@settings(max_examples=150, deadline=None)
@given(spaces())
def test_enumerates_exactly_the_valid_configs(space: SearchSpace) -> None:
    expected = {space.key(config) for config in brute_force(space)}
    found = [space.key(c) for columns in space.enumerate(7) for c in space.configs(columns)]
    assert space.count() == len(found) == len(expected)
    assert set(found) == expected


@settings(max_examples=100, deadline=None)
@given(spaces())
def test_contains_and_explain_agree_with_the_rules(space: SearchSpace) -> None:
    values = all_values(space)
    rows = list(itertools.islice(itertools.product(*values.values()), 400))
    for row in rows:
        config = dict(zip(values, row, strict=True))
        assert space.contains(config) == holds(space, config) == (space.explain(config) == [])


@settings(max_examples=100, deadline=None)
@given(spaces(), st.integers(0, 10))
def test_samples_are_valid(space: SearchSpace, seed: int) -> None:
    for config in space.sample(20, seed=seed):
        assert holds(space, config)
        assert space.contains(config)
        assert list(config) == list(space.names)


@settings(max_examples=150, deadline=None)
@given(spaces(), st.data())
def test_projection_is_nearest_also_when_the_nearer_are_excluded(
    space: SearchSpace, data: st.DataObject
) -> None:
    wanted = {name: data.draw(st.sampled_from(v)) for name, v in all_values(space).items()}
    for name in data.draw(st.lists(st.sampled_from(space.names), max_size=2)):
        wanted.pop(name, None)
    costs = sorted(cost(space, config, wanted) for config in brute_force(space))[:40]
    excluded: set[str] = set()
    for expected in costs:
        found = space.project(wanted, exclude=excluded)
        assert found is not None
        assert holds(space, found)
        # A valid config is left as it is, even where another one costs nothing either.
        if excluded or not space.contains(wanted):
            assert math.isclose(cost(space, found, wanted), expected, abs_tol=1e-9)
        excluded.add(space.key(found))
    assert len(excluded) == len(costs)
    if len(costs) == space.count():
        assert space.project(wanted, exclude=excluded) is None


@settings(max_examples=60, deadline=None)
@given(spaces())
def test_other_forms_lose_nothing(space: SearchSpace) -> None:
    again = SearchSpace.from_json(space.to_json())
    assert again.fingerprint == space.fingerprint
    assert again.difference(space) == []
    configs = space.sample(5, seed=3)
    assert again.sample(5, seed=3) == configs
    for config in configs:
        assert space.key(space.from_optuna(space.to_optuna(config))) == space.key(config)
        assert space.adopt(config, old=space) == config
    matrix = space.encode(configs)
    assert matrix.shape == (5, len(space.feature_names))
    assert ((matrix >= 0) & (matrix <= 1)).all()
    columns = space.sample_columns(5, seed=3)
    assert (space.encode(columns) == matrix).all()
