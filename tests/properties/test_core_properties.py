"""Properties of values, fingerprints and errors that hold for any input."""

from __future__ import annotations

import json
import pickle
from datetime import datetime
from enum import Enum
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from autotune import InvalidInput, Problem
from autotune.jsonable import canonical_json, fingerprint, to_jsonable


class Kind(Enum):
    A = "a"
    B = 2


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=15,
)
rich = st.recursive(
    plain
    | st.integers(-(2**63), 2**63 - 1).map(np.int64)
    | st.floats(width=32, allow_nan=False, allow_infinity=False).map(np.float32)
    | st.lists(st.integers(0, 9)).map(np.array)
    | st.sampled_from(Kind)
    | st.datetimes()
    | st.text("abc/", min_size=1).map(PurePosixPath)
    | st.frozensets(st.integers()),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner),
    max_leaves=15,
)
anything = rich | st.binary() | st.complex_numbers() | st.floats() | st.just(object())


@given(plain)
def test_plain_json_stays_as_it_is(value: Any) -> None:
    assert to_jsonable(value) == value


@given(rich)
def test_what_is_converted_survives_json(value: Any) -> None:
    converted = to_jsonable(value)
    assert json.loads(json.dumps(converted, allow_nan=False)) == converted
    assert to_jsonable(converted) == converted


@given(anything)
def test_converted_or_refused_never_another_error(value: Any) -> None:
    try:
        converted = to_jsonable(value)
    except InvalidInput:
        return
    json.dumps(converted, allow_nan=False)


@given(st.dictionaries(st.text(), plain))
def test_fingerprint_ignores_order_and_survives_storage(value: dict[str, Any]) -> None:
    reordered = dict(reversed(value.items()))
    stored = json.loads(canonical_json(value))
    assert fingerprint(value) == fingerprint(reordered) == fingerprint(stored)


@given(plain, plain)
def test_equal_fingerprints_mean_equal_text(first: Any, second: Any) -> None:
    same_text = canonical_json(first) == canonical_json(second)
    assert (fingerprint(first) == fingerprint(second)) == same_text


@given(st.datetimes())
def test_dates_can_be_read_back(value: datetime) -> None:
    assert datetime.fromisoformat(to_jsonable(value)) == value


@given(st.text(min_size=1), st.lists(st.builds(Problem, path=st.text(), message=st.text())))
def test_errors_survive_pickling(what: str, problems: list[Problem]) -> None:
    error = InvalidInput(what, problems)
    back = pickle.loads(pickle.dumps(error))
    assert (str(back), back.problems) == (str(error), error.problems)
    for problem in problems:
        assert str(problem) in str(error)
