"""Commands that show a study elsewhere, and ``doctor``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from autotune.cli import commands, output, tables
from autotune.cli.stored import load


def report(
    study: commands.StoredStudy = None,
    path: Annotated[
        Path | None, typer.Option("--output", "-o", help="The page.", show_default="./STUDY.html")
    ] = None,
    storage: commands.Storage = commands.DEFAULT_STORAGE,
    json: commands.Json = False,
    verbose: commands.Verbose = False,
) -> None:
    """Write the study's self-contained HTML page.

    JSON: ``{"study", "report": PATH}``.
    """
    stored = load(storage, study)
    from autotune.report.page import write
    from autotune.report.stored import contents_of

    objective, why = stored.objective()
    contents = contents_of(
        stored.findings, space=stored.space(), objective=objective, why_no_objective=why
    )
    written = write(contents, path or Path(f"{stored.record.name.replace('/', '-')}.html"))
    if json:
        output.write_json({"study": stored.record.name, "report": str(written)})
    else:
        output.results().print(Text(str(written)), soft_wrap=True)


def dashboard(
    storage: commands.Storage = commands.DEFAULT_STORAGE,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Of this machine only; 0 takes a free one.")
    ] = 8080,
    verbose: commands.Verbose = False,
) -> None:
    """Start optuna-dashboard on the storage, on the loopback address, until Ctrl-C."""
    from autotune.dashboard import HOST, make_dashboard

    with commands.signals(), make_dashboard(storage, port=port) as server:
        output.write_error(f"http://{HOST}:{server.server_port}/ shows {storage}; Ctrl-C ends it")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return


def doctor(
    storage: commands.Storage = commands.DEFAULT_STORAGE,
    json: commands.Json = False,
    verbose: commands.Verbose = False,
) -> int:
    """Check Python, packages, extras, plugins, storage and machine. Exit 1 if something fails.

    JSON: ``{"ok", "checks": [{"topic", "verdict", "detail", "remedy"}]}``; verdict is ``ok``,
    ``absent`` (optional and not there) or ``failed``.
    """
    from autotune.doctor import Verdict, examine

    checks = examine(storage)
    fit = all(check.verdict is not Verdict.FAILED for check in checks)
    if json:
        output.write_json({"ok": fit, "checks": [asdict(check) for check in checks]})
        return commands.DONE if fit else commands.FAILED
    table = tables.plain_table("", "checked", "found", "what to do")
    styles = {Verdict.OK: "green", Verdict.ABSENT: "yellow", Verdict.FAILED: "bold red"}
    for check in checks:
        verdict = Text(check.verdict.value, style=styles[check.verdict])
        table.add_row(verdict, Text(check.topic), Text(check.detail), Text(check.remedy))
    output.results().print(table)
    return commands.DONE if fit else commands.FAILED
