from __future__ import annotations

import contextlib
import doctest
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import objectives.units
from autotune import InvalidInput
from objectives.units import EXAMPLES, parse_quantity


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("400 Gbit/s", "byte/s", 50e9),
        ("450 GB/s", "byte/s", 450e9),
        ("12.8 Tbit/s", "byte/s", 1.6e12),
        ("1 GiB/s", "byte/s", 2**30),
        ("80 GB", "byte", 80e9),
        ("80 GiB", "byte", 80 * 2**30),
        ("64 MiB", "byte", 64 * 2**20),
        ("8 bit", "byte", 1.0),
        ("3 kbyte", "byte", 3e3),
        ("30 km", "m", 30e3),
        ("250 m", "m", 250.0),
        ("2 us", "s", 2e-6),
        ("2 µs", "s", 2e-6),
        ("49 ms", "s", 0.049),
        ("2 h", "s", 7200.0),
        ("989 TFLOP/s", "FLOP/s", 989e12),
        ("2.25 PFLOP/s", "FLOP/s", 2.25e15),
        ("700 W", "W", 700.0),
        ("1 kW", "W", 1000.0),
        ("1.8 USD/h", "USD/s", 0.0005),
        ("1%", "1", 0.01),
        ("0.25", "1", 0.25),
        (7, "1", 7.0),
        (1e-6, "1", 1e-6),
        ("  5e2GB ", "byte", 5e11),
        (".5 km", "m", 500.0),
        ("-3 km", "m", -3000.0),
    ],
)
def test_text_with_a_unit(text: object, unit: str, value: float) -> None:
    assert parse_quantity(text, unit) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("unit", EXAMPLES)
def test_the_examples_that_errors_show_are_accepted(unit: str) -> None:
    assert parse_quantity(EXAMPLES[unit], unit) > 0


@pytest.mark.parametrize("unit", [unit for unit in EXAMPLES if unit != "1"])
@pytest.mark.parametrize("number", [400, 400.0, "400"])
def test_a_bare_number_is_refused_with_an_example(number: object, unit: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(EXAMPLES[unit])):
        parse_quantity(number, unit)


@pytest.mark.parametrize(
    ("text", "unit", "advice"),
    [
        ("400 Gb/s", "byte/s", 'write "400 Gbit/s" for bits or "400 GB/s" for bytes'),
        ("400 gbps", "byte/s", 'write "400 Gbit/s" for bits or "400 GB/s" for bytes'),
        ("400 GBps", "byte/s", 'write "400 GB/s"'),
        ("400 gbit/s", "byte/s", 'write "400 Gbit/s"'),
        ("80 gb", "byte", 'write "80 Gbit" for bits or "80 GB" for bytes'),
        ("80 Gbytes", "byte", 'write "80 GB"'),
        ("64 mib", "byte", 'write "64 Mibit" for bits or "64 MiB" for bytes'),
        ("989 TFLOPS", "FLOP/s", 'write "989 TFLOP/s"'),
        ("30 KM", "m", 'write "30 km"'),
        ("2 US", "s", 'write "2 us"'),
        ("5 Ms", "s", 'write "5 ms"'),
        ("3 hours", "s", 'write "3 h"'),
        ("2 $/hr", "USD/s", 'write "2 USD/h"'),
        ("3 leagues", "m", "use one of: m, km, cm, mm"),
        ("80 GB", "byte/s", "which is an amount of data"),
        ("400 Gbit/s", "byte", "which is a data rate"),
        ("30 km", "s", "which is a length"),
        ("1 %", "byte", "which is a plain number"),
        ("fast", "byte/s", "does not start with a plain number"),
        ("12,800 Gbit/s", "byte/s", "is no unit"),
        ("nan", "1", "does not start with a plain number"),
        ("1e999 s", "s", "not finite"),
        (math.inf, "1", "not finite"),
        (math.nan, "1", "not finite"),
        (True, "1", "got True"),
        (None, "byte", "got None"),
        (["80 GB"], "byte", "got \\['80 GB'\\]"),
        ("", "byte", "does not start"),
    ],
)
def test_a_mistake_is_explained(text: object, unit: str, advice: str) -> None:
    advice = advice if "\\" in advice else re.escape(advice)
    with pytest.raises(InvalidInput, match=advice):
        parse_quantity(text, unit)


def test_a_long_text_is_cut_in_the_error() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_quantity("5 " + "x" * 5000, "byte")
    assert len(str(caught.value)) < 400 + 5000  # the unit itself is repeated at most once
    with pytest.raises(InvalidInput) as caught:
        parse_quantity("x" * 5000, "byte")
    assert len(str(caught.value)) < 250


def test_the_target_must_be_known() -> None:
    with pytest.raises(ValueError, match="the unit must be one of byte"):
        parse_quantity("3 km", "km")


def test_doctests() -> None:
    assert doctest.testmod(objectives.units).failed == 0


@given(st.floats(min_value=1e-6, max_value=1e6), st.sampled_from(["k", "M", "G", "T"]))
def test_bits_are_an_eighth_of_bytes(number: float, prefix: str) -> None:
    bits = parse_quantity(f"{number!r} {prefix}bit/s", "byte/s")
    assert 8 * bits == pytest.approx(parse_quantity(f"{number!r} {prefix}B/s", "byte/s"))


@given(st.text(max_size=12), st.sampled_from(sorted(EXAMPLES)))
def test_any_text_is_a_finite_number_or_explained(text: str, unit: str) -> None:
    with contextlib.suppress(InvalidInput):
        assert math.isfinite(parse_quantity(text, unit))
