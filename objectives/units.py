"""Quantities as text with a unit, such as ``400 Gbit/s``, turned into SI numbers.

Lower-case ``b`` and upper-case ``B`` differ by a factor of eight and are the most common mistake
in cluster files, so that bits are always spelled ``bit``. GB is 1e9 bytes, GiB is 2^30.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from types import MappingProxyType

from autotune.errors import InvalidInput

EXAMPLES = MappingProxyType(
    {
        "byte": "80 GB",
        "byte/s": "400 Gbit/s",
        "FLOP/s": "989 TFLOP/s",
        "s": "2 us",
        "m": "30 km",
        "W": "700 W",
        "USD/s": "1.5 USD/h",
        "1": "0.01",
    }
)
"""The SI units that quantities are turned into, each with a text that it is written as."""

_NOUNS = {
    "byte": "an amount of data",
    "byte/s": "a data rate",
    "FLOP/s": "a computing rate",
    "s": "a time",
    "m": "a length",
    "W": "a power",
    "USD/s": "a price per time",
    "1": "a plain number",
}

_DECIMAL = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {f"{letter}i": 2.0 ** (10 * (i + 1)) for i, letter in enumerate("KMGTPE")}
_SMALL = {"": 1.0, "m": 1e-3, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "n": 1e-9}

_TEXT = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*?)\s*", re.DOTALL)


def _units() -> Iterator[tuple[str, str, float]]:
    """Yield every unit as (text, SI unit, factor)."""
    for prefix, factor in (_DECIMAL | _BINARY).items():
        for name, size in (("B", 1.0), ("byte", 1.0), ("bit", 1 / 8)):
            yield f"{prefix}{name}", "byte", factor * size
            yield f"{prefix}{name}/s", "byte/s", factor * size
    for prefix, factor in _DECIMAL.items():
        yield f"{prefix}FLOP/s", "FLOP/s", factor
        yield f"{prefix}W", "W", factor
    for prefix, factor in _SMALL.items():
        yield f"{prefix}s", "s", factor
    yield from (("min", "s", 60.0), ("h", "s", 3600.0))
    yield from (("m", "m", 1.0), ("km", "m", 1e3), ("cm", "m", 1e-2), ("mm", "m", 1e-3))
    yield from (("USD/s", "USD/s", 1.0), ("USD/h", "USD/s", 1 / 3600.0))
    yield from (("%", "1", 1e-2), ("", "1", 1.0))


_UNITS = {text: (unit, factor) for text, unit, factor in _units()}


def parse_quantity(text: object, unit: str) -> float:
    """Turn text with a unit into a number in an SI unit.

    Args:
        text: Such as ``"12.8 Tbit/s"``. For the unit ``1`` (ratios, probabilities) also a bare
            number or a percentage; for every other unit a bare number is refused.
        unit: One of `EXAMPLES`.

    Raises:
        InvalidInput: If it is no finite number with a unit of that kind; says what to write.

    Examples:
        >>> parse_quantity("400 Gbit/s", "byte/s"), parse_quantity("30 km", "m")
        (50000000000.0, 30000.0)
        >>> parse_quantity("80 GiB", "byte"), parse_quantity("0.1 %", "1")
        (85899345920.0, 0.001)
        >>> parse_quantity("400 Gb/s", "byte/s")
        Traceback (most recent call last):
            ...
        autotune.errors.InvalidInput: quantity: must be a data rate such as "400 Gbit/s", got "400 Gb/s"; a lone b is refused: write "400 Gbit/s" for bits or "400 GB/s" for bytes
    """  # noqa: E501
    if unit not in EXAMPLES:
        raise ValueError(f"the unit must be one of {', '.join(EXAMPLES)}, got {unit!r}")
    if isinstance(text, int | float) and not isinstance(text, bool):
        return _bare(text, unit)
    if not isinstance(text, str):
        raise _wrong(unit, f"got {text!r}")
    found = _TEXT.fullmatch(text)
    if found is None:
        raise _wrong(unit, f"got {_shown(text)}, which does not start with a plain number")
    number, symbol = found.groups()
    if symbol not in _UNITS:
        raise _wrong(unit, f"got {_shown(text)}; {_advice(number, symbol, unit)}")
    kind, factor = _UNITS[symbol]
    if kind != unit:
        has = "which has no unit" if symbol == "" else f"which is {_NOUNS[kind]}"
        raise _wrong(unit, f"got {_shown(text)}, {has}")
    return _finite(float(number) * factor, text, unit)


def _bare(number: float, unit: str) -> float:
    if unit != "1":
        raise _wrong(unit, f"got the bare number {number}; write it as text with its unit")
    return _finite(float(number), number, unit)


def _finite(value: float, text: object, unit: str) -> float:
    if not math.isfinite(value):
        raise _wrong(unit, f"got {text!r}, which is not finite")
    return value


def _wrong(unit: str, got: str) -> InvalidInput:
    return InvalidInput("quantity", f"must be {_NOUNS[unit]} such as {_example(unit)}, {got}")


def _example(unit: str) -> str:
    return EXAMPLES[unit] if unit == "1" else f'"{EXAMPLES[unit]}"'


def _shown(text: str) -> str:
    return f'"{text}"' if len(text) <= 60 else f'"{text[:57]}..."'


def _advice(number: str, symbol: str, unit: str) -> str:
    """What was probably meant by a unit that does not exist."""
    meant = [text for text in _UNITS if _common(text) and _folded(text) == _folded(symbol)]
    meant = [text for text in meant if _UNITS[text][0] == unit] or meant
    if "bit" in symbol.lower():
        meant = [text for text in meant if "bit" in text]
    elif "B" in symbol or "byte" in symbol.lower():
        meant = [text for text in meant if "B" in text]
    if not meant:
        known = [text for text in _UNITS if _UNITS[text][0] == unit and _common(text)]
        usual = [text for text in known if not re.match(r"[PE]|[KTPE]i", text)]
        return f'"{symbol}" is no unit known here; use one of: {", ".join(usual)}'
    written = [f'"{number} {text}"' for text in meant]
    if len(meant) > 1:  # only bits and bytes fold to the same text
        return f"a lone b is refused: write {written[1]} for bits or {written[0]} for bytes"
    return f"write {written[0]}"


def _folded(symbol: str) -> str:
    """A unit without what people get wrong: case, plurals, ``ps`` for ``/s``, bit or byte."""
    text = symbol.lower().replace(" ", "").replace("µ", "u").replace("μ", "u")
    text = re.sub(r"(bit|byte)s?", "b", text)
    text = re.sub(r"flops?(/s|ps)?$", "flop/s", text)
    text = re.sub(r"b(ps|/sec)$", "b/s", text)
    text = re.sub(r"^\$/", "usd/", text)
    text = re.sub(r"/(hr|hour)$", "/h", text)
    return {"sec": "s", "hr": "h", "hour": "h", "hours": "h", "percent": "%"}.get(text, text)


def _common(text: str) -> bool:
    """Whether a unit is shown in advice: no second spelling of another one."""
    return text != "" and not re.search(r"µ|μ|byte", text)
