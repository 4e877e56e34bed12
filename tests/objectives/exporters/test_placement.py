from itertools import permutations
from typing import Any

import numpy as np
import pytest

from autotune import DesignPoint, Unsupported
from objectives.exporters.job import make_job
from objectives.exporters.placement import crosses_buildings, node_rank_file, node_ranks
from objectives.physics.layout import DIMENSIONS

TRAINER = ("tp", "cp", "shard", "replicate", "pp")


def coordinates(position: int, order: list[str], degree: dict[str, int]) -> dict[str, int]:
    digits = {}
    for name in order:
        digits[name] = position % degree[name]
        position //= degree[name]
    return digits


@pytest.mark.parametrize("order", ["-".join(rest) for rest in permutations(DIMENSIONS)][::7])
def test_every_gpu_gets_the_rank_with_its_coordinates(
    llama_8b: DesignPoint, small: dict[str, Any], order: str
) -> None:
    job = make_job("test", llama_8b, {**small, "dimension_order": order})
    degree = {name: job.degree(name) for name in DIMENSIONS}
    expected = []
    for position in range(32):
        digits = coordinates(position, order.split("-"), degree)
        rank = 0
        for name in reversed(TRAINER):
            rank = rank * degree[name] + digits[name]
        expected.append(rank)
    rows = np.array(expected).reshape(-1, 8)
    if ((rows - rows[:, :1] == np.arange(8)) & (rows[:, :1] % 8 == 0)).all():
        assert (node_ranks(job, TRAINER) * 8).tolist() == rows[:, 0].tolist()
    else:
        with pytest.raises(Unsupported, match="dimension_order="):
            node_ranks(job, TRAINER)


def test_the_same_order_needs_no_file(llama_8b: DesignPoint, small: dict[str, Any]) -> None:
    job = make_job("test", llama_8b, {**small, "dimension_order": "tp-cp-shard-replicate-pp"})
    assert node_rank_file(job, TRAINER) is None


def test_the_file_names_every_node_once(
    llama_405b: DesignPoint, production: dict[str, Any]
) -> None:
    text = node_rank_file(make_job("test", llama_405b, production), TRAINER)
    assert text is not None
    head, *rows = text.splitlines()
    assert head == "building,node,node_rank"
    assert rows[1] == "east,1,128"
    assert len(rows) == 2048
    assert sorted(int(row.split(",")[2]) for row in rows) == list(range(2048))


def test_which_dimensions_cross(llama_405b: DesignPoint, production: dict[str, Any]) -> None:
    job = make_job("test", llama_405b, production)
    assert crosses_buildings(job, ("cp", "shard"))
    assert not crosses_buildings(job, ("tp", "cp", "pp"))
    order = "tp-cp-shard-replicate-pp"
    job = make_job("test", llama_405b, {**production, "dimension_order": order})
    assert crosses_buildings(job, ("pp",))
    assert not crosses_buildings(job, ("shard",))
