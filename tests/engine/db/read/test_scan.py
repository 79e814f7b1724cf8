"""lsmkv.engine.db.read.scan: which sources a scan reads, and what it leaves in the block cache."""

from __future__ import annotations

import itertools
import pathlib
from typing import Any

import pytest
from stores import TINY

import lsmkv
from lsmkv import DB
from lsmkv.engine.db.read.level_iterator import FIRST_CHUNK, LevelIterator, ReverseLevelIterator
from lsmkv.engine.db.read.merging_iterator import MergingIterator
from lsmkv.engine.db.read.scan import Bounds, Scan
from lsmkv.engine.db.tree.store import View
from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.engine.format.key_order import Position
from lsmkv.engine.format.keys import MAX_SEQUENCE
from lsmkv.engine.format.log import LogWriter
from lsmkv.engine.format.version_edit import FileMetaData, VersionEdit
from lsmkv.engine.util.checksum import masked_crc32c


def test_tables_of_level_0_in_the_wrong_order() -> None:
    """LevelDB's repair puts tables there whose numbers do not rise with their sequences."""
    env = MemoryEnv()
    with DB("db", env=env, create_if_missing=True) as db:
        for value in (b"1", b"2", b"3", b"4"):
            db.put(b"k", value)
            db.put(b"l" + value, value)
            db.flush()
        store = db._store
        assert store is not None
        older = store.open_view().version.levels[0][-1]
    directory = env.open_directory("db")
    directory.rename(f"{older.number:06}.ldb", "000999.ldb")
    edit = VersionEdit()
    edit.next_file_number = 1000
    edit.delete_file(0, older.number)
    edit.add_file(0, FileMetaData(999, older.size, older.smallest, older.largest))
    (manifest,) = [name for name in directory.names() if name.startswith("MANIFEST")]
    file = directory.append_to(manifest)
    LogWriter(file, file.size()).add_record(edit.encode())
    with DB("db", env=env) as db:
        assert next(table.number for table in db.tables() if table.level == 0) == 999
        expected = [(b"k", b"4"), (b"l1", b"1"), (b"l2", b"2"), (b"l3", b"3"), (b"l4", b"4")]
        assert list(db) == expected
        assert list(db.iterator(reverse=True)) == expected[::-1]
        assert next(db.iterator(start=b"k")) == expected[0]


def test_an_immutable_memtable_over_one_level() -> None:
    """As it is between the beginning of a new memtable and the end of the flush."""
    with DB(":memory:") as db:
        db.put(b"a", b"old")
        db.put(b"b", b"1")
        db.flush()
        db.put(b"a", b"new")
        store = db._store
        assert store is not None
        view = store.open_view()
        store.view = View(store.new_memtable(0), view.memtable, view.version)
        expected = [(b"a", b"new"), (b"b", b"1")]
        assert list(db) == expected
        assert list(db.iterator(reverse=True)) == expected[::-1]
        store.view = view


LEVELS = [1, 3]


def wide(levels: int, cache: lsmkv.LRUCache[Any, Any]) -> DB:
    """3,000 entries of 110 bytes on a level or several, in blocks of 1 KiB about."""
    db = DB(":memory:", block_cache=cache, block_size=1024, compression=None)
    for level in range(levels):
        for number in range(level, 3000, levels):
            db.put(b"%06d" % number, b"%0100d" % number)
        db.flush()
        if level == 0:
            db.compact_range()
    return db


def went_over(db: DB, reverse: bool) -> lsmkv.Stats:
    before = db.stats()
    expected = [(b"%06d" % number, b"%0100d" % number) for number in range(3000)]
    assert list(db.iterator(reverse=reverse)) == (expected[::-1] if reverse else expected)
    return db.stats() - before


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("levels", LEVELS)
def test_a_scan_fills_a_quarter_of_the_cache(levels: int, reverse: bool) -> None:
    """And leaves in it what was there before."""
    cache = lsmkv.LRUCache[Any, Any](200_000)
    with wide(levels, cache) as db:
        for number in range(0, 3000, 100):
            db.get(b"%06d" % number)
        held = cache.usage
        assert 30_000 < held < 50_000
        did = went_over(db, reverse)
        assert did.blocks_read > 200
        assert 40_000 < cache.usage - held < 50_000 + levels * 1200  # and each seek's block
        before = db.stats()
        for number in range(0, 3000, 100):
            db.get(b"%06d" % number)
        assert (db.stats() - before).blocks_read == 0


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("levels", LEVELS)
def test_a_repeated_scan_adds_to_its_blocks_in_the_cache(levels: int, reverse: bool) -> None:
    cache = lsmkv.LRUCache[Any, Any](1_000_000)
    with wide(levels, cache) as db:
        read = [went_over(db, reverse).blocks_read for _ in range(3)]
        assert read[0] > read[1] > 0
        assert read[2] == 0


@pytest.mark.parametrize("levels", LEVELS)
def test_a_scan_may_leave_the_cache_alone(levels: int) -> None:
    cache = lsmkv.LRUCache[Any, Any](200_000)
    with wide(levels, cache) as db:
        assert len(list(db.iterator(fill_cache=False))) == 3000
        assert cache.usage == 0
    with DB(":memory:", lru_cache_size=0) as db:
        db.put(b"k", b"v")
        db.flush()
        assert list(db) == [(b"k", b"v")]


