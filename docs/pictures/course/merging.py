"""Draws ``merging.svg``: the entries of three runs in one order, and what readers see of them."""

from __future__ import annotations

from drawing import BOXES, MARGIN, bar, box, card, text

from lsmkv.course.labs.merging import SAMPLE, Write, sample, seen
from lsmkv.engine.format.keys import unpack

COLUMN = 92
READERS = {"now": 9, "as of 7": 7, "as of 3": 3}


def draw() -> str:
    """A row for each entry, in the column of its run; on the right, what each reader sees."""
    names = [name for name, _ in SAMPLE]
    writes = sorted(write for _, run in SAMPLE for write in run)
    right = MARGIN + COLUMN * len(names) + 6
    parts = [text(MARGIN + COLUMN * at, 60, "head", name) for at, name in enumerate(names)]
    parts += [text(right + 58 * at, 60, "small", head) for at, head in enumerate(READERS)]
    y = 72
    last = b""
    for (internal_key, value), name in sample():
        key, sequence, kind = unpack(internal_key)
        if key != last and last:
            parts.append(bar(MARGIN, y, 480 - 2 * MARGIN, 1, "weak"))
            y += 7
        last = key
        x = MARGIN + COLUMN * names.index(name)
        words = f"{key.decode()} {sequence}"
        parts.append(
            box(
                x,
                y,
                COLUMN - 8,
                42,
                words,
                value.decode() if kind else "deletion",
                kind="box" if kind else "gone",
            )
        )
        for at, sees in enumerate(READERS.values()):
            state = mark(writes, Write(sequence, key, value if kind else None), sees)
            style = "small" if state == "seen" else "small muted"
            parts.append(text(right + 58 * at, y + 26, style, state))
        y += 48
    y += 6
    parts.append(bar(MARGIN, y, 480 - 2 * MARGIN, 1, "weak"))
    for head, sees in READERS.items():
        pairs = ", ".join(f"{key.decode()}={value.decode()}" for key, value in seen(writes, sees))
        y += 22
        parts.append(text(MARGIN, y, "small", f"{head}: {pairs}"))
    return card(
        "Three runs in one order, and what readers see",
        "Seven entries of a memtable and two tables, sorted by key, the newest first. A reader sees"
        " the newest version of a key that is not too new for it; a deletion hides older ones.",
        y + 20,
        parts,
        style=BOXES,
    )


def mark(writes: list[Write], write: Write, reader: int) -> str:
    """What a version is to a reader."""
    if write.sequence > reader:
        return "too new"
    newer = [one for one in writes if one.key == write.key and one.sequence <= reader]
    if newer[-1].sequence != write.sequence:
        return "hidden"
    return "hides" if write.value is None else "seen"
