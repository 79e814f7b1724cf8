"""What the pictures of README.md share: a card of horizontal bars as SVG, and a page's block.

``make pictures`` runs the scripts beside this module.  Each draws one picture from measured figures
and rewrites the part of README.md that states them.  A card brings its own background, in GitHub's
colors for light and dark, so it is legible whatever the page around it looks like.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

HERE = Path(__file__).resolve().parent
README = HERE.parents[1] / "README.md"

WIDTH = 480
"""Narrow, so that the text is still large enough on a telephone."""
MARGIN = 18

_STYLE = """
  text { font: 14px -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; }
  .title { font-size: 17px; font-weight: 600; }
  .head { font-weight: 600; }
  .small { font-size: 12.5px; }
  .right { text-anchor: end; }
  .middle { text-anchor: middle; }
  .card { fill: #ffffff; stroke: #d1d9e0; }
  text { fill: #1f2328; }
  .muted { fill: #59636e; }
  .line { stroke: #d1d9e0; }
  .axis { stroke: #59636e; }
  .strong { fill: #0969da; }
  .weak { fill: #9aa3ad; }
  @media (prefers-color-scheme: dark) {
    .card { fill: #0d1117; stroke: #3d444d; }
    text { fill: #f0f6fc; }
    .muted { fill: #9198a1; }
    .line { stroke: #3d444d; }
    .axis { stroke: #9198a1; }
    .strong { fill: #4493f8; }
    .weak { fill: #6e7681; }
  }
"""

BOXES = """
  .box { fill: #f6f8fa; stroke: #9aa3ad; }
  .mark { fill: #ddf4ff; stroke: #0969da; }
  .gone { fill: none; stroke: #9aa3ad; stroke-dasharray: 4 3; }
  .bad { fill: #ffebe9; stroke: #cf222e; }
  .arrow { stroke: #9aa3ad; fill: none; }
  .tip { fill: #9aa3ad; }
  @media (prefers-color-scheme: dark) {
    .box { fill: #161b22; stroke: #6e7681; }
    .mark { fill: #0c2d6b; stroke: #4493f8; }
    .gone { stroke: #6e7681; }
    .bad { fill: #490202; stroke: #f85149; }
    .arrow { stroke: #6e7681; }
    .tip { fill: #6e7681; }
  }
"""
"""Style of boxes and arrows, for :func:`card`."""
HEAD = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
    ' orient="auto"><path d="M0,0 L8,4 L0,8 z" class="tip"/></marker></defs>'
)
"""The head of arrows: a part of each picture that has some."""


def text(x: float, y: float, classes: str, words: str) -> str:
    """A line of text whose baseline is at ``y``."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{classes}">{escape(words)}</text>'


def bar(x: float, y: float, width: float, height: float, classes: str) -> str:
    """A bar; one that would be too thin to be seen is drawn one unit wide."""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{height:.1f}" '
        f'rx="1.5" class="{classes}"/>'
    )


def line(x: float, top: float, bottom: float, classes: str) -> str:
    """A vertical line."""
    return f'<line x1="{x:.1f}" y1="{top:.1f}" x2="{x:.1f}" y2="{bottom:.1f}" class="{classes}"/>'


def box(x: float, y: float, width: float, height: float, *lines: str, kind: str = "box") -> str:
    """A box with lines of text in its middle, the first of them larger."""
    shapes = [
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" class="{kind}"/>',
    ]
    first = y + height / 2 + 5 - 9 * (len(lines) - 1)
    for at, words in enumerate(lines):
        shapes.append(text(x + width / 2, first + 18 * at, "middle" + " small" * (at > 0), words))
    return "\n".join(shapes)


def arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    """An arrow from one point to another."""
    return f'<path d="M{x},{y} L{to_x},{to_y}" class="arrow" marker-end="url(#head)"/>'


def card(
    title: str,
    description: str,
    height: float,
    parts: Sequence[str],
    width: int = WIDTH,
    style: str = "",
) -> str:
    """The whole picture: ``parts`` on a card.  A screen reader hears title and description.

    ``style`` is CSS beside that of all cards.
    """
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" '
            f'width="{width}" height="{height:.0f}" role="img" aria-labelledby="title desc">',
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="desc">{escape(description)}</desc>',
            f"<style>{_STYLE}{style}</style>",
            f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1:.0f}" rx="6" '
            'class="card"/>',
            text(MARGIN, 32, "title", title),
            *parts,
            "</svg>",
            "",
        ]
    )


def replace_block(page: str, name: str, block: str) -> str:
    """The page with ``block`` between the comments ``<!-- name -->`` and ``<!-- end name -->``."""
    pattern = rf"(?s)(<!-- {name} -->\n).*?(<!-- end {name} -->)"
    replaced, times = re.subn(pattern, lambda found: found[1] + block + found[2], page)
    if times != 1:
        raise ValueError(f"the page has {times} blocks called {name}, not one")
    return replaced


def image(name: str, alternative: str) -> str:
    """The lines that show a picture of this folder in README.md."""
    alternative = escape(alternative, {'"': "&quot;"})
    return f'<img src="docs/pictures/{name}" width="560" alt="{alternative}">\n'


def publish(picture: str, drawn: str, name: str, block: str) -> None:
    """Write a picture into this folder, and the block that shows it into README.md."""
    (HERE / picture).write_text(drawn, encoding="utf-8")
    page = README.read_text(encoding="utf-8")
    README.write_text(replace_block(page, name, block), encoding="utf-8")
