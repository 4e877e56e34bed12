import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

import autotune.quantity
from autotune.metric import Metric
from autotune.quantity import format_change, format_quantity


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (6.4123, "s", "6.41 s"),
        (0.0925, "s", "92.5 ms"),
        (0.99996, "s", "1 s"),
        (999.6e-6, "s", "1 ms"),
        (4200.0, "s", "4,200 s"),
        (0.0, "s", "0 s"),
        (-0.0925, "s", "-92.5 ms"),
        (1.2e12, "byte", "1.2 TB"),
        (999.96e9, "byte", "1 TB"),
        (0.5, "byte", "0.5 B"),
        (1.6e12, "byte/s", "12.8 Tbit/s"),
        (400e12, "FLOP/s", "400 TFLOP/s"),
        (10_000.0, "m", "10 km"),
        (0.4321, "fraction", "43.2 %"),
        (64.62, "%", "64.6 %"),
        (16_384, "", "16,384"),
        (1_234_567.8, "token/s", "1,234,568 token/s"),
    ],
)
def test_quantity_as_people_write_it(value: float, unit: str, text: str) -> None:
    assert format_quantity(value, unit) == text


@given(st.floats(min_value=1e-9, max_value=1e18))
def test_quantity_keeps_three_digits(value: float) -> None:
    number, unit = format_quantity(value, "byte").split(" ")
    factor = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15, "EB": 1e18}[unit]
    assert float(number.replace(",", "")) * factor == pytest.approx(value, rel=5.1e-3)


@pytest.mark.parametrize(
    ("new", "old", "text"),
    [
        (4.7, 6.4, "26.6 % less"),
        (6.4, 4.7, "36.2 % more"),
        (13.0, 6.0, "2.17x"),
        (2.0, 2.0, "unchanged"),
        (2.00001, 2.0, "unchanged"),
        (1.2e12, 0.0, "+1.2 TB"),
        (-1e9, 1e9, "-2 GB"),
        (-2.0, -1.5, "33.3 % less"),
        (-1.5, -2.0, "25 % more"),
        (0.0, 5.0, "100 % less"),
    ],
)
def test_change(new: float, old: float, text: str) -> None:
    assert format_change(new, old, Metric(name="memory_bytes", unit="byte")) == text


def test_examples_of_the_docstrings() -> None:
    assert doctest.testmod(autotune.quantity).failed == 0
