"""Draws ``reading.svg``: the path of a Get through five tables on three levels."""

from __future__ import annotations

import os

from drawing import BOXES, MARGIN, bar, box, card, line, text

from lsmkv.course.labs.asked_tables import Step, walk
from lsmkv.course.labs.reading import SAMPLE, sample
from lsmkv.course.labs.reading_store import opened
from lsmkv.course.labs.temporary_stores import scratch

LEFT, RIGHT = 78, 462
KEY = b"cow"


def draw() -> str:
    """Tables over the line of keys; those that cover the key, and what each of them says."""
    keys = sorted({key for content in SAMPLE for key in content} | {KEY})
    wide = (RIGHT - LEFT) / len(keys)
    steps: list[Step] = []
    parts = [text(MARGIN, 58, "small muted", f"get({KEY.decode()})")]
    for at, key in enumerate(keys):
        parts.append(text(LEFT + wide * (at + 0.5), 80, "small middle", key.decode()))
    y = 92
    with scratch() as directory:
        store = os.path.join(directory, "store")
        sample(store)
        with opened(store, steps) as levels:
            walk(levels, KEY)
            order = list(dict.fromkeys(step.table for step in steps))
            for number, level in enumerate(levels):
                if not level:
                    continue
                rows = [[table] for table in reversed(level)] if number == 0 else [level]
                parts.append(text(MARGIN, y + 30, "small muted", f"level {number}"))
                for row in rows:
                    for table in row:
                        begin, end = keys.index(table.smallest), keys.index(table.largest) + 1
                        said = ["not asked"]
                        kind = "gone"
                        if table.number in order:
                            mine = [step for step in steps if step.table == table.number]
                            place = order.index(table.number) + 1
                            said = [f"{place}. the filter says no"]
                            kind = "box"
                            if mine[0].said:
                                said = [f"{place}. maybe: a block is read"]
                                kind = "mark"
                        parts.append(
                            box(
                                round(LEFT + wide * begin + 2, 1),
                                y,
                                round(wide * (end - begin) - 4, 1),
                                48,
                                f"table {table.number}",
                                *said,
                                kind=kind,
                            )
                        )
                    y += 56
                y += 8
    x = LEFT + wide * (keys.index(KEY) + 0.5)
    parts.insert(1, line(x, 84, y - 8, "axis"))
    parts += [
        bar(MARGIN, y, 480 - 2 * MARGIN, 1, "weak"),
        text(MARGIN, y + 24, "", "One block is read. Whatever older tables hold,"),
        text(MARGIN, y + 44, "small muted", "the first table that holds the key has the answer."),
    ]
    return card(
        "The path of a Get",
        "Five tables on three levels over the line of keys. A Get of cow asks those whose ranges"
        " cover it, newest first. Two filters say no. The third says maybe: one block is read.",
        y + 62,
        parts,
        style=BOXES,
    )
