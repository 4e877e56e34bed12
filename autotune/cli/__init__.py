"""The command line, ``autotune``."""

from __future__ import annotations

from autotune.cli import starting


def main() -> None:
    """Run the command line; ends the process with its exit code."""
    starting.watch()
    from autotune.cli.app import app

    starting.loaded()
    app()
