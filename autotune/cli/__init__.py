"""The command line, ``autotune``."""

from __future__ import annotations


def main() -> None:
    """Run the command line; ends the process with its exit code."""
    from autotune.cli.app import app

    app()
