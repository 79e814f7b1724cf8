"""Draws ``table.svg``: the parts of a table, and the three reads of a get."""

from __future__ import annotations

from drawing import BOXES, HEAD, MARGIN, box, card, text

from lsmkv.course.labs.table import (
    SAMPLE,
    SAMPLE_BLOCK_SIZE,
    blocks_in,
    built,
    contents_of,
)
from lsmkv.engine.format.keys import unpack
from lsmkv.engine.table.block import Block
from lsmkv.engine.table.format import FOOTER_SIZE

LEFT, WIDE = 76, 230
HIGH, GAP = 48, 8


def draw() -> str:
    """A table of three keys in two data blocks, from its beginning to its end."""
    data = built(SAMPLE, SAMPLE_BLOCK_SIZE)
    blocks = blocks_in(data)
    index_keys, _ = Block(contents_of(data, blocks[-1][1])).entries()
    parts = [HEAD, text(MARGIN, 58, "small muted", "offset")]
    middles: dict[str, float] = {}
    y = 70
    for name, handle in blocks:
        keys = [unpack(key)[0].decode() for key in Block(contents_of(data, handle)).entries()[0]]
        content = ", ".join(keys)
        if name == "index":
            content = "up to " + ", up to ".join(keys)
        elif name == "metaindex":
            content = "no entries: the table has no filters"
        kind = "box" if name != "data block 1" else "mark"
        parts.append(text(MARGIN, y + 29, "small muted", str(handle.offset)))
        parts.append(box(LEFT, y, WIDE, HIGH, name, content, kind=kind))
        middles[name] = y + HIGH / 2
        y += HIGH + GAP
    start = len(data) - FOOTER_SIZE
    parts.append(text(MARGIN, y + 29, "small muted", str(start)))
    parts.append(box(LEFT, y, WIDE, HIGH, "footer", f"{FOOTER_SIZE} bytes: two handles, magic"))
    middles["footer"] = y + HIGH / 2
    right = LEFT + WIDE
    hops = (("footer", "index", 40), ("index", "data block 1", 40))
    for start_name, end_name, out in hops:
        begin, end = middles[start_name] - 8, middles[end_name] + 8
        parts.append(
            f'<path d="M{right + 2},{begin} C{right + out},{begin} {right + out},{end}'
            f' {right + 6},{end}" class="arrow" marker-end="url(#head)"/>'
        )
    up_to = unpack(index_keys[-1])[0].decode()
    for name, words, below in (
        ("footer", "1. the footer", "the last 48 bytes"),
        ("index", "2. the index", f"cat is up to {up_to}"),
        ("data block 1", "3. one data block", "cat is in it"),
    ):
        parts.append(text(right + 46, middles[name] - 1, "small", words))
        parts.append(text(right + 46, middles[name] + 16, "small muted", below))
    y += HIGH + 30
    parts.append(
        text(MARGIN, y, "small muted", "Each block is followed by its type and checksum, 5 bytes.")
    )
    return card(
        "A table, and the reads of a get for cat",
        "Two data blocks, metaindex, index, footer. The footer leads to the index, whose entry up"
        " to d leads to data block 1, which holds cat.",
        y + 20,
        parts,
        style=BOXES,
    )
