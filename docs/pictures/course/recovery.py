"""Draws ``recovery.svg``: three logs with bad bytes, and what the sequences say about them."""

from __future__ import annotations

from drawing import BOXES, MARGIN, box, card, text

from lsmkv.course.labs.recovering import batches, engine_replays, log_of, pieces_of_log
from lsmkv.engine.format.batch import decode_batch

CASES = (
    ((5, 6, 0), "a torn tail: nothing follows, so this is the end"),
    ((5, 6, 0, 7), "the sequence goes on: only a torn record was lost"),
    ((5, 6, 0, 8), "a gap: write 7 is missing, and the store says so"),
)


def draw() -> str:
    """Three logs, batch by batch, as the engine's reader finds them."""
    parts = []
    y = 60
    for starts, words in CASES:
        pieces, _ = pieces_of_log(log_of(batches(*starts)))
        refused = engine_replays([pieces], 0, [b"key"]) is None
        parts.append(text(MARGIN, y, "small muted", words))
        x = MARGIN
        for piece in pieces:
            if piece is None:
                parts.append(box(x, y + 10, 106, 40, "bad bytes", kind="bad"))
                x += 112
                continue
            sequence, _ = decode_batch(piece)
            behind = refused and None in pieces[: pieces.index(piece)]
            kind = "gone" if behind else "mark"
            parts.append(box(x, y + 10, 80, 40, f"write {sequence}", kind=kind))
            x += 86
        y += 78
    return card(
        "Bad bytes in a log",
        "Writes 5 and 6, then bad bytes. If nothing follows, that is the end of the log. If write 7"
        " follows, nothing that was acknowledged is missing. If write 8 follows, write 7 is.",
        y - 8,
        parts,
        style=BOXES,
    )
