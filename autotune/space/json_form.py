"""A space as JSON values and back, without pickle or eval."""

from __future__ import annotations

import base64
import hashlib
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from autotune.errors import InvalidInput
from autotune.jsonable import to_jsonable
from autotune.space.arrays import Truth
from autotune.space.constraints import (
    Compound,
    Condition,
    Constraint,
    Divides,
    Predicate,
    Product,
)
from autotune.space.factors import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTruth:
    """A predicate's stored answers, in place of its function.

    It can be asked only for the values it was tabulated over, in their order, which is what a
    space read back from JSON does.

    Attributes:
        answers: Shape (n,).
    """

    answers: Truth

    def __call__(self, **columns: Any) -> Truth:
        """The stored answers.

        Raises:
            ValueError: If asked for another number of combinations.
        """
        asked = {len(column) for column in columns.values()}
        if asked != {len(self.answers)}:
            raise ValueError(f"{len(self.answers)} answers are stored, asked for {asked}")
        return self.answers


def truth_hash(table: Table) -> str:
    """Hash of a predicate's answers, 16 hexadecimal digits."""
    packed = np.packbits(table.truth.reshape(-1)).tobytes()
    shape = repr(table.truth.shape).encode()
    return hashlib.sha256(shape + packed).hexdigest()[:16]


def distribution_to_json(distribution: BaseDistribution) -> dict[str, Any]:
    """One of Optuna's distributions as JSON values."""
    match distribution:
        case CategoricalDistribution(choices=choices):
            return {"kind": "categorical", "choices": to_jsonable(choices, "choices")}
        case IntDistribution(low=low, high=high, log=log, step=step):
            parts = {"kind": "int", "low": low, "high": high, "log": log, "step": step}
            return to_jsonable(parts)  # type: ignore[no-any-return]
        case FloatDistribution(low=low, high=high, log=log, step=step):
            parts = {"kind": "float", "low": low, "high": high, "log": log, "step": step}
            return to_jsonable(parts)  # type: ignore[no-any-return]
    raise InvalidInput("distribution", f"has no JSON form: {type(distribution).__name__}")


def distribution_from_json(data: Mapping[str, Any]) -> BaseDistribution:
    """The inverse of `distribution_to_json`."""
    rest = {key: value for key, value in data.items() if key != "kind"}
    match data["kind"]:
        case "categorical":
            with warnings.catch_warnings():
                # Optuna warns of choices that storages lose; ours are stored as text.
                warnings.simplefilter("ignore")
                return CategoricalDistribution([_tuples(choice) for choice in rest["choices"]])
        case "int":
            return IntDistribution(**rest)
        case "float":
            return FloatDistribution(**rest)
    raise InvalidInput("distribution", f"kind must be categorical, int or float, got {data!r}")


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


def constraint_to_json(constraint: Constraint, tables: Mapping[str, Table]) -> dict[str, Any]:
    """A constraint as JSON values; a predicate with its answers instead of its function."""
    match constraint:
        case Product(name=name, factors=factors, equals=equals):
            return {"kind": "product", "name": name, "factors": list(factors), "equals": equals}
        case Divides(name=name, divisor=divisor, dividend=dividend):
            return {
                "kind": "divides",
                "name": name,
                "divisor": list(divisor),
                "dividend": dividend if isinstance(dividend, int) else list(dividend),
            }
        case Predicate(name=name, reads=reads, description=description):
            answers = tables[name].truth.reshape(-1)
            packed = zlib.compress(np.packbits(answers).tobytes(), 9)
            return {
                "kind": "predicate",
                "name": name,
                "reads": list(reads),
                "description": description,
                "truth": truth_hash(tables[name]),
                "size": len(answers),
                "answers": base64.b64encode(packed).decode(),
            }


def constraint_from_json(
    data: Mapping[str, Any], predicates: Mapping[str, Callable[..., Truth]]
) -> Constraint:
    """The inverse of `constraint_to_json`; a function given by name takes the answers' place."""
    match data["kind"]:
        case "product":
            return Product(name=data["name"], factors=data["factors"], equals=data["equals"])
        case "divides":
            return Divides(name=data["name"], divisor=data["divisor"], dividend=data["dividend"])
        case "predicate":
            packed = zlib.decompress(base64.b64decode(data["answers"]))
            answers = np.unpackbits(np.frombuffer(packed, dtype=np.uint8), count=data["size"])
            stored = StoredTruth(answers=answers.astype(np.bool_))
            return Predicate(
                name=data["name"],
                reads=data["reads"],
                holds=predicates.get(data["name"], stored),
                description=data["description"],
            )
    raise InvalidInput("constraint", f"kind must be product, divides or predicate, got {data!r}")


def condition_to_json(condition: Condition) -> dict[str, Any]:
    """A condition as JSON values."""
    return {
        "parameter": condition.parameter,
        "active_when": to_jsonable(condition.active_when, "active_when"),
        "otherwise": to_jsonable(condition.otherwise, "otherwise"),
    }


def compound_to_json(compound: Compound) -> dict[str, Any]:
    """A compound as JSON values."""
    return {
        "name": compound.name,
        "parameters": list(compound.parameters),
        "choices": to_jsonable(compound.choices, "choices"),
    }


def aliases_to_json(aliases: Mapping[str, Mapping[Any, Any]]) -> dict[str, Any]:
    """Renamed choices as lists of pairs, for JSON has only text as keys."""
    return {
        name: [[to_jsonable(old), to_jsonable(new)] for old, new in renamed.items()]
        for name, renamed in aliases.items()
    }


def aliases_from_json(data: Mapping[str, Sequence[Sequence[Any]]]) -> dict[str, dict[Any, Any]]:
    """The inverse of `aliases_to_json`."""
    return {
        name: {_tuples(old): _tuples(new) for old, new in pairs} for name, pairs in data.items()
    }


def declaration_from_json(
    data: Mapping[str, Any], predicates: Mapping[str, Callable[..., Truth]]
) -> dict[str, Any]:
    """The arguments of `SearchSpace` from what `SearchSpace.to_json` gave.

    Raises:
        InvalidInput: If the data do not have that form.
    """
    try:
        return {
            "parameters": {name: distribution_from_json(d) for name, d in data["parameters"]},
            "constraints": [constraint_from_json(c, predicates) for c in data["constraints"]],
            "conditions": [Condition(**condition) for condition in data["conditions"]],
            "compounds": [Compound(**compound) for compound in data["compounds"]],
            "defaults": data["defaults"],
            "aliases": aliases_from_json(data["aliases"]),
        }
    except (AttributeError, KeyError, TypeError, ValueError, zlib.error) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            "stored search space",
            f"must be what SearchSpace.to_json gave, got {type(error).__name__}: {error}",
        ) from error
