"""Which entries a compaction drops: hidden versions and deletions, but not too early."""

from __future__ import annotations

import pytest
from stores import files_at, fill

from lsmkv import DB


def table_entries(db: DB) -> int:
    """Entries in all tables, hidden versions and deletions included."""
    view = db._store.view
    return sum(
        len(chunk)
        for level, listed in enumerate(view.version.levels)
        for file in listed
        for chunk in db._store.tables.entries(file, db._store.counters.levels[level], 1000, 1000)
    )


def test_versions_that_no_snapshot_sees_are_dropped(db: DB) -> None:
    with db.snapshot():
        for n in range(5):
            db.put(b"k", b"%d" % n)
            db.snapshot().close()
    db.put(b"gone", b"1")
    db.flush()
    db.put(b"k", b"last")
    db.delete(b"gone")
    db.flush()
    db.compact_range()
    assert table_entries(db) == 1
    assert dict(db) == {b"k": b"last"}
    db.delete(b"k")
    db.compact_range()
    assert table_entries(db) == 0
    assert files_at(db) == [0] * 7


def test_a_deletion_stays_while_an_older_value_lies_deeper(db: DB) -> None:
    """Level 2 has the value; a compaction from level 0 to 1 must keep its deletion."""
    db.put(b"m", b"old")
    db.flush()  # nothing overlaps, so it lands on level 2
    assert files_at(db)[2] == 1
    for _ in range(2):
        db.put(b"a", b"1")
        db.delete(b"m")
        db.put(b"z", b"1")
        db.flush()
    before = files_at(db)
    assert before[0] + before[1] >= 2
    db._background.compact_level(0, None, None)
    assert files_at(db)[0] == 0
    assert files_at(db)[2] == 1
    assert db.get(b"m") is None
    assert [key for key, _ in db] == [b"a", b"z"]


@pytest.mark.parametrize(
    ("older", "newer", "compacted"),
    [(b"am", b"kz", (b"x", b"z")), (b"kz", b"am", (b"a", b"b"))],
)
def test_a_newer_version_does_not_go_down_before_an_older_one(
    db: DB, older: bytes, newer: bytes, compacted: tuple[bytes, bytes]
) -> None:
    """Of two tables of level 0 the newer one alone is in the range, but they share a key."""
    for _ in range(2):  # on levels 2 and 1, so that the next one stays on level 0
        db.put(older[:1] if older < newer else older[1:], b"")
        db.flush()
    for letters, value in ((older, b"old"), (newer, b"new")):
        fill(db, {b"l": value} | {bytes([c]): value for c in letters})
        db.flush()
    assert files_at(db)[:3] == [2, 1, 1]
    db.compact_range(*compacted)
    assert db.get(b"l") == b"new"
    assert dict(db)[b"l"] == b"new"
