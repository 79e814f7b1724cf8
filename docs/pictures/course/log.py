"""Draws ``log.svg``: two records around the border of two blocks."""

from __future__ import annotations

from drawing import BOXES, MARGIN, bar, box, card, text

from lsmkv.course.labs.log import parts
from lsmkv.engine.format.log import BLOCK_SIZE, frame


def draw() -> str:
    """Two records around the border of two blocks."""
    begin = BLOCK_SIZE - 30
    data = frame(b"ant", begin)
    data += frame(b"antelope and bee", begin + len(data))
    found: list[list[tuple[int, int, str]]] = []
    for part in parts(data, begin):
        if part[2].startswith("masked"):
            found.append([])
        found[-1].append(part)
    y = 66
    shapes = []
    for fragment in found:
        at = begin + fragment[0][0]
        if at == BLOCK_SIZE:
            shapes.append(bar(MARGIN, y + 6, 480 - 2 * MARGIN, 2, "strong"))
            shapes.append(text(MARGIN, y + 28, "small muted", f"the next block, from {at:,} on"))
            y += 40
        shapes.append(text(MARGIN, y + 28, "small muted", f"{at:,}"))
        x = 76
        for (start, size, field), wide in zip(fragment, (104, 64, 64, 142), strict=True):
            piece = data[start : start + size]
            name, _, value = field.partition(", ")
            words = {"masked checksum of type and data": "checksum", "data": repr(piece)[2:-1]}
            shown = value or words[name]
            kind = "mark" if name == "data" else "box"
            below = f"{size} bytes" if name == "data" else piece.hex(" ")
            shapes.append(box(x, y, wide, 48, shown, below, kind=kind))
            x += wide + 4
        y += 58
    shapes.append(
        text(MARGIN, y + 16, "small muted", "Third column: the type, after checksum and length.")
    )
    return card(
        "Two records at the end of a block",
        "The record ant is one FULL fragment. The record antelope and bee does not fit into the"
        " rest of its block: its FIRST fragment ends with the block, its LAST begins the next.",
        y + 34,
        shapes,
        style=BOXES,
    )
