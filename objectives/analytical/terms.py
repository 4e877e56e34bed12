"""Seconds by term: how parts of a step are named, added and weighed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from objectives.physics.arrays import FloatArray

COMPUTE, RECOMPUTE, OFFLOAD, SLOWDOWN = "compute", "recompute", "offload", "overlap slowdown"
BUBBLE, OPTIMIZER = "bubble", "optimizer"

Terms = dict[str, FloatArray]
"""Seconds by term, arrays of shape (n,); communication by the name of its collective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Seconds of one part per microbatch by term.

    Attributes:
        forward: Of the forward pass.
        backward: Of the backward pass but for weight gradients.
        weight: Of weight gradients, which no other stage waits for.
    """

    forward: Terms
    backward: Terms
    weight: Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a rank does per microbatch, as multiples of the parts.

    Attributes:
        dense: Layers with a plain MLP.
        expert: Layers with experts.
        embedding: Embeddings, 0 or 1.
        head: Heads, more than one with multi-token prediction.
    """

    dense: FloatArray
    expert: FloatArray
    embedding: FloatArray
    head: FloatArray

    def weigh(self, values: Mapping[str, FloatArray]) -> FloatArray:
        """Sum of the parts' values times how often each is done.

        Args:
            values: By ``dense``, ``expert``, ``embedding``, ``head``; absent ones are not done.
        """
        return total(getattr(self, name) * value for name, value in values.items())


def total(values: Iterable[FloatArray]) -> FloatArray:
    """Sum of arrays that broadcast; there is at least one."""
    rest = iter(values)
    result = next(rest)
    for value in rest:
        result = result + value
    return result


def add(terms: Terms, name: str, seconds: FloatArray) -> None:
    """Add to one term, which may be new."""
    terms[name] = terms[name] + seconds if name in terms else seconds


def merge(terms: Terms, more: Mapping[str, FloatArray]) -> None:
    """Add all of some terms to others."""
    for name, seconds in more.items():
        add(terms, name, seconds)
