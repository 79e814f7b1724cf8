"""Draws ``chaos.svg``: how long calls waited while processes that share a store were killed.

    python docs/pictures/chaos.py build/chaos-worker.json build/chaos-process.json

The reports are those of ``make chaos``.  The picture is for README.md, and so is the sentence below
it, which this script writes there.
"""

from __future__ import annotations

import json
import math
import sys
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from drawing import HERE, MARGIN, bar, card, image, line, publish, text

WIDTH = 760
COLUMNS = 240
"""Spans of time, each with a bar for the longest wait of a call that began in it."""
PANEL = 118
"""Height of a report's part."""
LEAST, MOST = 0.05, 30.0
"""Seconds that the axis shows, by their logarithms."""
_LEFT = 64
_TEXT = 124
"""Columns of the README's text."""
_TICKS = {0.1: "0.1 s", 1.0: "1 s", 10.0: "10 s"}
_HEADS = {"worker": "A worker owns the store", "process": "A process of its own owns it"}
_STYLE = """
  .killed { stroke: #cf222e; stroke-width: 1; }
  .stopped { fill: #9aa3ad; fill-opacity: 0.25; }
  @media (prefers-color-scheme: dark) { .killed { stroke: #f85149; } }
"""


def height_of(waited: float) -> float:
    """The height of a bar."""
    share = math.log(max(waited, LEAST) / LEAST) / math.log(MOST / LEAST)
    return min(share, 1.0) * (PANEL - 48)


def panel(report: dict[str, Any], top: float) -> list[str]:
    """One report: a red line for each kill of an owner, and bars for what calls waited."""
    seconds: float = report["seconds"]
    width = WIDTH - _LEFT - MARGIN
    base = top + PANEL - 22

    def place(at: float) -> float:
        return _LEFT + width * min(at / seconds, 1.0)

    parts = [text(MARGIN, top + 12, "head", _HEADS[report["owner"]])]
    parts += [
        line(place(at), base, base + 6, "killed")
        for event, at in report["events"]
        if event == "kill of the owner"
    ]
    for value, words in _TICKS.items():
        y = base - height_of(value)
        parts += [
            bar(_LEFT, y, width, 0.5, "stopped"),
            text(_LEFT - 8, y + 4, "small muted right", words),
        ]
    longest = [0.0] * COLUMNS
    for at, waited in report["waits"]:
        column = min(int(at / seconds * COLUMNS), COLUMNS - 1)
        longest[column] = max(longest[column], waited)
    for column, waited in enumerate(longest):
        if waited > LEAST:
            x = _LEFT + width * column / COLUMNS
            parts.append(bar(x, base - height_of(waited), 2, height_of(waited), "strong"))
    parts.append(bar(_LEFT, base, width, 1, "weak"))
    return parts


def counted(reports: Sequence[dict[str, Any]]) -> dict[str, int]:
    """What happened in all reports together."""
    events = Counter(event for report in reports for event, _ in report["events"])
    return {
        "kills": events["kill"] + events["kill of the owner"],
        "owners": events["kill of the owner"],
        "writes": sum(report["writes"] for report in reports),
        "lost": sum(report["lost"] for report in reports),
        "stale": sum(report["stale"] for report in reports),
        "errors": sum(sum(report["errors"].values()) for report in reports),
        **{name: events[name] for name in ("stop", "reload", "deploy")},
    }


def draw(reports: Sequence[dict[str, Any]]) -> tuple[str, str]:
    """The picture, as SVG, and what stands beside it in README.md."""
    found = counted(reports)
    minutes = reports[0]["seconds"] / 60
    stop = min(20.0, reports[0]["seconds"] / 30)
    longest = max(report["longest"] for report in reports)
    title = f"Four workers, one store: {found['kills']:,} kills, 0 writes lost"
    if found["lost"] or found["stale"] or found["errors"]:
        raise SystemExit(f"there is no picture of {found}")
    told = (
        f"{found['writes']:,} writes in {minutes:.0f} minutes with each kind of owner,"
        f" {found['kills']:,} kills ({found['owners']:,} of the owner), {found['stop']} stops of"
        f" {stop:.0f} s, {found['reload']} reloads and {found['deploy']} deploys. No acknowledged"
        " write was lost, no read was stale, and no call raised an error. The longest wait was"
        f" {longest:.1f} s, in a stop."
    )
    top = 50.0
    parts = [part for at, report in enumerate(reports) for part in panel(report, top + PANEL * at)]
    bottom = top + PANEL * len(reports)
    parts += [
        text(_LEFT, bottom + 2, "small muted", "0"),
        text(WIDTH - MARGIN, bottom + 2, "small muted right", f"{minutes:.0f} minutes"),
        text(
            *(MARGIN, bottom + 26, "small muted"),
            f"Bars: the longest wait of a call, above {LEAST} s. Red: the owner is killed.",
        ),
    ]
    sentence = textwrap.fill(f"Four processes share a store in `make chaos`: {told}", _TEXT)
    words = f"{sentence}\n\n{image('chaos.svg', title)}"
    return card(title, told, bottom + 42, parts, WIDTH, _STYLE), words


if __name__ == "__main__":
    drawn, block = draw([json.loads(Path(name).read_text("utf-8")) for name in sys.argv[1:]])
    publish("chaos.svg", drawn, "chaos", block)
    sys.stdout.write(f"{HERE / 'chaos.svg'}\n")
