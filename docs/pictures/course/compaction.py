"""Draws ``compaction.svg``: the tables of three levels, and those that a compaction takes."""

from __future__ import annotations

from drawing import BOXES, MARGIN, bar, card, text

from lsmkv.course.labs.compaction import engine_pick, engine_scores, levels_of

LEVELS = levels_of(
    l0=[(14, 1, "p", "w"), (13, 1, "c", "f"), (12, 1, "a", "d"), (11, 1, "f", "i")],
    l1=[(7, 2, "b", "e"), (8, 2, "g", "k"), (9, 2, "m", "q"), (10, 2, "s", "x")],
    l2=[(3, 2, "a", "c"), (4, 2, "d", "j"), (5, 2, "l", "t"), (6, 2, "u", "z")],
)
LEFT = 84
STEP = 14.6
HIGH = 24


def draw() -> str:
    """The tables of three levels as ranges of keys; those of a compaction are marked."""
    picked = engine_pick(LEVELS, [None] * 7)
    assert picked is not None
    taken = {file[0] for file in picked.inputs + picked.next_inputs}
    parts = [
        text(LEFT + STEP * at + STEP / 2, 60, "small muted middle", letter)
        for at, letter in enumerate("abcdefghijklmnopqrstuvwxyz")
    ]
    y = 72.0
    for level, files in enumerate(LEVELS[:3]):
        parts.append(text(MARGIN, y + 17, "head", f"level {level}"))
        parts.append(text(MARGIN, y + 34, "small muted", f"score {engine_scores(LEVELS)[level]:g}"))
        for at, (number, _, smallest, largest) in enumerate(files):
            row = y + (HIGH + 5) * at * (level == 0)
            begin, end = smallest[0] - ord("a"), largest[0] - ord("a")
            x, wide = LEFT + STEP * begin, STEP * (end - begin + 1) - 2
            kind = "mark" if number in taken else "box"
            parts.append(
                f'<rect x="{x + 1:.1f}" y="{row:.1f}" width="{wide:.1f}" height="{HIGH}" rx="4"'
                f' class="{kind}"/>'
            )
            parts.append(text(x + 1 + wide / 2, row + 16, "small middle", str(number)))
        y += (HIGH + 5) * (len(files) if level == 0 else 1) + 24
    parts += [
        bar(MARGIN, y - 8, 480 - 2 * MARGIN, 1, "weak"),
        text(MARGIN, y + 16, "", "Table 12 comes first; 13 overlaps it, and 11 overlaps 13."),
        text(MARGIN, y + 38, "", "Of level 1, 7 and 8 hold keys between a and i."),
        text(MARGIN, y + 60, "small muted", "The five are merged into new tables of level 1."),
    ]
    return card(
        "What a compaction takes",
        "Four tables of level 0, four of level 1, four of level 2, as ranges of keys from a to z."
        " The compaction takes 11, 12 and 13 of level 0, and 7 and 8 of level 1.",
        y + 78,
        parts,
        style=BOXES,
    )
