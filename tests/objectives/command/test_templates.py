from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from objectives.command.templates import Unfillable, fill, fill_all, fill_argument, placeholders


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("--tp={tp}", "--tp=8"),
        ("{tp}x{pp}", "8x4"),
        ("{name}", "ring all"),
        ("{rate}", "0.001"),
        ("{flag}", "true"),
        ("{layout}", "[8,1]"),
        ("{counted}", "3"),
        ("{low-case.name}", "ok"),
        ('{"tp": {tp}, "x": {}}', '{"tp": 8, "x": {}}'),
        ("{{tp}}", "{tp}"),
        ("f'{{x}}={tp}'", "f'{x}=8'"),
        ("{ tp }", "{ tp }"),
        ("", ""),
    ],
)
def test_values_take_the_place_of_their_names(template: str, filled: str) -> None:
    values = {
        "tp": 8,
        "pp": np.int64(4),
        "name": "ring all",
        "rate": 1e-3,
        "flag": np.bool_(True),
        "layout": (8, 1),
        "counted": np.float32(3) and 3,
        "low-case.name": "ok",
    }
    assert fill(template, values) == filled


def test_a_value_is_not_filled_again() -> None:
    assert fill("{a}", {"a": "{b}", "b": "no"}) == "{b}"


@pytest.mark.parametrize(
    ("template", "values", "message"),
    [
        ("--x={y}", {"x": 1}, r"\{y\} in '--x=\{y\}' is no parameter of the config; known: x"),
        ("{x}", {"x": None}, "parameter x must be a number, text, true or false, got NoneType"),
        ("{x}", {"x": float("nan")}, "must be finite, got nan"),
        ("{x}", {"x": "a\0b"}, "null character"),
        ("{x}", {"x": object()}, "got object"),
    ],
)
def test_what_cannot_be_filled(template: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(Unfillable, match=message):
        fill(template, values)


@pytest.mark.parametrize("value", ["-rf", "--help", -1, "-"])
def test_a_positional_value_cannot_become_an_option(value: object) -> None:
    with pytest.raises(Unfillable, match=r'write it as "--x=\{x\}"'):
        fill_argument("{x}", {"x": value})
    with pytest.raises(Unfillable):
        fill_argument("{x}.txt", {"x": value})
    assert fill_argument("--x={x}", {"x": value}) == f"--x={value}"
    assert fill_argument("./{x}", {"x": value}) == f"./{value}"


def test_an_option_of_the_template_itself_is_an_option() -> None:
    assert fill_argument("-n", {}) == "-n"


@given(st.text(), st.text())
def test_one_template_is_one_argument_whatever_the_values(a: str, b: str) -> None:
    assume("\0" not in a + b)
    assume(not a.startswith("-"))
    values = {"a": a, "b": b}
    assert fill_all(["run", "{a}", "--b={b}"], values) == ["run", a, f"--b={b}"]


@given(st.text())
def test_text_without_placeholders_stays(text: str) -> None:
    assume(not placeholders(text) and "{{" not in text)
    assert fill(text, {}) == text
