"""Samples of what iterators read, and the compactions that follow."""

from __future__ import annotations

from typing import Any

import pytest
from stores import settle

from lsmkv import DB
from lsmkv.engine.db.tree.read_samples import PERIOD

VALUE = bytes(PERIOD // 4)
KEYS = [b"%d" % number for number in range(8)]
BEFORE = [0, 1, 1]
"""Tables by level, which cover the same keys."""
SCANS = 60
"""Each reads two samples; a file of this size is allowed 128 seeks."""


def overlapping(path: Any, **options: Any) -> DB:
    """A store with two tables on two levels that cover the same keys."""
    db = DB(path, create_if_missing=True, write_buffer_size=8 << 20, compression=None, **options)
    for _ in range(2):
        for key in KEYS:
            db.put(key, VALUE)
        db.flush()
    assert levels(db) == BEFORE
    return db


def levels(db: DB) -> list[int]:
    """The number of tables of each level, as far as they are not empty."""
    numbers = [level.files for level in db.stats().levels]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return numbers


def scan(db: DB, times: int, **arguments: Any) -> None:
    for _ in range(times):
        assert len(list(db.iterator(**arguments))) == len(KEYS)
    if not db.options.read_only:
        settle(db)


def test_scans_have_overlapping_tables_merged() -> None:
    with overlapping(":memory:") as db:
        scan(db, SCANS)
        assert levels(db) == BEFORE
        scan(db, SCANS // 5)
        assert levels(db) == [0, 0, 1]
        assert list(db.iterator(include_value=False)) == KEYS


@pytest.mark.parametrize("how", ["reverse", "raw", "snapshot"])
def test_every_iterator_is_sampled(how: str) -> None:
    with overlapping(":memory:") as db:
        if how == "reverse":
            scan(db, 2 * SCANS, reverse=True)
        elif how == "snapshot":
            with db.snapshot() as snapshot:
                for _ in range(2 * SCANS):
                    assert len(list(snapshot.iterator())) == len(KEYS)
        else:
            for _ in range(2 * SCANS):
                with db.raw_iterator() as raw:
                    raw.seek_to_first()
                    while raw.valid():
                        raw.next()
        settle(db)
        assert levels(db) == [0, 0, 1]


def test_where_one_table_covers_the_keys_nothing_is_charged() -> None:
    with overlapping(":memory:") as db:
        db.compact_range()
        assert levels(db) == [0, 0, 1]
        scan(db, 2 * SCANS)
        assert db.stats().compactions == 1  # that of compact_range


def test_seek_compaction_can_be_turned_off() -> None:
    with overlapping(":memory:", seek_compaction=False) as db:
        scan(db, 2 * SCANS)
        assert levels(db) == BEFORE


def test_a_store_open_for_reading_is_not_changed(tmp_path: Any) -> None:
    overlapping(tmp_path / "db").close()
    with DB(tmp_path / "db", read_only=True) as db:
        scan(db, 2 * SCANS)
        assert levels(db) == BEFORE
