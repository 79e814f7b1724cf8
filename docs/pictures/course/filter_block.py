"""Draws ``filter_block.svg``: ranges of a table, the data blocks in them, and their filters."""

from __future__ import annotations

from drawing import BOXES, HEAD, MARGIN, arrow, bar, box, card, line, text

from lsmkv.course.labs.filter_block import POLICY, SAMPLE, SIZE, built, grouped
from lsmkv.engine.format.keys import unpack
from lsmkv.engine.table.filter_block import FilterBlockReader

WIDE = 480 - 2 * MARGIN
RANGE = WIDE / 3
TOP, BOTTOM = 96, 196


def draw() -> str:
    """Three ranges of 2 KiB, three data blocks, and the filter block's parts."""
    data = built(SAMPLE, POLICY)
    reader = FilterBlockReader(POLICY, data)
    parts = [HEAD, text(MARGIN, 58, "small muted", "offsets in the file, in ranges of 2 KiB")]
    for number in range(4):
        x = MARGIN + RANGE * number
        parts.append(line(x, TOP - 18, BOTTOM + 62, "line"))
        if number < 3:
            parts.append(text(x + 6, TOP - 8, "small muted", f"{SIZE * number:,}"))
    ends = [offset for offset, _ in SAMPLE[1:]]
    for (offset, keys), end in zip(SAMPLE[:-1], ends, strict=True):
        left, right = (MARGIN + RANGE * at / SIZE for at in (offset, end))
        names = " ".join(unpack(key)[0].decode() for key in keys)
        parts.append(box(left + 1, TOP, right - left - 2, 44, names))
        target = MARGIN + RANGE * (offset // SIZE) + RANGE / 2
        parts.append(arrow(min(left + 12, right - 8), TOP + 46, target, BOTTOM - 4))
    for number, keys in enumerate(grouped(SAMPLE)):
        x = MARGIN + RANGE * number
        size = len(reader.filter_for(SIZE * number) or b"")
        words = " ".join(key.decode() for key in keys) if keys else "no block begins here"
        kind = "mark" if keys else "gone"
        label = f"filter {number}: {size} bytes"
        parts.append(box(x + 4, BOTTOM, RANGE - 8, 48, label, words, kind=kind))
    y = BOTTOM + 96
    parts.append(bar(MARGIN, y - 26, WIDE, 1, "weak"))
    array = int.from_bytes(data[-5:-1], "little")
    parts.append(text(MARGIN, y, "", f"The filter block, {len(data)} bytes"))
    pieces = (
        ("filters", f"{array} bytes", 116, "mark"),
        ("offset array", data[array:-5].hex(" ", 4), 188, "box"),
        ("its offset", data[-5:-1].hex(" "), 104, "box"),
        ("lg", data[-1:].hex(), 30, "box"),
    )
    left = float(MARGIN)
    for name, label, wide, kind in pieces:
        parts.append(box(left, y + 14, wide - 4, 48, name, label, kind=kind))
        left += wide + 2
    return card(
        "A filter for each 2 KiB of a table",
        "Three data blocks begin at 0, 1500 and 5000. The first two begin in the first range and"
        " share filter 0. No block begins in the second range, so filter 1 has no bytes. The third"
        " block has filter 2.",
        y + 82,
        parts,
        style=BOXES,
    )
