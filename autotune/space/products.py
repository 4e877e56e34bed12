"""Products and divisibility as relations, without listing combinations.

A product of many parameters is a chain of partial products. Each is an auxiliary variable whose
states are the distinct values it can take, of which there are few: the divisors of the number of
GPUs, not the twelfth power of the number of choices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from autotune.errors import InvalidInput
from autotune.space.arrays import Indices, Truth
from autotune.space.constraints import MAX_PRODUCT, Divides, Product
from autotune.space.graph import FactorGraph
from autotune.space.relations import MAX_ROWS, TooWide


def add_product(graph: FactorGraph, product: Product) -> None:
    """Compile a product: the partial product of all factors but one, times that one."""
    *first, last = list(graph.chained(product.name, product.factors).items())
    last_values = _unit_values(graph, product.name, *last)
    if not first:
        rows = np.flatnonzero(last_values == product.equals)[:, None]
        graph.add([last[0]], rows, product.name)
        return
    variable, values = _chain(graph, product.name, dict(first), of=np.array([product.equals]))
    # a == N / b and no remainder, without forming a·b, which may overflow
    rows = _pairs(
        values,
        last_values,
        lambda a, b: (a == product.equals // b) & (product.equals % b == 0),
        product.name,
    )
    graph.add([variable, last[0]], rows, product.name)


def add_divides(graph: FactorGraph, divides: Divides) -> None:
    """Compile a divisibility between two products, or of a number."""
    if isinstance(divides.dividend, int):
        right, dividends = None, np.array([divides.dividend])
    else:
        right, dividends = _chain(
            graph, divides.name, graph.chained(divides.name, divides.dividend), of=None
        )
    left, divisors = _chain(
        graph, divides.name, graph.chained(divides.name, divides.divisor), of=dividends
    )
    if right is None or right == left:
        rows = np.flatnonzero(dividends % divisors == 0)[:, None]
        graph.add([left], rows, divides.name)
        return
    rows = _pairs(divisors, dividends, lambda a, b: b % a == 0, divides.name)
    graph.add([left, right], rows, divides.name)


def _chain(
    graph: FactorGraph, name: str, units: Mapping[int, tuple[str, ...]], of: Indices | None
) -> tuple[int, Indices]:
    """Multiply units one by one, with an auxiliary variable for each partial product.

    Only products that occur (and, with `of`, divide one of these numbers) become states, so that
    the table grows with the number of distinct products and not of combinations.

    Returns:
        The variable of the whole product and its value by state.
    """
    (variable, members), *rest = units.items()
    values = _unit_values(graph, name, variable, members)
    limit = MAX_PRODUCT if of is None else int(of.max(initial=1))
    for unit, members in rest:
        factors = _unit_values(graph, name, unit, members)
        if of is None and int(values.max(initial=1)) * int(factors.max(initial=1)) > limit:
            raise InvalidInput(f"constraint {name!r}", "its products must not exceed 2^62")
        rows = _pairs(values, factors, lambda a, b: a <= limit // b, name)
        products = values[rows[:, 0]] * factors[rows[:, 1]]
        distinct, state = np.unique(products, return_inverse=True)
        useful = _divides_any(distinct, of)
        renumbered = np.cumsum(useful) - 1
        kept = useful[state]
        auxiliary = len(graph.sizes)
        graph.sizes.append(max(int(useful.sum()), 1))
        rows = np.column_stack([rows[kept], renumbered[state[kept]]])
        graph.add([variable, unit, auxiliary], rows, name)
        variable, values = auxiliary, distinct[useful]
    return variable, values


def _divides_any(products: Indices, of: Indices | None) -> Truth:
    if of is None or len(products) * len(of) > MAX_ROWS:
        return np.ones(len(products), dtype=np.bool_)
    divides: Truth = (of[None, :] % products[:, None] == 0).any(axis=1)
    return divides


def _pairs(
    left: Indices, right: Indices, rule: Callable[[Indices, Indices], Truth], name: str
) -> Indices:
    if len(left) * len(right) > MAX_ROWS:
        raise TooWide(len(left) * len(right), frozenset((name,)))
    return np.argwhere(rule(left[:, None], right[None, :]))


def _unit_values(graph: FactorGraph, name: str, unit: int, members: Sequence[str]) -> Indices:
    product = np.ones(graph.sizes[unit], dtype=np.int64)
    size = 1.0
    for member in members:
        values = graph.values(unit, member)
        if values.dtype.kind != "i" or values.min() < 1:
            raise InvalidInput(
                f"constraint {name!r}",
                f"the values of {member} must be positive integers, it is "
                f"{graph.domains[member].describe()}",
            )
        size *= float(values.max())
        product = product * values
    if size > MAX_PRODUCT:
        raise InvalidInput(f"constraint {name!r}", "its products must not exceed 2^62")
    return product
