"""A small HTML table with bars, for notebooks: it includes its style."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_LONGEST = 10.0  # em
_SHORTEST = 0.1
_COLOR = "#4493f8"  # visible on light and dark pages


def bar(share: float) -> str:
    """An HTML bar, whose length is a share of the longest; a share above 0 is always visible.

    >>> "width:5.0em" in bar(0.5), "width:0.1em" in bar(1e-9), bar(0.0)
    (True, True, '')
    """
    if share <= 0:
        return ""
    width = max(_SHORTEST, _LONGEST * min(share, 1.0))
    style = f"display:inline-block;height:.8em;width:{width:.1f}em;background:{_COLOR}"
    return f'<span style="{style}"></span>'


def table(headings: Sequence[str], rows: Sequence[Sequence[str | float]]) -> str:
    """A table; a cell that is text is escaped, and a share is drawn as a :func:`bar`.

    >>> drawn = table(["level", ""], [["<0>", 1.0]])
    >>> "&lt;0&gt;" in drawn, "width:10.0em" in drawn
    (True, True)
    """
    lines = [_row("th", headings), *[_row("td", cells) for cells in rows]]
    return f'<table style="border-collapse:collapse">{"".join(lines)}</table>'


def _row(kind: str, cells: Sequence[str | float]) -> str:
    return f"<tr>{''.join([_cell(kind, cell) for cell in cells])}</tr>"


def _cell(kind: str, cell: str | float) -> str:
    align, content = "right", ""
    if isinstance(cell, str):
        content = escape(cell)
    else:
        align, content = "left", bar(cell)
    return f'<{kind} style="padding:.1em .6em;text-align:{align}">{content}</{kind}>'
