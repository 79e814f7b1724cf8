"""lsmkv.db.info_log: LOG and LOG.old."""

from __future__ import annotations

from stores import contents

from lsmkv import DB


def test_the_log_of_events_is_rotated(path: str) -> None:
    with DB(path, create_if_missing=True) as db:
        db.put(b"k", b"v")
        db.flush()
    first = contents(path)["LOG"]
    assert b"Level-2 table" in first
    DB(path).close()
    assert contents(path)["LOG.old"] == first
    assert contents(path)["LOG"] != first
