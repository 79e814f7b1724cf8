"""Draw filters.svg from the figures of the demo: ``lsmkv demo --json > demo.json``, then this.

python docs/pictures/filters.py demo.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from demo_figures import measured, per_get
from drawing import HERE, MARGIN, WIDTH, bar, card, text

LAYOUTS = {
    "off": "no filter",
    "block": "filter per 2 KiB",
    "table": "filter per table",
    "fuse": "fuse per table",
}
KINDS = {"absent": "A key that is not there", "present": "A key that is there"}

_BARS_AT = 144
_LONGEST = WIDTH - MARGIN - 52 - _BARS_AT
_ROW = 25


def shown(blocks: float) -> str:
    """Two digits, or three places for what is next to nothing."""
    return f"{blocks:.2f}" if blocks >= 0.1 else f"{blocks:.3f}"


def overlapping(figures: dict[str, Any]) -> int:
    """How many tables may have to be searched for one key."""
    levels = figures["as_loaded"][0]["tables_per_level"]
    return sum(tables if level == "0" else 1 for level, tables in levels.items())


def description(figures: dict[str, Any]) -> str:
    """The picture in words."""
    sentences = [
        f"{KINDS[kind]}: "
        + ", ".join(
            f"{title} {shown(per_get(figures, layout, kind))}" for layout, title in LAYOUTS.items()
        )
        for kind in KINDS
    ]
    return "Data blocks read from disk for each Get. " + ". ".join(sentences) + "."


def draw(figures: dict[str, Any]) -> str:
    """The picture: for either kind of key a bar for each layout."""
    gets = figures["as_loaded"][0]["absent"]["gets"]
    most = max(per_get(figures, layout, kind) for layout in LAYOUTS for kind in KINDS)
    parts = [
        text(
            MARGIN,
            53,
            "muted small",
            f"{figures['keys']:,} Unicode names in {overlapping(figures)} tables, "
            f"{gets:,} Gets of either kind",
        )
    ]
    y = 66.0
    for kind, heading in KINDS.items():
        y += 22
        parts.append(text(MARGIN, y, "head", heading))
        y += 10
        for layout, title in LAYOUTS.items():
            blocks = per_get(figures, layout, kind)
            width = _LONGEST * blocks / most
            parts += [
                text(_BARS_AT - 10, y + 14, "right", title),
                bar(_BARS_AT, y + 2, width, 16, "weak" if layout == "off" else "strong"),
                text(_BARS_AT + max(width, 1) + 7, y + 14, "head", shown(blocks)),
            ]
            y += _ROW
    y += 20
    fuse = 8 * measured(figures, "fuse")["filter_bytes"] / figures["keys"]
    parts.append(
        text(
            MARGIN,
            y,
            "muted small",
            f"{figures['bits_per_key']} bits a key, fuse {fuse:.1f}; no block cache. "
            "Made by lsmkv demo.",
        )
    )
    return card("Data blocks read from disk for each Get", description(figures), y + 18, parts)


def main(path: str) -> None:
    """Draw the picture of the figures in a file."""
    figures = json.loads(Path(path).read_text(encoding="utf-8"))
    (HERE / "filters.svg").write_text(draw(figures), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
