"""Options as TOML, read back before they are handed out."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from typing import Any

from objectives.exporters.options import Options


def to_toml(options: Options) -> str:
    """Render options named ``section.key`` as TOML, sections in their first order.

    Raises:
        AssertionError: If a TOML parser would read anything else than the options.
    """
    sections: dict[str, dict[str, Any]] = {}
    for name, value in options.items():
        section, key = name.rsplit(".", 1)
        sections.setdefault(section, {})[key] = value
    blocks = [
        "\n".join([f"[{section}]", *(f"{key} = {_toml_value(v)}" for key, v in values.items())])
        for section, values in sections.items()
    ]
    text = "\n\n".join(blocks) + "\n"
    assert _flat(tomllib.loads(text)) == dict(options), "the TOML must say what was meant"
    return text


def _toml_value(value: Any) -> str:
    """JSON's numbers, texts, booleans and lists are TOML's as well."""
    return json.dumps(value, ensure_ascii=False)


def _flat(tables: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tables.items():
        flat |= _flat(value, f"{path}{key}.") if isinstance(value, dict) else {path + key: value}
    return flat
