"""docs/reference/shared.md: whose options are in force, as the source declares it."""

from __future__ import annotations

import re
from pathlib import Path

from lsmkv.engine.options.whose import WHOSE

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "shared.md"
ROWS = {
    "the owner's, for all": "owner",
    "each process's own": "process",
    "the same for all": "files",
}


def test_the_table_of_options() -> None:
    shown = {}
    for title, whose in ROWS.items():
        (row,) = re.findall(rf"^\| {title} \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.M)
        shown |= dict.fromkeys(re.findall(r"`(\w+)`", row), whose)
    assert shown == WHOSE
