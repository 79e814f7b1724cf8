"""Draws ``manifest.svg``: three edits of a MANIFEST, and the tables of two levels after each."""

from __future__ import annotations

from drawing import BOXES, MARGIN, bar, box, card, text

from lsmkv.course.labs.edits import applied, encoded, manifests, no_levels
from lsmkv.files import parse_edit


def draw() -> str:
    """Three edits, and the levels after each."""
    snapshot, _, flushed, compacted = manifests()[3]
    levels = no_levels()
    parts = [
        text(MARGIN, 58, "small muted", "a record of the MANIFEST"),
        text(236, 58, "small muted", "level 0"),
        text(362, 58, "small muted", "level 1"),
    ]
    y = 70
    for name, fields in (
        ("the snapshot", snapshot),
        ("a flush", flushed),
        ("a compaction", compacted),
    ):
        record = encoded(fields)
        edit = parse_edit(record)
        levels = applied(levels, fields)
        new = {file.number for _, file in edit.new_files}
        words = f"adds {_list(new)}"
        if edit.deleted_files:
            words = f"deletes {_list({number for _, number in edit.deleted_files})}, {words}"
        parts.append(box(MARGIN, y, 200, 56, f"{name}, {len(record)} bytes", words))
        for level, x in ((0, 236), (1, 362)):
            for at, file in enumerate(levels[level]):
                kind = "mark" if file[0] in new else "box"
                parts.append(box(x + 54 * at, y + 10, 48, 36, str(file[0]), kind=kind))
            if not levels[level]:
                parts.append(box(x, y + 10, 48, 36, "", kind="gone"))
        y += 64
    parts += [
        bar(MARGIN, y + 8, 480 - 2 * MARGIN, 1, "weak"),
        text(
            MARGIN,
            y + 32,
            "small muted",
            "A number is that of a table: 9 is 000009.ldb. New ones are",
        ),
        text(
            MARGIN,
            y + 50,
            "small muted",
            "marked. The tables that an edit deletes go once it is durable.",
        ),
    ]
    return card(
        "Edits make levels",
        "The snapshot puts table 5 on level 0 and table 4 on level 1. A flush adds table 9 in front"
        " of table 5. A compaction deletes all three and adds table 10 on level 1.",
        y + 66,
        parts,
        style=BOXES,
    )


def _list(numbers: set[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))
