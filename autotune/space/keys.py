"""The canonical identity of a config, assembled from texts that are written once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autotune.jsonable import canonical_json
from autotune.space.domains import ChoiceDomain, Domain


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Writes configs as canonical JSON.

    Attributes:
        prefixes: ``"name":`` by parameter, sorted by name.
        choices: For listed parameters the text of each choice, by its number.
        domains: The parameters.
    """

    prefixes: Mapping[str, str]
    choices: Mapping[str, tuple[str, ...]]
    domains: Mapping[str, Domain]

    def of(self, config: Mapping[str, Any]) -> str:
        """The key of a config in plain values; equal to its canonical JSON."""
        parts = []
        for name, prefix in self.prefixes.items():
            value = config[name]
            domain = self.domains[name]
            if isinstance(domain, ChoiceDomain):
                number = domain.index(value)
                assert number is not None
                parts.append(prefix + self.choices[name][number])
            else:
                parts.append(prefix + repr(value))
        return "{" + ",".join(parts) + "}"


def make_keys(domains: Mapping[str, Domain]) -> Keys:
    """Write down the texts of a space."""
    return Keys(
        prefixes={name: f"{canonical_json(name)}:" for name in sorted(domains)},
        choices={
            name: tuple(canonical_json(value) for value in domain.values)
            for name, domain in domains.items()
            if isinstance(domain, ChoiceDomain)
        },
        domains=domains,
    )