def test_a_cache_capacity_beyond_64_bits_is_accepted() -> None:
    with wide(1, lsmkv.LRUCache[Any, Any](1 << 80)) as db:
        assert went_over(db, False).blocks_read > 200
        assert went_over(db, False).blocks_read == 0


def test_a_scan_of_a_small_level_fills_as_much_of_the_cache() -> None:
    """However much lies below."""
    cache = lsmkv.LRUCache[Any, Any](200_000)
    with wide(1, cache) as db:
        expected = [(b"000100 and %d" % number, bytes(100)) for number in range(100, 400)]
        for key, value in expected:
            db.put(key, value)
        db.flush()
        read = []
        for _ in range(2):
            before = db.stats()
            assert list(db.iterator(start=b"000100 ", stop=b"000101")) == expected
            read.append((db.stats() - before).blocks_read)
        assert read[0] > 30
        assert read[1] == 0


def test_one_block_of_even_a_small_run_is_cached() -> None:
    cache = lsmkv.LRUCache[Any, Any](4000)
    with wide(1, cache) as db:
        db.put(b"000100 and more", b"v")
        db.flush()
        read = []
        for _ in range(2):
            before = db.stats()
            assert next(db.iterator(start=b"000100 ")) == (b"000100 and more", b"v")
            change = db.stats() - before
            read.append((change.blocks_read, change.identity_check_reads))
        assert read == [(1, 2), (0, 0)]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("deleted", [False, True])
def test_a_table_whose_keys_are_out_of_order_comes_to_an_end(
    tmp_path: pathlib.Path, reverse: bool, deleted: bool
) -> None:
    """Its checksums are right: someone has sealed the block again."""
    with DB(tmp_path / "s", create_if_missing=True, block_size=150, compression=None) as db:
        for key in (b"a", b"k", b"l", b"m", b"y", b"z"):
            db.put(key, key * 80)
        db.flush()
    (table,) = (tmp_path / "s").glob("*.ldb")
    data = bytearray(table.read_bytes())
    start = data.index(b"l\x01") - 3
    data[start + 3] = ord("j")
    data[data.index(b"m\x01")] = ord("k")
    end = start + 2 * (3 + 9 + 80) + 8  # two entries, one restart point, and their number
    data[end + 1 : end + 5] = masked_crc32c(bytes(data[start : end + 1])).to_bytes(4, "little")
    table.write_bytes(data)
    with DB(tmp_path / "s") as db:
        db.put(b"k", b"second")
        db.flush()
        if deleted:
            db.delete(b"k")
        keys = [key for key, _ in itertools.islice(db.iterator(reverse=reverse), 20)]
        assert len(keys) < 10
        assert {b"a", b"j", b"y", b"z"} <= set(keys)


def test_a_single_run_is_read_without_a_merging_iterator() -> None:
    options = {**TINY, "write_buffer_size": 1 << 20, "max_file_size": 1 << 20}
    with DB(":memory:", seek_compaction=False, **options) as db:
        for number in range(200):
            db.put(b"%04d" % number, b"v")
        db.flush()
        store = db._store
        assert store is not None

        def scan(lower: int, upper: int, sequence: int = MAX_SEQUENCE) -> Scan:
            bounds = Bounds(*(Position(b"%04d" % edge, after=False) for edge in (lower, upper)))
            return Scan(store, store.read_view(sequence), bounds, True)

        db.put(b"0000", b"v")
        below = Position(b"0000", after=False)
        beyond = Position(b"0200", after=False)
        assert isinstance(scan(0, 50).forward(below).part, MergingIterator)
        assert isinstance(scan(0, 50).backward(beyond).part, MergingIterator)
        db.compact_range()
        assert isinstance(scan(0, 50).forward(below).part, LevelIterator)
        assert isinstance(
            scan(0, 50).backward(Position(b"0050", after=False)).part, ReverseLevelIterator
        )
        for key in (b"0150", b"0300"):
            db.put(key, b"v")
        db.flush()  # into another level, beyond the ranges that follow
        levels = [files for files in store.open_view().version.levels if files]
        assert len(levels) == 2
        assert isinstance(scan(0, 50).forward(below).part, LevelIterator)
        assert isinstance(
            scan(0, 50).backward(Position(b"0050", after=False)).part, ReverseLevelIterator
        )
        assert isinstance(scan(0, 500).forward(below).part, MergingIterator)
        assert store.read_view().table_sequence == MAX_SEQUENCE  # nothing newer is in the tables
        assert store.read_view(200).table_sequence == 200


def test_the_first_chunk_of_a_run_is_its_share() -> None:
    with DB(":memory:") as db:
        store = db._store
        assert store is not None

        def first_chunk(size: int) -> int:
            scan = Scan(store, store.read_view(), Bounds(None, None), True)
            return int(scan._first_chunk(size))

        assert [first_chunk(size) for size in (0, 1, 1 << 40)] == [FIRST_CHUNK] * 3
        for number in range(1000):
            db.put(b"%04d" % number, b"v" * 100)
        db.flush()
        total = store.open_view().version.size
        sizes = (0, 1, total // 2, total - 1, total, 1 << 40)
        assert [first_chunk(size) for size in sizes] == [1, 1, FIRST_CHUNK // 2, *[FIRST_CHUNK] * 3]
        db.put(b"0000", b"v")  # beside a memtable, they are twice as large
        assert [first_chunk(size) for size in sizes] == [1, 1, FIRST_CHUNK, *[2 * FIRST_CHUNK] * 3]
