"""Small problems with known answers that the contract suites run on."""

from __future__ import annotations

import itertools

from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from autotune.evaluation import Evaluation, FailureKind
from autotune.objective import Config, ObjectiveFactory, objective
from autotune.space import Compound, Condition, Divides, Product, SearchSpace

GPUS = 64
"""What the degrees of `coupled_space` multiply to."""


def coupled_space() -> SearchSpace:
    """A miniature of the domain: a product, a divisibility, a condition and a compound."""
    return SearchSpace(
        {
            "tensor": CategoricalDistribution([1, 2, 4, 8]),
            "pipeline": CategoricalDistribution([1, 2, 4, 8, 16]),
            "data": CategoricalDistribution([1, 2, 4, 8, 16, 32, 64]),
            "expert": CategoricalDistribution([1, 2, 4, 8]),
            "schedule": CategoricalDistribution(["1F1B", "Interleaved1F1B"]),
            "virtual": IntDistribution(1, 4),
            "overlap": CategoricalDistribution([False, True]),
            "offload": FloatDistribution(0.0, 1.0),
            "transport": CategoricalDistribution(["tcp", "rdma"]),
            "connections": CategoricalDistribution([1, 4, 16]),
        },
        constraints=[
            Product(
                name="every GPU has a rank", factors=("tensor", "pipeline", "data"), equals=GPUS
            ),
            Divides(name="experts spread over data ranks", divisor=("expert",), dividend=("data",)),
        ],
        conditions=[
            Condition(
                parameter="virtual", active_when={"schedule": ("Interleaved1F1B",)}, otherwise=1
            )
        ],
        compounds=[
            Compound(
                name="link",
                parameters=("transport", "connections"),
                choices=(("tcp", 4), ("tcp", 16), ("rdma", 1), ("rdma", 4)),
            )
        ],
    )


@objective(metrics=["time_s", "traffic_byte"], constraints=["memory_over_byte"], cost_s=1e-5)
def coupled(config: Config) -> dict[str, float]:
    """Time against traffic over `coupled_space`; nearly half of it runs out of memory.

    Args:
        config: Of `coupled_space`.
    """
    tensor, pipeline, data = config["tensor"], config["pipeline"], config["data"]
    bubble = (pipeline - 1) / (16 * config["virtual"])
    exposed = 0.3 if config["overlap"] else 1.0
    link = {"tcp": 1.5, "rdma": 1.0}[config["transport"]] / config["connections"] ** 0.25
    traffic = (data - 1) / data * 10 + 0.1 * config["virtual"]
    time_s = 1 + bubble + 0.05 * tensor + exposed * 0.2 * traffic * link + 0.4 * config["offload"]
    memory = 40 / (tensor * pipeline) + 8 / config["expert"] + 1.0 * config["virtual"]
    return {
        "time_s": time_s,
        "traffic_byte": traffic,
        "memory_over_byte": memory * (1 - 0.5 * config["offload"]) - 10,
    }


def grid_space() -> SearchSpace:
    """Thirty-two points: a search that never asks twice measures each of them once."""
    return SearchSpace(
        {
            "a": IntDistribution(0, 3),
            "b": CategoricalDistribution(["p", "q"]),
            "c": CategoricalDistribution([1, 10, 100, 1000]),
        }
    )


def grid_loss(config: Config) -> dict[str, float]:
    """A sum over `grid_space` with its one minimum, 1, at a = 0, b = p, c = 1."""
    return {"loss": config["a"] + (config["b"] == "q") + config["c"]}


grid = objective(metrics=["loss"], name="grid", cost_s=1e-5)(grid_loss)
"""`grid_loss` as an objective."""


def failing_first(n: int) -> ObjectiveFactory:
    """`grid`, but its first evaluations run out of memory, whatever the config.

    Args:
        n: How many fail, counted over all objectives that the factory makes.
    """
    count = itertools.count(1)

    @objective(metrics=["loss"], name=f"first-{n}-fail", cost_s=1e-5)
    def loss(config: Config) -> Evaluation | dict[str, float]:
        if (i := next(count)) <= n:
            return Evaluation.failure(FailureKind.OOM, f"evaluation {i} of {n} that fail")
        return grid_loss(config)

    return loss
