"""One self-contained HTML page about a study: no network, no files beside it."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from plotly.offline import get_plotlyjs

from autotune.errors import InvalidInput
from autotune.report import sections
from autotune.report.contents import Contents
from autotune.report.markup import Html, element, join

# The browser itself then refuses whatever would leave the page, also inside Plotly's code.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:"
)

_DRAW = """
const config = {displayModeBar: false, responsive: true};
for (const plot of document.querySelectorAll(".plot")) {
  const figure = JSON.parse(plot.nextElementSibling.textContent);
  Plotly.newPlot(plot, figure.data, figure.layout, config);
}
"""


def render(contents: Contents) -> str:
    """Build the page, about 5 MB of which most is Plotly's code."""
    parts = [
        sections.header(contents),
        sections.front(contents),
        sections.changes(contents),
        sections.breakdown(contents),
        sections.front_table(contents),
        sections.history(contents),
        sections.importances(contents),
        sections.counts(contents),
        sections.provenance(contents),
    ]
    style = files("autotune.report").joinpath("style.css").read_text(encoding="utf-8")
    head = join(
        [
            Html('<meta charset="utf-8">'),
            Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
            Html('<link rel="icon" href="data:,">'),
            element("title", f"{contents.findings.study} · autotune"),
            element("style", Html(style)),
            element("script", Html(get_plotlyjs())),
        ]
    )
    main = element("main", *(part for part in parts if part is not None))
    body = element("body", main, element("script", Html(_DRAW)))
    page = element("html", element("head", head), body, lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


def write(contents: Contents, path: Path) -> Path:
    """Write the page, in one step, so that an interruption leaves the old one.

    Args:
        contents: What is shown.
        path: Where; its folder must exist.

    Returns:
        The absolute path.

    Raises:
        InvalidInput: If the file cannot be written.
    """
    path = path.absolute()
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(render(contents), encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise InvalidInput(
            f"report {path}",
            f"must be a writable file in an existing folder, got: {error.strerror}; choose "
            f"another with --report PATH",
        ) from error
    return path
