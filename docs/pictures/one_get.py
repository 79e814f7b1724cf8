"""Draw one_get.svg: a Get of an absent key with and without filters, step by step, for README.md.

``make pictures`` runs it, after filters.py.  The Get is one of a store that is made for it, and
``DB.explain`` says which blocks it reads and which bits its filters look at.  The animation is CSS,
so it plays in an ``<img>``; where motion is not wanted, the last step stands still.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import lsmkv

sys.path.insert(0, str(Path(__file__).resolve().parent))
from demo_figures import measured, per_get
from drawing import BOXES, MARGIN, box, card, image, publish, text
from explain import KEYS, fill, key

WIDTH, HEIGHT = 560, 282
SECONDS = 10
_LANE = (WIDTH - 3 * MARGIN) / 2
_READ, _ASK = 18, 3
"""What a block and a filter take, in hundredths of the animation: a block takes far longer."""
_START, _END = 8, 96


def looked_up(db: lsmkv.DB) -> dict[str, Any]:
    """The first absent key that the filters of all three tables deny."""
    for number in range(KEYS // 2, KEYS):
        explained = db.explain(key(2 * number + 1))
        if not explained.blocks_searched and explained.blocks_without_filters == 3:
            return explained.to_dict()
    raise AssertionError("a filter says maybe of each")


def shown(begin: int, end: int, name: str) -> str:
    """The rule by which what is called ``name`` is there from one hundredth to another."""
    return (
        f"  @keyframes {name} {{ 0%, {begin}% {{ opacity: 0 }}"
        f" {begin + 1}%, {end}% {{ opacity: 1 }} {min(end + 1, 100)}%, 100% {{ opacity: 0 }} }}\n"
        f"  .{name} {{ opacity: 0; animation: {name} {SECONDS}s infinite; }}\n"
        f"  @media (prefers-reduced-motion: reduce) {{ .{name} {{ animation: none;"
        f" opacity: {int(end == _END)}; }} }}\n"
    )


def lane(
    x: float, heading: str, tables: list[dict[str, Any]], filters: bool
) -> tuple[list[str], str]:
    """Half of the picture, and its rules."""
    middle, took = x + _LANE / 2, _ASK if filters else _READ
    parts, rules = [text(x, 62, "head", heading)], ""
    for at, table in enumerate(tables):
        name, y = f"{'with' if filters else 'without'}{at}", 74 + 56 * at
        after = _START + took * (at + 1)
        (probe,), block = table["filters"], table["spared"]
        said = (
            ("filter: no", f"bit {probe['positions'][-1]} is 0: nothing to read")
            if filters
            else ("reads a block: not there", f"{block['bytes_read']:,} bytes from the disk")
        )
        parts.append(box(x, y, _LANE, 46, f"table on level {table['level']}"))
        parts.append(f'<g class="{name}">')
        parts += [box(x, y, _LANE, 46, *said, kind="mark" if filters else "bad"), "</g>"]
        rules += shown(after, _END, name)
    sizes = [] if filters else [table["spared"]["bytes_read"] for table in tables]
    for blocks in range(len(sizes) + 1):
        begin = _START + took * blocks if blocks else 0
        end = _END if blocks == len(sizes) else _START + took * (blocks + 1)
        name = f"count{'with' if filters else 'without'}{blocks}"
        line = f"{blocks} block{'s' * (blocks != 1)}, {sum(sizes[:blocks]):,} bytes read"
        parts.append(f'<g class="{name}">{text(middle, 258, "middle head", line)}</g>')
        rules += shown(begin, end, name)
    return parts, rules


def factor(figures: dict[str, Any]) -> str:
    """The sentence of the demo's figures."""
    off, block = (per_get(figures, layout, "absent") for layout in ("off", "block"))
    gets = measured(figures, "off")["absent"]["gets"]
    return (
        f"Over {gets:,} Gets of absent keys, filters make {off / block:.0f} times fewer reads:"
        f" {block:.3f} blocks a Get instead of {off:.2f}."
    )


def drawn() -> tuple[str, str]:
    """The picture, as SVG, and what it says."""
    with (
        tempfile.TemporaryDirectory() as place,
        lsmkv.DB(f"{place}/sensors", create_if_missing=True) as db,
    ):
        fill(db)
        explained = looked_up(db)
    tables = explained["tables"]
    total = sum(table["spared"]["bytes_read"] for table in tables)
    description = (
        f"A Get of an absent key, {explained['key']}, in a store of three tables. Without filters"
        f" it reads a block of each, {total:,} bytes, to find nothing. With filters each table says"
        " no after a few bits, and nothing is read."
    )
    left, slow = lane(MARGIN, "without filters", tables, False)
    right, fast = lane(2 * MARGIN + _LANE, "with filters", tables, True)
    title = f"Get {explained['key']}, which is not there"
    return card(title, description, HEIGHT, left + right, WIDTH, BOXES + slow + fast), description


def main(path: str) -> None:
    """Draw the picture, and show it in README.md beside the factor of the demo's figures."""
    figures = json.loads(Path(path).read_text(encoding="utf-8"))
    svg, description = drawn()
    block = image("one_get.svg", description) + f"\n{factor(figures)}\n"
    publish("one_get.svg", svg, "one get", block)


if __name__ == "__main__":
    main(sys.argv[1])
