"""Pages of the reference that list members in an order of their own leave none out."""

from __future__ import annotations

import re
from pathlib import Path

import lsmkv

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def test_the_page_of_db_lists_every_member_once() -> None:
    page = (REFERENCE / "db.md").read_text(encoding="utf-8")
    listed = re.findall(r"(?m)^ +- (\w+)$", page)
    with lsmkv.DB(":memory:") as db:
        assert sorted(listed) == [name for name in dir(db) if not name.startswith("_")]
    assert listed[0] == "get"
