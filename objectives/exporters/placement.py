"""Which physical node takes which node rank, so that a trainer's rank order gives a placement.

Trainers number their ranks in one or two fixed orders of the parallel dimensions. The config's
``dimension_order`` says how the dimensions lie over the machines. Any order can be had by
starting the nodes with other node ranks, as long as the GPUs of one node stay together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from objectives.exporters.job import Job
from objectives.physics.layout import split_order


def node_ranks(job: Job, trainer_order: Sequence[str]) -> NDArray[np.int64]:
    """The node rank of each physical node, in the order of the cluster's buildings.

    Args:
        job: Its ``dimension_order`` is the physical order.
        trainer_order: The trainer's order of ranks, inner to outer.

    Returns:
        Shape (nodes,).

    Raises:
        Inexpressible: If the trainer would spread one node's GPUs over several nodes, or the
            buildings have nodes of different sizes.
    """
    sizes = {building.gpus_per_node for building in job.scenario.cluster.buildings}
    if len(sizes) > 1:
        raise job.refusal(
            "dimension_order",
            f"the launcher starts equally many processes on every node, and the nodes have "
            f"{sorted(sizes)} GPUs",
        )
    per_node = sizes.pop()
    ranks = _rank_of_position(job, trainer_order).reshape(-1, per_node)
    whole = (ranks[:, 0] % per_node == 0) & (np.diff(ranks, axis=1) == 1).all(axis=1)
    if not whole.all():
        order = "-".join(trainer_order)
        raise job.refusal(
            "dimension_order",
            f"its ranks go {order} from inner to outer, which would tear the {per_node} GPUs of "
            f"a node apart; expressible: {order} and every order that fills a node with the same "
            f"ranks",
        )
    return np.asarray(ranks[:, 0] // per_node, dtype=np.int64)


def node_rank_file(job: Job, trainer_order: Sequence[str]) -> str | None:
    """A CSV table of `node_ranks`, or None when every node takes its own number."""
    ranks = node_ranks(job, trainer_order)
    if np.array_equal(ranks, np.arange(len(ranks))):
        return None
    lines = ["building,node,node_rank"]
    start = 0
    for building in job.scenario.cluster.buildings:
        nodes = building.gpus // building.gpus_per_node
        chosen = ranks[start : start + nodes]
        lines += [f"{building.name},{node},{rank}" for node, rank in enumerate(chosen)]
        start += nodes
    return "\n".join(lines) + "\n"


def crosses_buildings(job: Job, dimensions: Sequence[str]) -> bool:
    """Whether the groups formed over some dimensions have members in several buildings."""
    counts = [building.gpus for building in job.scenario.cluster.buildings]
    building = np.repeat(np.arange(len(counts)), counts)
    outer_first = _outer_first(job)
    grid = building.reshape([job.degree(name) for name in outer_first])
    axes = tuple(outer_first.index(name) for name in dimensions)
    return bool((grid.max(axis=axes) != grid.min(axis=axes)).any())


def _outer_first(job: Job) -> tuple[str, ...]:
    return split_order(str(job.config["dimension_order"]))[::-1]


def _rank_of_position(job: Job, trainer_order: Sequence[str]) -> NDArray[np.int64]:
    outer_first = _outer_first(job)
    shape = [job.degree(name) for name in outer_first]
    positions = np.arange(np.prod(shape)).reshape(shape)
    axes = [outer_first.index(name) for name in reversed(trainer_order)]
    position_of_rank = positions.transpose(axes).ravel()
    return np.argsort(position_of_rank).astype(np.int64)
