"""Draws ``explain.svg``: what ``lsmkv explain`` shows on a terminal of a Get of an absent key.

``make pictures`` runs it.  The store is the same each time: tables on three levels, and a key for
which one filter gives a false positive.
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from rich.console import Console

import lsmkv
from lsmkv.tools.explaining import tree

sys.path.insert(0, str(Path(__file__).resolve().parent))
from top import tidied

PICTURE = Path(__file__).resolve().parent / "explain.svg"
COLUMNS = 96
KEYS = 3000


def key(number: int) -> bytes:
    """The name of a sensor's reading."""
    return b"sensor:%04d:celsius" % number


def fill(db: lsmkv.DB) -> None:
    """Three layers of tables, each with every third key of the store."""
    for layer in range(3):
        for number in range(layer, KEYS, 3):
            db.put(key(2 * number), b"%d.%d" % (number % 40, layer))
        db.flush()


def looked_up(db: lsmkv.DB) -> lsmkv.Explanation:
    """The first absent key whose Get wastes one read while filters save it others."""
    for number in range(KEYS // 2, KEYS):
        explained = db.explain(key(2 * number + 1))
        if explained.blocks_searched == 1 and explained.blocks_without_filters == 3:
            return explained
    raise AssertionError("no filter is wrong about any of them")


def drawn() -> str:
    """The picture, as SVG."""
    with (
        tempfile.TemporaryDirectory() as place,
        lsmkv.DB(f"{place}/sensors", create_if_missing=True, bloom_filter_bits=4) as db,
    ):
        fill(db)
        lines = looked_up(db).outline()
    console = Console(
        record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, highlight=False
    )
    console.print(tree(lines, COLUMNS))
    return tidied(console.export_svg(title="lsmkv explain", unique_id="explain"))


def main() -> None:
    """Draw the picture."""
    PICTURE.write_text(drawn(), encoding="utf-8")


if __name__ == "__main__":
    main()
