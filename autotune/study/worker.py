"""Which process owns a claim, and whether it still exists."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

_DEAD_STATES = "ZX"


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A process that cannot be taken for another one.

    Attributes:
        host: Name of the machine.
        boot: Identifier of this start of the machine; empty where there is none.
        namespace: Within which ``pid`` counts, for containers; empty where there is none.
        pid: Process number.
        started: When the process began, in clock ticks since the boot; -1 where unknown.
    """

    host: str
    boot: str
    namespace: str
    pid: int
    started: int

    @classmethod
    def here(cls) -> Self:
        """The process that asks."""
        pid = os.getpid()
        return cls(
            host=socket.gethostname(),
            boot=_boot(),
            namespace=_namespace(),
            pid=pid,
            started=_started(pid) or -1,
        )

    def pack(self) -> dict[str, Any]:
        """As stored with a claim."""
        return asdict(self)

    @classmethod
    def unpack(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `pack`."""
        return cls(**data)

    def is_gone(self) -> bool:
        """Whether it certainly runs no more; False where this machine cannot tell."""
        same_machine = (self.host, self.boot, self.namespace) == (
            socket.gethostname(),
            _boot(),
            _namespace(),
        )
        if not same_machine or not self.boot or self.started < 0:
            return False
        return _started(self.pid) != self.started


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


@cache
def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _started(pid: int) -> int | None:
    """Start time of a process in clock ticks since the boot; None when there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name stands in parentheses and may hold anything (proc(5)).
    fields = text.rpartition(")")[2].split()
    state, started = fields[0], int(fields[19])
    return None if state in _DEAD_STATES else started
