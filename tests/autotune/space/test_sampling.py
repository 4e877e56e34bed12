from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from scipy.stats import chisquare, kstest

from autotune import Condition, Divides, InvalidInput, Predicate, Product, SearchSpace

DEGREES = CategoricalDistribution((1, 2, 4, 8, 16))


def coupled_space() -> SearchSpace:
    return SearchSpace(
        {
            "tp": DEGREES,
            "pp": DEGREES,
            "dp": DEGREES,
            "ep": CategoricalDistribution((1, 2, 4)),
            "schedule": CategoricalDistribution(("1F1B", "Interleaved1F1B")),
            "virtual": IntDistribution(1, 4),
        },
        constraints=[
            Product(name="world", factors=("tp", "pp", "dp"), equals=64),
            Divides(name="experts", divisor=("ep",), dividend=("dp",)),
            Predicate(
                name="layers", reads=("pp", "virtual"), holds=lambda pp, virtual: pp * virtual <= 16
            ),
        ],
        conditions=[
            Condition(
                parameter="virtual", active_when={"schedule": ("Interleaved1F1B",)}, otherwise=1
            )
        ],
    )


def known_count() -> int:
    total = 0
    for tp in (1, 2, 4, 8, 16):
        for pp in (1, 2, 4, 8, 16):
            dp = 64 // (tp * pp)
            if dp * tp * pp == 64 and dp <= 16:
                experts = sum(dp % ep == 0 for ep in (1, 2, 4))
                total += experts * (1 + sum(pp * virtual <= 16 for virtual in (1, 2, 3, 4)))
    return total


def test_uniform_over_a_coupled_space_of_known_count() -> None:
    space = coupled_space()
    assert space.count() == known_count() == 199
    n = 200 * space.count()
    drawn = Counter(map(space.key, space.sample(n, seed=7)))
    assert len(drawn) == space.count()
    assert chisquare(list(drawn.values())).pvalue > 1e-3


def test_no_draw_breaks_a_rule_of_related_parameters() -> None:
    space = coupled_space()
    columns = space.sample_columns(10_000, seed=0)
    assert (columns["tp"] * columns["pp"] * columns["dp"] == 64).all()
    assert (columns["dp"] % columns["ep"] == 0).all()
    assert (columns["virtual"][columns["schedule"] == "1F1B"] == 1).all()


def test_a_seed_gives_the_same_draw_however_the_space_was_written_down() -> None:
    space = coupled_space()
    turned = SearchSpace(
        dict(reversed(space.parameters.items())),
        constraints=space.constraints[::-1],
        conditions=space.conditions,
    )
    assert turned.fingerprint == space.fingerprint
    assert turned.sample(50, seed=3) == space.sample(50, seed=3)
    assert turned.sample(50, seed=4) != space.sample(50, seed=3)


def test_floats_are_drawn_alone_and_by_their_logarithm() -> None:
    space = SearchSpace(
        {
            "optimizer": CategoricalDistribution(("sgd", "adam")),
            "rate": FloatDistribution(1e-4, 1.0, log=True),
            "decay": FloatDistribution(0.0, 2.0),
            "momentum": FloatDistribution(0.0, 1.0),
        },
        conditions=[
            Condition(parameter="momentum", active_when={"optimizer": ("sgd",)}, otherwise=0)
        ],
    )
    columns = space.sample_columns(5_000, seed=1)
    assert kstest(np.log10(columns["rate"]) / 4 + 1, "uniform").pvalue > 1e-3
    assert kstest(columns["decay"] / 2, "uniform").pvalue > 1e-3
    assert (columns["momentum"][columns["optimizer"] == "adam"] == 0).all()
    assert (columns["momentum"][columns["optimizer"] == "sgd"] > 0).all()
    assert space.count() == 2
    assert all(map(space.contains, space.sample(20, seed=1)))
    with pytest.raises(InvalidInput, match="decay, momentum, rate is continuous"):
        space.enumerate()


