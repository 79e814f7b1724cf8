"""Draws ``scale.svg``: how a shard set is built, published and read.

``make pictures`` runs it.  It measures nothing: boxes stand for what ``lsmkv.bulk`` and
``lsmkv.shards`` do, from the parts on the left to the readers on the right.
"""

from __future__ import annotations

from drawing import BOXES, HEAD, HERE, arrow, bar, box, card, text

TITLE = "A shard set: built in parallel, published at once, read anywhere"
TOLD = (
    "Parts of the input are sorted by a task each, whose samples give the ranges of the shards;"
    " each shard is merged by a task of its own; the object store then holds the shards and a"
    " version, which readers open where it lies, with indexes and filters in memory."
)
WIDTH = 860
HEIGHT = 356
_TOP = 74


def columns() -> list[str]:
    """The steps, from left to right."""
    parts: list[str] = []
    for at in range(3):
        y = _TOP + 72 * at
        parts += [
            box(18, y, 104, 52, "part", ("files", "Parquet", "frames")[at]),
            arrow(122, y + 26, 166, y + 26),
            box(170, y, 104, 52, "run", "sorted, samples"),
        ]
        for to in range(3):
            parts.append(arrow(274, y + 26, 334, _TOP + 72 * to + 26))
        parts += [
            box(338, y, 122, 52, f"shard {at}", "tables, META"),
            arrow(460, y + 26, 506, _TOP + 98),
        ]
    parts += [
        box(510, _TOP + 40, 144, 116, "object store", "versions/00000017.json", "shards/..."),
        box(706, _TOP, 136, 80, "reader", "indexes and filters", "in memory"),
        box(706, _TOP + 116, 136, 80, "reader", "blocks on its disk", "and in memory"),
        arrow(654, _TOP + 82, 702, _TOP + 46),
        arrow(654, _TOP + 114, 702, _TOP + 150),
    ]
    return parts


def draw() -> str:
    """The picture, as SVG."""
    heads = [(70, "input"), (222, "1 sort"), (399, "2 merge"), (582, "3 publish"), (774, "read")]
    captions = [
        (222, "a task for each part"),
        (399, "a task for each shard"),
        (582, "one conditional put"),
        (774, "absent key: no request"),
    ]
    y = _TOP + 72 * 3 + 8
    parts = [
        HEAD,
        *(text(x, 60, "head middle", name) for x, name in heads),
        *columns(),
        *(text(x, y, "small muted middle", words) for x, words in captions),
        bar(18, y + 18, WIDTH - 36, 1, "weak"),
        text(
            18,
            y + 40,
            "small muted",
            "A killed task is run again and meets no file of its own; a killed build leaves the old"
            " version in force.",
        ),
    ]
    return card(TITLE, TOLD, HEIGHT, parts, WIDTH, BOXES)


if __name__ == "__main__":
    (HERE / "scale.svg").write_text(draw(), encoding="utf-8")
