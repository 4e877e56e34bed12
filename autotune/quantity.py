"""Numbers with units as people read them: ``6.41 s``, ``12.8 Tbit/s``, ``27 % less``."""

from __future__ import annotations

import math

from autotune.metric import Metric

_PREFIXES = {
    -12: "p",
    -9: "n",
    -6: "µ",
    -3: "m",
    0: "",
    3: "k",
    6: "M",
    9: "G",
    12: "T",
    15: "P",
    18: "E",
}

_SHOWN = {
    # unit: (shown as, factor, smallest and largest exponent of its prefixes)
    "s": ("s", 1.0, -12, 0),
    "m": ("m", 1.0, -9, 3),
    "byte": ("B", 1.0, 0, 18),
    # Links and NICs are sold in bits per second.
    "byte/s": ("bit/s", 8.0, 0, 18),
    "bit": ("bit", 1.0, 0, 18),
    "bit/s": ("bit/s", 1.0, 0, 18),
    "FLOP": ("FLOP", 1.0, 0, 18),
    "FLOP/s": ("FLOP/s", 1.0, 0, 18),
    "Hz": ("Hz", 1.0, 0, 18),
    "W": ("W", 1.0, -6, 18),
    "J": ("J", 1.0, -6, 18),
}

_UNCHANGED = 5e-4
_MULTIPLE = 2.0


def format_quantity(value: float, unit: str = "") -> str:
    """Show a value with three significant digits and a fitting SI prefix.

    Args:
        value: In ``unit``.
        unit: ``s``, ``m``, ``byte`` (shown as B), ``byte/s`` (shown in bit/s), ``bit``,
            ``bit/s``, ``FLOP``, ``FLOP/s``, ``Hz``, ``W`` and ``J`` take prefixes; ``%`` is a
            value in percent and ``fraction`` one that is shown in percent; any other unit is
            put behind the plain number.

    Examples:
        >>> format_quantity(6.4123, "s"), format_quantity(0.0925, "s")
        ('6.41 s', '92.5 ms')
        >>> format_quantity(1.2e12, "byte"), format_quantity(1.6e12, "byte/s")
        ('1.2 TB', '12.8 Tbit/s')
        >>> format_quantity(0.4321, "fraction"), format_quantity(16384)
        ('43.2 %', '16,384')
    """
    factor, symbol = shown_unit(value, unit)
    return f"{_number(value * factor)} {symbol}".rstrip()


def shown_unit(value: float, unit: str = "") -> tuple[float, str]:
    """Find the prefix that suits a value, for axes and columns that share one.

    Args:
        value: In ``unit``; of many, the largest.
        unit: As in `format_quantity`.

    Returns:
        The factor to multiply values by, and what to call their unit then.

    Examples:
        >>> shown_unit(1.6e12, "byte/s")
        (8e-12, 'Tbit/s')
    """
    if unit == "fraction":
        return 100.0, "%"
    if unit not in _SHOWN:
        return 1.0, unit
    symbol, factor, smallest, largest = _SHOWN[unit]
    scaled = _rounded(value * factor)
    if scaled == 0 or not math.isfinite(scaled):
        return factor, symbol
    exponent = 3 * math.floor(math.log10(abs(scaled)) / 3 + 1e-12)
    exponent = min(max(exponent, smallest), largest)
    return factor / 10.0**exponent, f"{_PREFIXES[exponent]}{symbol}"


def format_change(new: float, old: float, metric: Metric) -> str:
    """Say how a value differs from an earlier one.

    Args:
        new: In the metric's unit.
        old: What it is compared with.
        metric: Gives the unit, for a difference that has no ratio.

    Returns:
        ``unchanged``, ``27 % less``, ``8.3 % more``, ``2.4x`` from twice as much on, or the
        plain difference (``+1.2 TB``) where the old value is 0 or has the other sign.

    Examples:
        >>> format_change(4.7, 6.4, Metric(name="step_time_s", unit="s"))
        '26.6 % less'
    """
    if new == old:
        return "unchanged"
    if old == 0 or new / old < 0:
        sign = "+" if new > old else "-"
        return sign + format_quantity(abs(new - old), metric.unit)
    change = new / old - 1
    if abs(change) < _UNCHANGED:
        return "unchanged"
    if new / old >= _MULTIPLE:
        return f"{_number(new / old)}x"
    # Of two negative values the larger quotient is the smaller number.
    more = (change > 0) == (old > 0)
    return f"{_number(100 * abs(change))} % {'more' if more else 'less'}"


def _rounded(value: float, digits: int = 3) -> float:
    if value == 0 or not math.isfinite(value):
        return value
    return round(value, digits - 1 - math.floor(math.log10(abs(value))))


def _number(value: float) -> str:
    """Three significant digits, never fewer than a whole number has; no exponent below 1e15."""
    if not math.isfinite(value) or abs(value) >= 1e15 or 0 < abs(value) < 1e-4:
        return f"{value:.3g}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{_rounded(value):.6f}".rstrip("0").rstrip(".")
