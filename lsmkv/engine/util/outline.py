"""An outline: a text as lines, each with a depth and a tone.

One outline has several renderings: text, HTML, and the trees that ``lsmkv/tools`` draws.  A line's
words say everything; a color may show its tone.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Literal, NamedTuple

Tone = Literal["plain", "quiet", "saved", "read", "wasted"]
"""``saved``: a data block that need not be read; ``read``: one that is read; ``wasted``: one that
is read but lacks the key; ``quiet``: of less interest."""

EDGES: dict[Tone, str] = {
    "plain": "transparent",
    "quiet": "transparent",
    "saved": "#2da44e",
    "read": "#bf8700",
    "wasted": "#cf222e",
}
"""The color next to a line in HTML.  No text has it, so it may be used on light and dark pages."""


class Line(NamedTuple):
    """One line of an outline."""

    depth: int
    """0 for a heading; at most one more than that of the line before."""
    tone: Tone
    text: str


def as_text(lines: Sequence[Line]) -> str:
    """The outline in plain text, two spaces for each depth.

    >>> print(as_text([Line(0, "plain", "get 'k'"), Line(1, "saved", "no block is read")]))
    get 'k'
      no block is read
    """
    return "\n".join("  " * line.depth + line.text for line in lines)


def as_html(lines: Sequence[Line]) -> str:
    """The outline as nested HTML lists, which include their style; text is escaped.

    >>> as_html([Line(0, "plain", "<k>")]).endswith("&lt;k&gt;</li></ul>")
    True
    """
    parts: list[str] = []
    depth = -1
    for line in lines:
        if line.depth > depth:
            parts.append(_open_list(line.depth))
        else:
            parts.append("</li>" + "</ul></li>" * (depth - line.depth))
        text = escape(line.text)
        if line.tone == "quiet":
            text = f'<span style="opacity:.7">{text}</span>'
        edge = f"border-left:3px solid {EDGES[line.tone]};padding-left:.5em"
        parts.append(f'<li style="{edge}">{text}')
        depth = line.depth
    parts.append("</li></ul>" * (depth + 1))
    return "".join(parts)


def _open_list(depth: int) -> str:
    indent = "0" if depth == 0 else "0 0 0 1em"
    font = "font-family:monospace;overflow-wrap:anywhere;" if depth == 0 else ""
    return f'<ul style="{font}list-style:none;margin:{indent};padding:0">'
