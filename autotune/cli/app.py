"""The command line: which commands there are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated, Any

import typer

from autotune.cli import configs, pages, read, run
from autotune.cli.commands import command

app = typer.Typer(
    name="autotune",
    help="A Bayesian autotuner. STUDY is the name of an installed study, or FILE.py:ATTR.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_COMMANDS: dict[str, Callable[..., Any]] = {
    "run": run.run,
    "list": read.list_studies,
    "status": read.status,
    "best": read.best,
    "front": read.front,
    "show": read.show,
    "evaluate": configs.evaluate,
    "compare": configs.compare,
    "export": configs.export,
    "report": pages.report,
    "dashboard": pages.dashboard,
    "doctor": pages.doctor,
}

for _name, _function in _COMMANDS.items():
    app.command(_name)(command(_function))


def _show_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"{version('scale-across-autotune')}\n")
        raise typer.Exit


@app.callback()
def _root(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Say it.")
    ] = False,
) -> None:
    """Options of the program itself."""
