"""HTML in which every text is escaped unless it was built here."""

from __future__ import annotations

import html
from collections.abc import Iterable


class Html(str):
    """Text that is HTML already; any other string is plain text and gets escaped."""

    __slots__ = ()


def element(tag: str, *children: object, **attributes: str) -> Html:
    """Build one element.

    Args:
        tag: Its name, from the program, never from data.
        children: `Html` is kept, everything else is shown as text.
        attributes: A trailing underscore is dropped (``class_``), others become dashes.
    """
    names = {name: name.rstrip("_").replace("_", "-") for name in attributes}
    head = "".join(f' {names[name]}="{html.escape(value)}"' for name, value in attributes.items())
    return Html(f"<{tag}{head}>{join(children)}</{tag}>")


def join(children: Iterable[object]) -> Html:
    """Put pieces one after the other, escaping what is not HTML."""
    return Html("".join(c if isinstance(c, Html) else html.escape(str(c)) for c in children))


def table(
    head: Iterable[object], rows: Iterable[Iterable[object]], *, numeric: Iterable[int] = ()
) -> Html:
    """Build a table that scrolls sideways where the window is narrow.

    Args:
        head: Column titles.
        rows: Cells.
        numeric: Numbers of the columns that are aligned to the right.
    """
    right = frozenset(numeric)

    def row(tag: str, cells: Iterable[object]) -> Html:
        return element(
            "tr",
            *(
                element(tag, cell, class_="number") if i in right else element(tag, cell)
                for i, cell in enumerate(cells)
            ),
        )

    body = element("tbody", *(row("td", cells) for cells in rows))
    return element("div", element("table", element("thead", row("th", head)), body), class_="wide")


def data_list(rows: Iterable[tuple[object, object]]) -> Html:
    """Build a list of terms and what they are."""
    pairs = (join([element("dt", term), element("dd", text)]) for term, text in rows)
    return element("dl", *pairs)
