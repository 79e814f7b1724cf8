"""``tables`` and ``written_keys``: the files and their keys."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from stores import files_at, fill

import lsmkv
from lsmkv import DB

TINY: dict[str, Any] = {"write_buffer_size": 1024, "max_file_size": 1024, "block_size": 256}


def test_tables_lists_the_files_on_disk(tmp_path: Path) -> None:
    with DB(tmp_path / "db", create_if_missing=True, **TINY) as db:
        assert db.tables() == []
        for turn in range(3):
            for number in range(300):
                db.put(b"%03d" % number, b"%d" % turn * 20)
        db.compact_range()
        for key in (b"005", b"250", b"100"):
            db.put(key, b"new")
            db.put(b"299", b"new")
            db.flush()
        tables = db.tables()
        assert {table.name: table.size for table in tables} == {
            path.name: path.stat().st_size for path in (tmp_path / "db").glob("*.ldb")
        }
        levels = [table.level for table in tables]
        assert levels == sorted(levels)
        assert {level: levels.count(level) for level in set(levels)} == {
            level.level: level.files for level in db.stats().levels if level.files
        }
        deepest = [table for table in tables if table.level == max(levels)]
        assert len(deepest) > 3
        assert deepest[0].smallest == b"000"
        assert deepest[-1].largest == b"299"
        keys = [key for table in deepest for key in (table.smallest, table.largest)]
        assert keys == sorted(keys)
        level_0 = [table for table in tables if table.level == 0]
        assert len(level_0) > 1
        assert [table.number for table in level_0] == sorted(
            (table.number for table in level_0), reverse=True
        )
        assert all(table.name == f"{table.number:06d}.ldb" for table in tables)
    with pytest.raises(lsmkv.ClosedError):
        db.tables()
    with pytest.raises(lsmkv.ClosedError):
        db.written_keys()


def test_a_table_with_an_old_name(tmp_path: Path) -> None:
    with DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"k", b"v")
        db.flush()
    (table,) = (tmp_path / "db").glob("*.ldb")
    os.rename(table, table.with_suffix(".sst"))
    with DB(tmp_path / "db", read_only=True) as db:
        assert [info.name for info in db.tables()] == [table.with_suffix(".sst").name]


def test_written_keys() -> None:
    with DB(":memory:") as db:
        assert db.written_keys() == []
        db.put(b"a", b"1")
        db.put(b"c", b"1")
        db.flush()
        first = db.tables()
        db.put(b"c", b"2")
        db.delete(b"b")
        db.flush()
        second = [table for table in db.tables() if table not in first]
        snapshot = db.snapshot()
        db.put(b"d", b"1")
        db.delete(b"a")
        db.put(b"d", b"2")
        assert db.written_keys() == [b"a", b"d"]
        assert db.written_keys(first) == [b"a", b"c", b"d"]
        assert db.written_keys(iter(second)) == [b"a", b"b", b"c", b"d"]
        assert db.written_keys(first + second) == [b"a", b"b", b"c", b"d"]
        snapshot.close()
        db.compact_range()
        with pytest.raises(ValueError, match=f"not a table of this store.*{first[0].number}"):
            db.written_keys(first)
        assert db.written_keys() == []
        assert db.written_keys(db.tables()) == [b"c", b"d"]


def test_written_keys_of_a_memtable_that_is_being_flushed() -> None:
    """The flush waits in its filter policy while the keys of both memtables are read."""
    go = threading.Event()

    class Slow:
        name = "test.Slow"

        def create_filter(self, keys: Sequence[bytes]) -> bytes:
            go.wait()
            return b""

        def key_may_match(self, key: bytes, filter: bytes) -> bool:
            return True

    with DB(":memory:", write_buffer_size=1024, filter_policy=Slow()) as db:
        try:
            db.put(b"b", bytes(2000))
            db.put(b"a", b"")  # into a new memtable: the other one is full
            assert db.tables() == []
            assert db.written_keys() == [b"a", b"b"]
        finally:
            go.set()


def test_damage_raises_with_the_file(tmp_path: Path) -> None:
    with DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"k", b"v")
        db.flush()
    (table,) = (tmp_path / "db").glob("*.ldb")
    content = bytearray(table.read_bytes())
    content[3] ^= 1
    table.write_bytes(content)
    with (
        DB(tmp_path / "db", read_only=True) as db,
        pytest.raises(lsmkv.CorruptionError, match=table.name),
    ):
        db.written_keys(db.tables())


def test_properties(db: DB) -> None:
    fill(db)
    assert int(str(db.get_property("leveldb.approximate-memory-usage"))) > 300 * (7 + 32)
    db.compact_range()
    assert files_at(db) in ([0, 1, 0, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0, 0])
    table = str(db.get_property(b"leveldb.sstables"))
    assert "--- level 0 ---" in table
    assert "['key0000' @ 1 : 1 .. 'key0299' @ 300 : 1]" in table
    assert "Compactions" in str(db.get_property("leveldb.stats"))
    for unknown in (
        "leveldb.num-files-at-level7",
        "leveldb.num-files-at-level",
        "leveldb.num-files-at-level-1",
        "leveldb.num-files-at-level\N{DEVANAGARI DIGIT ONE}",
        "leveldb.nothing",
        "stats",
        "",
        b"\xff",
    ):
        assert db.get_property(unknown) is None


def test_approximate_sizes(path: str) -> None:
    with DB(path, create_if_missing=True, compression=None) as db:
        for n in range(1000):
            db.put(b"%04d" % n, bytes(1000))
        db.compact_range()
        for n in range(2):
            assert db.approximate_size(b"0000", b"1000") == pytest.approx(1_000_000, rel=0.05), n
            assert db.approximate_size(b"0250", b"0500") == pytest.approx(250_000, rel=0.05)
            half, none, back = db.approximate_sizes(
                (b"", b"0500"), (b"5", b"6"), (b"0500", b"0100")
            )
            assert half == pytest.approx(500_000, rel=0.05)
            assert (none, back) == (0, 0)
        assert db.stats().blocks_read == 0
        assert db.approximate_sizes() == []
