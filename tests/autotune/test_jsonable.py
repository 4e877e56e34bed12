"""Values become JSON that every storage keeps, or are refused by path."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune import InvalidInput
from autotune.jsonable import canonical_json, fingerprint, to_jsonable


class Colour(Enum):
    RED = "red"


@dataclass
class Pair:
    left: int
    right: Any


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (np.bool_(False), False),
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.str_("a"), "a"),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.float64(2.0), 2.0),
        (Path("a") / "b", "a/b"),
        (Colour.RED, "red"),
        (datetime(2024, 1, 2, 3, 4, tzinfo=UTC), "2024-01-02T03:04:00+00:00"),
        (date(2024, 1, 2), "2024-01-02"),
        ((1, "a"), [1, "a"]),
        ({3, 1, 2}, [1, 2, 3]),
        ({Colour.RED: 1, np.int64(4): 2}, {"red": 1, "4": 2}),
        (Pair(left=1, right=(2.5,)), {"left": 1, "right": [2.5]}),
    ],
)
def test_becomes_plain_json(value: Any, expected: Any) -> None:
    result = to_jsonable(value)
    assert result == expected
    assert type(result) is type(expected)
    assert json.loads(json.dumps(result)) == expected


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), np.float64("-inf"), object(), 1j, b"bytes", Pair, {(1,): 2}],
)
def test_what_json_lacks_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput):
        to_jsonable(value)


def test_refusal_names_the_place() -> None:
    with pytest.raises(InvalidInput, match=r"spec\.tags\[1\]\.cost: must be finite"):
        to_jsonable({"tags": [1, {"cost": float("nan")}]}, "spec")


def test_canonical_text_does_not_depend_on_order() -> None:
    assert canonical_json({"b": 1, "a": [1, 2]}) == canonical_json({"a": (1, 2), "b": np.int64(1)})
    assert canonical_json({"a": "ü"}) == '{"a":"ü"}'


def test_fingerprint_tells_values_apart() -> None:
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    assert fingerprint(1) != fingerprint("1")
    assert fingerprint([]) != fingerprint({})
    assert len(fingerprint("x")) == 16
