"""Where the ranks of each parallel dimension sit: degrees, strides and groups of n configs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from objectives.physics.arrays import BoolArray, IntArray

DEGREE_COLUMNS: Mapping[str, str] = {
    "tp": "tensor_parallel_degree",
    "cp": "context_parallel_degree",
    "pp": "pipeline_parallel_degree",
    "shard": "data_parallel_shard_degree",
    "replicate": "data_parallel_replicate_degree",
}
"""The five dimensions as `dimension_order` spells them, and the knob that holds each degree."""

DIMENSIONS = tuple(DEGREE_COLUMNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Ranks that take part in one collective: the product of one or more axes.

    Attributes:
        sizes: Ranks along each axis, arrays of shape (n,), innermost axis first.
        strides: Distance in GPUs between neighbours along each axis, arrays of shape (n,).
    """

    sizes: tuple[IntArray, ...]
    strides: tuple[IntArray, ...]

    @property
    def size(self) -> IntArray:
        """Ranks in the group, shape (n,)."""
        product: IntArray = np.prod(np.stack(self.sizes), axis=0, dtype=np.int64)
        return product


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How n configs lay one job over the GPUs, which are numbered node by node.

    The rank at digits d has GPU number sum(d_i * stride_i). The innermost dimension has stride
    1; each next one strides over everything further in.

    Attributes:
        degrees: Ranks of each dimension by its short name, arrays of shape (n,).
        strides: Distance in GPUs between neighbours of each dimension, arrays of shape (n,).
        expert: Ranks that share out the experts, taken from the innermost of cp and shard.
        microbatch_size: Sequences per microbatch.
        microbatches: Microbatches per pipeline and step, rounded down.
        virtual_stages: Chunks of layers that each pipeline rank holds.
    """

    degrees: Mapping[str, IntArray]
    strides: Mapping[str, IntArray]
    expert: IntArray
    microbatch_size: IntArray
    microbatches: IntArray
    virtual_stages: IntArray

    @property
    def data(self) -> IntArray:
        """Pipelines that work on different sequences: shard times replicate."""
        return self.degrees["shard"] * self.degrees["replicate"]

    @property
    def world(self) -> IntArray:
        """GPUs that the config uses."""
        return self.group(*DIMENSIONS).size

    @property
    def experts_divide(self) -> BoolArray:
        """Where the expert degree divides the ranks that hold the shards."""
        holders = self.degrees["cp"] * self.degrees["shard"]
        return np.asarray(holders % self.expert == 0)

    def group(self, *dimensions: str) -> Group:
        """Ranks that differ only along the given dimensions.

        Args:
            dimensions: Short names such as ``"cp", "shard"``.
        """
        return Group(
            sizes=tuple(self.degrees[name] for name in dimensions),
            strides=tuple(self.strides[name] for name in dimensions),
        )

    def expert_group(self) -> Group:
        """Ranks that hold different experts of one layer and exchange tokens."""
        inner, outer = self._expert_axes()
        return Group(sizes=(inner[0], outer[0]), strides=(inner[1], outer[1]))

    def expert_shard_group(self) -> Group:
        """Ranks of the shard group that hold the same experts, and shard them further."""
        inner, outer = self._expert_axes()
        held = (self._inner(self.degrees) // inner[0], self._outer(self.degrees) // outer[0])
        strides = (inner[1] * inner[0], outer[1] * outer[0])
        return Group(sizes=held, strides=strides)

    def _expert_axes(self) -> tuple[tuple[IntArray, IntArray], tuple[IntArray, IntArray]]:
        inner_size = np.gcd(self.expert, self._inner(self.degrees))
        outer_size = np.gcd(self.expert // inner_size, self._outer(self.degrees))
        return (inner_size, self._inner(self.strides)), (outer_size, self._outer(self.strides))

    def _inner(self, values: Mapping[str, IntArray]) -> IntArray:
        context_is_inner = self.strides["cp"] <= self.strides["shard"]
        return np.where(context_is_inner, values["cp"], values["shard"])

    def _outer(self, values: Mapping[str, IntArray]) -> IntArray:
        context_is_inner = self.strides["cp"] <= self.strides["shard"]
        return np.where(context_is_inner, values["shard"], values["cp"])


def parse_layout(columns: Mapping[str, NDArray[Any]], *, global_batch_sequences: int) -> Layout:
    """Read the layout of n configs from their columns.

    Args:
        columns: Arrays of shape (n,) by knob. A missing ``expert_parallel_degree`` means 1.
        global_batch_sequences: Sequences per step over all ranks.

    Raises:
        ValueError: If a ``dimension_order`` does not name each dimension once.
    """
    degrees = {name: _integers(columns[knob]) for name, knob in DEGREE_COLUMNS.items()}
    ones = np.ones_like(degrees["tp"])
    data = degrees["shard"] * degrees["replicate"]
    microbatch_size = _integers(columns["microbatch_size"])
    return Layout(
        degrees=degrees,
        strides=_strides(degrees, np.asarray(columns["dimension_order"])),
        expert=_integers(columns.get("expert_parallel_degree", ones)),
        microbatch_size=microbatch_size,
        microbatches=global_batch_sequences // (data * microbatch_size),
        virtual_stages=_integers(columns.get("virtual_stages_per_rank", ones)),
    )


def split_order(order: str) -> tuple[str, ...]:
    """The dimensions of a text such as ``tp-cp-pp-shard-replicate``, innermost first.

    Raises:
        ValueError: If it does not name each dimension once.
    """
    names = tuple(order.split("-"))
    if sorted(names) != sorted(DIMENSIONS):
        raise ValueError(
            f"dimension_order must name each of {', '.join(DIMENSIONS)} once, "
            f"joined by '-', got {order!r}"
        )
    return names


def _strides(degrees: Mapping[str, IntArray], orders: NDArray[Any]) -> dict[str, IntArray]:
    strides = {name: np.ones_like(degree) for name, degree in degrees.items()}
    for order in set(orders.tolist()):
        rows = np.flatnonzero(orders == order)
        stride = np.ones(len(rows), dtype=np.int64)
        for name in split_order(order):
            strides[name][rows] = stride
            stride = stride * degrees[name][rows]
    return strides


def _integers(values: NDArray[Any]) -> IntArray:
    return np.asarray(values).astype(np.int64)
