"""Configs as a numeric matrix for surrogate models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.errors import InvalidInput
from autotune.jsonable import canonical_json
from autotune.space.arrays import Floats
from autotune.space.domains import ChoiceDomain, ContinuousDomain, Domain


def feature_names(domains: Mapping[str, Domain]) -> tuple[str, ...]:
    """One name per column: the parameter, or ``parameter=choice`` for each unordered choice."""
    names: list[str] = []
    for name, domain in domains.items():
        if isinstance(domain, ChoiceDomain) and domain.places is None:
            names += [f"{name}={_label(value)}" for value in domain.values]
        else:
            names.append(name)
    return tuple(names)


def _label(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value)


def encode(domains: Mapping[str, Domain], columns: Mapping[str, NDArray[Any]]) -> Floats:
    """Values as numbers on [0, 1], shape (n, len(feature_names)).

    Ordered parameters take one column (see `ChoiceDomain.places` for listed numbers), others one
    column of 0 and 1 per choice.

    Raises:
        InvalidInput: If a parameter is missing or a value is outside its domain.
    """
    blocks = []
    for name, domain in domains.items():
        if name not in columns:
            raise InvalidInput("configs to encode", f"every config must have {name!r}")
        blocks.append(_block(name, domain, columns[name]))
    return np.concatenate(blocks, axis=1)


def _block(name: str, domain: Domain, column: NDArray[Any]) -> Floats:
    if isinstance(domain, ContinuousDomain):
        values = np.asarray(column, dtype=np.float64)
        if not ((values >= domain.low) & (values <= domain.high)).all():
            raise InvalidInput("configs to encode", f"{name} must be {domain.describe()}")
        return domain.placed(values)[:, None]
    numbers = domain.indices(column)
    if len(outside := np.flatnonzero(numbers < 0)):
        value = column[outside[0]]
        raise InvalidInput(
            "configs to encode", f"{name} must be {domain.describe()}, got {value!r}"
        )
    if isinstance(domain, ChoiceDomain) and domain.places is None:
        return np.eye(domain.size)[numbers]
    return domain.placed(numbers)[:, None]


def rows_to_columns(
    names: Sequence[str], configs: Sequence[Mapping[str, Any]]
) -> dict[str, NDArray[Any]]:
    """A list of configs as one object array of shape (n,) per parameter.

    Raises:
        InvalidInput: If a config lacks a parameter.
    """
    columns = {}
    for name in names:
        column = np.empty(len(configs), dtype=np.object_)
        for i, config in enumerate(configs):
            if name not in config:
                raise InvalidInput(f"config {i}", f"must have {name!r}")
            column[i] = config[name]
        columns[name] = column
    return columns
