"""A headless Chromium that runs a page and gives back what it looks like inside."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
    # Chromium's own services must not depend on a network, nor talk to one.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A page after its scripts have run.

    Attributes:
        dom: Its document as HTML.
        console: What its scripts logged, errors among it.
    """

    dom: str
    console: str


@pytest.fixture(scope="session")
def chromium() -> str:
    for name in _NAMES:
        if path := shutil.which(name):
            return path
    pytest.skip(f"needs a browser: none of {', '.join(_NAMES)} is on the PATH")


@pytest.fixture(scope="session")
def run_chromium(
    chromium: str, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        profile = f"--user-data-dir={tmp_path_factory.mktemp('profile')}"
        return subprocess.run(
            [chromium, *_FLAGS, profile, *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )

    return run


@pytest.fixture(scope="session")
def render(
    run_chromium: Callable[..., subprocess.CompletedProcess[str]],
) -> Callable[..., Rendered]:
    """Loads a URL, lets so many milliseconds of the page's own time pass, dumps the document."""

    def load(url: str, *, milliseconds: int = 3000) -> Rendered:
        result = run_chromium(f"--virtual-time-budget={milliseconds}", "--dump-dom", url)
        lines = [line for line in result.stderr.splitlines() if "CONSOLE" in line]
        return Rendered(dom=result.stdout, console="\n".join(lines))

    return load


@pytest.fixture(scope="session")
def screenshot(
    run_chromium: Callable[..., subprocess.CompletedProcess[str]],
) -> Callable[[str, Path], bytes]:
    def shoot(url: str, path: Path) -> bytes:
        run_chromium("--window-size=1280,2400", f"--screenshot={path}", url)
        return path.read_bytes()

    return shoot
