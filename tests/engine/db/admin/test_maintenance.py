"""lsmkv.engine.db.admin.maintenance: arguments and results of the methods for operators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lsmkv
from lsmkv import DB


def test_a_property_is_text_if_its_name_is_and_bytes_if_not(tmp_path: Path) -> None:
    with DB(tmp_path / "db", create_if_missing=True) as db:
        assert db.get_property("leveldb.num-files-at-level0") == "0"
        assert db.get_property(b"leveldb.num-files-at-level0") == b"0"
        assert db.get_property("none") is db.get_property(b"none") is None


def test_sizes_are_those_of_the_ranges_in_their_order(tmp_path: Path) -> None:
    with DB(tmp_path / "db", create_if_missing=True, compression=None) as db:
        for number in range(1000):
            db.put(b"%03d" % number, bytes(100))
        db.flush()
        all_, half, none = db.approximate_sizes((b"", b"9" * 4), (b"", b"500"), (b"x", b"y"))
        assert 100_000 < all_ < 130_000
        assert half == db.approximate_size(b"", b"500") == pytest.approx(all_ / 2, rel=0.1)
        assert none == 0
        assert db.approximate_sizes() == []


def test_written_keys_are_in_no_table_or_in_those_that_are_named(tmp_path: Path) -> None:
    with DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"in a table", b"")
        db.flush()
        db.delete(b"deleted")
        db.put(b"in memory", b"")
        assert db.written_keys() == [b"deleted", b"in memory"]
        assert db.written_keys(db.tables()) == [b"deleted", b"in a table", b"in memory"]


@pytest.mark.parametrize(
    "call",
    [
        lambda db: db.compact_range("a", b"b"),
        lambda db: db.get_property(7),
        lambda db: db.approximate_size(b"a", None),
        lambda db: db.approximate_sizes(b"ab"),
    ],
)
def test_wrong_types_are_refused(call: Any) -> None:
    with DB(":memory:") as db, pytest.raises(TypeError):
        call(db)


def test_a_store_for_reading_only_refuses_what_writes(tmp_path: Path) -> None:
    DB(tmp_path / "db", create_if_missing=True).close()
    with DB(tmp_path / "db", read_only=True) as db:
        for call in (db.compact_range, db.rewrite_tables, db.acknowledge_recovery):
            with pytest.raises(lsmkv.ReadOnlyError):
                call()
        assert db.verify() == []
        db.check()
