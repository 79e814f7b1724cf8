"""A small table of HTML with bars, for notebooks: it brings its style along."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_LONGEST = 10.0  # em
_SHORTEST = 0.1
_COLOUR = "#4493f8"  # can be told from light and dark pages


def bar(share: float) -> str:
    """A bar of HTML, whose length is a share of the longest; a share above 0 is always visible.

    >>> "width:5.0em" in bar(0.5), "width:0.1em" in bar(1e-9), bar(0.0)
    (True, True, '')
    """
    if share <= 0:
        return ""
    width = max(_SHORTEST, _LONGEST * min(share, 1.0))
    style = f"display:inline-block;height:.8em;width:{width:.1f}em;background:{_COLOUR}"
    return f'<span style="{style}"></span>'


def table(headings: Sequence[str], rows: Sequence[tuple[Sequence[str], float]]) -> str:
    """A table of text cells, escaped, each row with a bar of its share at the end.

    >>> table(["level"], [(["<0>"], 1.0)]).count("&lt;0&gt;")
    1
    """
    lines = [_row("th", [escape(heading) for heading in headings], "")]
    for cells, share in rows:
        lines.append(_row("td", [escape(cell) for cell in cells], bar(share)))
    return f'<table style="border-collapse:collapse">{"".join(lines)}</table>'


def _row(kind: str, cells: Sequence[str], last: str) -> str:
    right = "".join(f'<{kind} style="text-align:right">{cell}</{kind}>' for cell in cells)
    return f'<tr>{right}<{kind} style="text-align:left">{last}</{kind}></tr>'
