"""Draws ``keys.svg``: 300 as a varint, and an internal key."""

from __future__ import annotations

from drawing import BOXES, HEAD, MARGIN, arrow, bar, box, card, text

from lsmkv.engine.format.keys import pack
from lsmkv.engine.util.coding import encode_varint


def draw() -> str:
    """300 as a varint, and an internal key."""
    data = encode_varint(300)
    low, high = 300 & 127, 300 >> 7
    left, wide = 66, 150
    parts = [
        HEAD,
        text(MARGIN, 58, "head", "a varint: 300"),
        text(MARGIN, 88, "small muted", "bits"),
        box(left, 70, wide, 30, f"{high:07b}"),
        box(left + wide + 40, 70, wide, 30, f"{low:07b}", kind="mark"),
        arrow(left + wide / 2, 100, left + wide + 40 + wide / 2 - 8, 128),
        arrow(left + wide + 40 + wide / 2, 100, left + wide / 2 + 8, 128),
        text(MARGIN, 150, "small muted", "bytes"),
        box(left, 132, wide, 48, f"{data[0]:02x}", f"1 {low:07b}", kind="mark"),
        box(left + wide + 40, 132, wide, 48, f"{data[1]:02x}", f"0 {high:07b}"),
        text(left, 200, "small muted", "the top bit 1: another byte"),
        text(left + wide + 40, 200, "small muted", "the top bit 0: the last one"),
        bar(MARGIN, 216, 480 - 2 * MARGIN, 1, "weak"),
        text(MARGIN, 244, "head", "internal keys, in their order"),
    ]
    rows = [(b"ant", 7, 1), (b"ant", 4, 0), (b"ant", 2, 1), (b"bee", 5, 1)]
    for at, (user_key, sequence, kind) in enumerate(rows):
        y = 258 + 36 * at
        tag = pack(user_key, sequence, kind)[-8:]
        parts += [
            box(MARGIN, y, 60, 28, user_key.decode()),
            box(MARGIN + 64, y, 218, 28, tag.hex(" "), kind="mark"),
            text(
                MARGIN + 294,
                y + 18,
                "small muted",
                f"sequence {sequence}, {'a value' if kind else 'a deletion'}",
            ),
        ]
    parts.append(
        text(
            MARGIN,
            424,
            "small muted",
            "As of sequence 5, the first ant is the deletion: there is no ant.",
        )
    )
    return card(
        "Varints and internal keys",
        "The lower seven bits of 300 become the first byte, with its top bit set, and the upper"
        " ones the second. Internal keys sort by user key, and the newest version comes first.",
        442,
        parts,
        style=BOXES,
    )
