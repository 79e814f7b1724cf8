"""Draws ``block.svg``: four entries of a block, and what their keys share."""

from __future__ import annotations

from drawing import BOXES, MARGIN, box, card, text

from lsmkv.course.labs.block import SAMPLE, built
from lsmkv.engine.table.block import Block


def draw() -> str:
    """Four entries of a block, and what their keys share."""
    entries = SAMPLE
    data = built(entries, 2)
    made = Block(data)
    parts = [
        text(MARGIN, 58, "small muted", "at"),
        text(58, 58, "small muted", "lengths"),
        text(152, 58, "small muted", "key"),
        text(368, 58, "small muted", "value"),
    ]
    at, letter = 0, 28
    for number, (key, value) in enumerate(entries):
        shared, unshared, size, key_at = made.header(at)
        y = 70 + 38 * number
        parts.append(text(MARGIN, y + 20, "small muted", str(at)))
        parts.append(box(50, y, 84, 30, data[at:key_at].hex(" ")))
        for place, byte in enumerate(key):
            kind = "gone" if place < shared else "mark"
            parts.append(box(148 + letter * place, y, letter - 2, 30, chr(byte), kind=kind))
        parts.append(box(364, y, 50, 30, value.decode()))
        if at in made.restart_points():
            parts.append(text(422, y + 20, "small", "restart"))
        at = key_at + unshared + size
    y = 70 + 38 * len(entries) + 12
    words = [data[at : at + 4] for at in range(at, len(data), 4)]
    names = [*(f"restart {point}" for point in made.restart_points()), "their number"]
    for place, (word, name) in enumerate(zip(words, names, strict=True)):
        parts.append(box(50 + 128 * place, y, 120, 48, word.hex(" "), name))
    parts.append(text(MARGIN, y + 28, "small muted", str(made.end)))
    parts.append(
        text(
            MARGIN,
            y + 76,
            "small muted",
            "Dashed letters are shared with the key before, not stored.",
        )
    )
    return card(
        "A block: keys that share their beginnings",
        "Four entries. The key antler shares ant with the one before it. The first and the third"
        " are restart points, whose keys are whole; their offsets stand at the end.",
        y + 94,
        parts,
        style=BOXES,
    )