def test_enumerates_in_chunks_of_a_size() -> None:
    space = coupled_space()
    chunks = list(space.enumerate(50))
    assert [len(chunk["tp"]) for chunk in chunks] == [50, 50, 50, 49]
    keys = {space.key(config) for chunk in chunks for config in space.configs(chunk)}
    assert len(keys) == 199
    with pytest.raises(InvalidInput, match="at least 1"):
        space.enumerate(0)


def test_columns_have_native_types_and_configs_plain_ones() -> None:
    space = SearchSpace(
        {
            "i": IntDistribution(1, 3),
            "f": FloatDistribution(0, 1, step=0.25),
            "b": CategoricalDistribution((True, False)),
            "s": CategoricalDistribution(("x", "yy")),
            "n": CategoricalDistribution((None, "x")),
        }
    )
    columns = space.sample_columns(4, seed=0)
    assert [columns[name].dtype.kind for name in space.names] == ["i", "f", "b", "U", "O"]
    for config in space.sample(20, seed=0):
        assert {name: type(value) for name, value in config.items() if name != "n"} == {
            "i": int,
            "f": float,
            "b": bool,
            "s": str,
        }


def test_twelve_parameters_of_twelve_values_under_one_product() -> None:
    names = [f"p{i}" for i in range(12)]
    twelve = CategoricalDistribution([2**i for i in range(12)])
    space = SearchSpace(
        dict.fromkeys(names, twelve),
        constraints=[Product(name="world", factors=names, equals=2**20)],
    )
    # Exponents 0..11 that sum to 20, by inclusion and exclusion.
    expected = sum((-1) ** k * math.comb(12, k) * math.comb(31 - 12 * k, 11) for k in range(2))
    assert space.count() == expected
    columns = space.sample_columns(2_000, seed=0)
    assert (np.prod([columns[name] for name in names], axis=0) == 2**20).all()
    assert space.contains(space.project(dict.fromkeys(names, 2048)))


@pytest.mark.parametrize("distance", range(1, 7))
def test_twelve_parameters_of_twelve_values_coupled_across(distance: int) -> None:
    names = [f"p{i}" for i in range(12)]

    def pair(i: int) -> Predicate:
        a, b = names[i], names[(i + distance) % 12]
        return Predicate(
            name=f"{a} and {b}", reads=(a, b), holds=lambda **read: (read[a] + read[b]) % 3 != i % 3
        )

    space = SearchSpace(
        {name: IntDistribution(1, 12) for name in names},
        constraints=[
            Product(name="product", factors=names, equals=2**10 * 3**5),
            *(pair(i) for i in range(12 if distance < 6 else 6)),
        ],
    )
    assert space.count() > 0
    for config in space.sample(50, seed=1):
        assert space.explain(config) == []
        assert math.prod(config.values()) == 2**10 * 3**5
    nearest = space.project(dict.fromkeys(names, 7))
    assert space.contains(nearest)


def test_counts_beyond_64_bits_are_exact_and_sampled() -> None:
    names = [f"p{i:02}" for i in range(40)]
    space = SearchSpace(
        {name: IntDistribution(0, 11) for name in names},
        constraints=[
            Predicate(
                name=f"{a} < {b}", reads=(a, b), holds=lambda **read: np.not_equal(*read.values())
            )
            for a, b in itertools.pairwise(names)
        ],
    )
    assert space.count() == 12 * 11**39
    configs = space.sample(200, seed=0)
    for config in configs:
        values = list(config.values())
        assert all(a != b for a, b in itertools.pairwise(values))
    first = Counter(config["p00"] for config in space.sample(1_200, seed=1))
    assert chisquare([first[value] for value in range(12)]).pvalue > 1e-3
    chunk = next(space.enumerate(100))
    assert len({space.key(config) for config in space.configs(chunk)}) == 100


def test_wide_ranges_that_nothing_reads_cost_nothing() -> None:
    space = SearchSpace(
        {f"n{i}": IntDistribution(1, 10**12) for i in range(10)}
        | {"bytes": IntDistribution(1, 2**40, log=True)}
    )
    assert space.count() == 10**120 * 2**40
    config = space.sample(1, seed=0)[0]
    assert space.contains(config)
    moved = space.project(config | {"n0": 10**13, "bytes": 0})
    assert moved == config | {"n0": 10**12, "bytes": 1}
