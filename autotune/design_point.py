"""The fixed scenario that a study tunes for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from autotune.jsonable import fingerprint, to_jsonable


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignPoint:
    """A named scenario, as JSON, with the numbers that say how near two of them are.

    Attributes:
        name: Short and unique among the design points of a storage.
        content: The whole scenario as JSON values; objectives read nothing else.
        features: Numbers for finding the nearest earlier design points, such as
            ``log2_gpus``; on scales where equal differences matter equally.
    """

    name: str
    content: Mapping[str, Any] = field(default_factory=dict)
    features: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "content", to_jsonable(self.content, "content"))

    @property
    def fingerprint(self) -> str:
        """Hash of the content; the name and features do not enter."""
        return fingerprint(self.content)
