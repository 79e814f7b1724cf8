"""The store as a whole, by its public interface: reads, writes, files, threads, and bad input."""

from __future__ import annotations

import asyncio
import errno
import gc
import hashlib
import os
import pathlib
import random
import subprocess
import sys
import textwrap
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import lsmkv
import lsmkv.aio
import lsmkv.plyvel
from lsmkv import DB, MemoryEnv, WriteBatch
from lsmkv.db.runner import Runner
from lsmkv.db.write_queue import Pending
from lsmkv.env.base import Directory, RandomAccessFile
from lsmkv.env.faulty import FaultyEnv
from lsmkv.format.filenames import FileType, log_name, parse_filename

ENTRIES = {b"key%04d" % n: b"value %d" % n * 4 for n in range(300)}
TINY: dict[str, Any] = {
    "write_buffer_size": 1024,
    "max_file_size": 1024,
    "block_size": 256,
    "block_restart_interval": 4,
}


@pytest.fixture
def path(tmp_path: pathlib.Path) -> str:
    return str(tmp_path / "db")


@pytest.fixture
def db(path: str) -> Iterator[DB]:
    with DB(path, create_if_missing=True) as db:
        yield db


def fill(db: DB, entries: dict[bytes, bytes] | None = None) -> None:
    for key, value in (ENTRIES if entries is None else entries).items():
        db.put(key, value)


def files(path: str, kind: FileType) -> set[str]:
    """The names of the engine's files of one type."""
    found = set()
    for name in os.listdir(path):
        parsed = parse_filename(name)
        if parsed is not None and parsed[1] is kind:
            found.add(name)
    return found


def contents(path: str) -> dict[str, bytes]:
    """Every file of a directory, byte for byte."""
    return {p.name: p.read_bytes() for p in pathlib.Path(path).iterdir() if p.is_file()}


def data_files(path: str) -> dict[str, bytes]:
    """The files that hold data or lead to it."""
    return {
        name: data for name, data in contents(path).items() if not name.startswith(("LOG", "LOCK"))
    }


def settle(db: DB) -> None:
    """Wait until background work, should there be any, has ended."""
    assert db._background is not None
    db._background.wait_until_idle()


def files_at(db: DB) -> list[int]:
    return [int(str(db.get_property(f"leveldb.num-files-at-level{n}"))) for n in range(7)]


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program in another process, with the same search path."""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=120,
    )


# Reading and writing


def test_put_get_delete(db: DB) -> None:
    assert db.get(b"k") is None
    assert db.get(b"k", b"other") == b"other"
    db.put(b"k", b"v")
    assert db.get(b"k") == b"v"
    db.put(b"k", b"w")
    assert db.get(b"k") == b"w"
    db.delete(b"k")
    assert db.get(b"k") is None
    db.delete(b"never there")
    assert list(db) == []


@pytest.mark.parametrize("flushed", [False, True])
def test_any_bytes_are_a_key_and_a_value(db: DB, flushed: bool) -> None:
    odd = [b"", b"\0", b"\0\0", b"\xff", b"\xff\xff", b"a", b"a\0", b"x" * 70000]
    for key in odd:
        db.put(key, key[::-1])
    db.put(b"empty value", b"")
    if flushed:
        db.flush()
    for key in odd:
        assert db.get(key) == key[::-1]
    assert db.get(b"empty value") == b""
    assert [key for key, _ in db] == sorted([*odd, b"empty value"])


def test_bytes_like_objects_are_copied(db: DB) -> None:
    key, value = bytearray(b"k"), bytearray(b"v")
    db.put(key, memoryview(value))
    key[:] = b"x"
    value[:] = b"y"
    assert db.get(b"k") == b"v"
    assert db.get(memoryview(b"k")) == b"v"
    assert list(db) == [(b"k", b"v")]


def test_a_large_value(db: DB) -> None:
    value = random.Random(1).randbytes(9_000_000)
    db.put(b"large", value)
    db.put(b"small", b"s")
    assert db.get(b"large") == value
    db.flush()
    assert db.get(b"large") == value
    assert [key for key, _ in db] == [b"large", b"small"]


@pytest.mark.parametrize(
    "step", ["nothing", "flush", "compact", "reopen", "flush and reopen", "compact and reopen"]
)
def test_what_was_written_is_there(path: str, step: str) -> None:
    db = DB(path, create_if_missing=True)
    fill(db)
    for key in list(ENTRIES)[::3]:
        db.delete(key)
    if "flush" in step:
        db.flush()
    if "compact" in step:
        db.compact_range()
    if "reopen" in step:
        db.close()
        db = DB(path)
    expected = {k: v for n, (k, v) in enumerate(ENTRIES.items()) if n % 3}
    with db:
        assert dict(db) == expected
        for key in ENTRIES:
            assert db.get(key) == expected.get(key)
        assert db.get(b"key") is None
        assert db.get(b"key0001x") is None
        db.check()


def test_newest_wins_across_all_places(db: DB) -> None:
    """A key's versions in two tables of level 0, a deeper level and the memtable."""
    db.put(b"k", b"1")
    db.compact_range()
    db.put(b"k", b"2")
    db.flush()
    assert db.get(b"k") == b"2"
    db.put(b"k", b"3")
    db.flush()
    assert db.get(b"k") == b"3"
    assert list(db) == [(b"k", b"3")]
    db.put(b"k", b"4")
    assert db.get(b"k") == b"4"
    db.delete(b"k")
    db.flush()
    assert db.get(b"k") is None
    assert list(db) == []
    db.compact_range()
    assert db.get(b"k") is None


# Batches


def test_a_batch_is_applied_in_order(db: DB) -> None:
    batch = WriteBatch()
    batch.put(b"a", b"1")
    batch.put(b"b", b"1")
    batch.delete(b"a")
    batch.put(b"b", b"2")
    db.write(batch, sync=True)
    assert dict(db) == {b"b": b"2"}
    db.write(WriteBatch())
    batch.clear()
    assert len(batch) == 0
    batch.put(b"c", b"3")
    db.write(batch)
    db.write(batch)  # it keeps its content
    assert dict(db) == {b"b": b"2", b"c": b"3"}


def test_a_batch_that_belongs_to_the_store(db: DB) -> None:
    batch = db.write_batch()
    batch.put(b"a", b"1")
    assert db.get(b"a") is None
    batch.write()
    assert db.get(b"a") == b"1"
    with db.write_batch(sync=True) as batch:
        batch.put(b"b", b"2")
        batch.delete(b"a")
        assert db.get(b"b") is None
    assert dict(db) == {b"b": b"2"}


@pytest.mark.parametrize(("transaction", "written"), [(True, False), (False, True)])
def test_a_batch_whose_block_raises(db: DB, transaction: bool, written: bool) -> None:
    def block() -> None:
        with db.write_batch(transaction=transaction) as batch:
            batch.put(b"a", b"1")
            raise KeyError("on the way")

    with pytest.raises(KeyError, match="on the way"):
        block()
    assert (db.get(b"a") == b"1") == written


def test_batches_append(db: DB) -> None:
    first, second = WriteBatch(), db.write_batch()
    first.put(b"a", b"1")
    second.put(b"a", b"0")
    second.append(first)
    second.write()
    assert db.get(b"a") == b"1"
    with pytest.raises(ValueError, match="belongs to no store"):
        first.write()


def test_counters_of_writes(db: DB) -> None:
    with db.write_batch() as batch:
        batch.put(b"abc", b"12345")
        batch.delete(b"de")
    db.put(b"f", b"", sync=True)
    stats = db.stats()
    assert (stats.writes, stats.operations, stats.user_bytes) == (2, 3, 11)
    assert (stats.log_writes, stats.log_syncs) == (2, 1)
    # A record's header is 7 bytes, a batch's 12; an operation has a kind and its lengths.
    assert stats.log_bytes == 2 * (7 + 12) + (1 + 1 + 3 + 1 + 5) + (1 + 1 + 2) + (1 + 1 + 1 + 1)
    assert sum(len(d) for n, d in contents(db.path).items() if n.endswith(".log")) == (
        stats.log_bytes
    )


# Snapshots


def test_a_snapshot_stays_as_it_was(db: DB) -> None:
    db.put(b"a", b"1")
    db.put(b"b", b"1")
    with db.snapshot() as snapshot:
        db.put(b"a", b"2")
        db.delete(b"b")
        db.put(b"c", b"2")
        for step in (lambda: None, db.flush, db.compact_range, db.compact_range):
            step()
            assert [snapshot.get(k) for k in (b"a", b"b", b"c")] == [b"1", b"1", None]
            assert snapshot.get(b"c", b"default") == b"default"
            assert list(snapshot) == [(b"a", b"1"), (b"b", b"1")]
            assert list(snapshot.iterator(reverse=True, include_value=False)) == [b"b", b"a"]
            assert dict(db) == {b"a": b"2", b"c": b"2"}
    assert snapshot.closed
    with pytest.raises(lsmkv.ClosedError, match="snapshot"):
        snapshot.get(b"a")
    with pytest.raises(lsmkv.ClosedError, match="snapshot"):
        snapshot.iterator()
    snapshot.close()


def test_several_snapshots_of_one_key(db: DB) -> None:
    snapshots = []
    for n in range(6):
        if n == 3:
            db.delete(b"k")
        else:
            db.put(b"k", b"%d" % n)
        snapshots.append(db.snapshot())
        if n in (1, 4):
            db.flush()
    expected = [b"0", b"1", b"2", None, b"4", b"5"]
    assert [snapshot.get(b"k") for snapshot in snapshots] == expected
    db.compact_range()
    assert [snapshot.get(b"k") for snapshot in snapshots] == expected
    snapshots[2].close()
    del snapshots[4]  # forgetting one closes it
    db.compact_range()
    assert snapshots[0].get(b"k") == b"0"
    assert snapshots[3].get(b"k") is None
    assert snapshots[4].get(b"k") == b"5"
    db.check()


def table_entries(db: DB) -> int:
    """Entries in all tables, hidden versions and deletions included."""
    view = db._store.view
    return sum(
        len(chunk)
        for level, listed in enumerate(view.version.levels)
        for file in listed
        for chunk in db._store.tables.scan(file, None, db._store.counters.reads[level], False)
    )


def test_versions_that_nobody_sees_go(db: DB) -> None:
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


# Iterators over files that compaction replaces


def test_an_iterator_outlives_compaction(path: str) -> None:
    with DB(path, create_if_missing=True, **TINY) as db:
        fill(db)
        db.flush()
        iterator = iter(db)
        backward = db.iterator(reverse=True)
        got = [next(iterator) for _ in range(5)]
        held = files(path, FileType.TABLE)
        for key in ENTRIES:
            db.put(key, b"new")
        db.compact_range()
        assert held <= files(path, FileType.TABLE)  # in use: kept
        assert got + list(iterator) == list(ENTRIES.items())
        assert list(backward) == list(ENTRIES.items())[::-1]
        assert dict(db) == dict.fromkeys(ENTRIES, b"new")
        iterator.close()
        del backward
        db.put(b"one more", b"write")
        db.flush()  # a commit removes what is not in use any more
        settle(db)
        now = files(path, FileType.TABLE)
        assert not held & now
        assert len(now) == sum(files_at(db))


def test_obsolete_files_go(path: str) -> None:
    with DB(path, create_if_missing=True, **TINY) as db:
        for _ in range(5):
            fill(db)
        db.compact_range()
        settle(db)
        assert len(files(path, FileType.TABLE)) == sum(files_at(db))
        assert len(files(path, FileType.LOG)) == 1
        assert len(files(path, FileType.MANIFEST)) == 1
        assert not files(path, FileType.TEMPORARY)
    for _ in range(3):
        DB(path).close()
    assert len(files(path, FileType.LOG)) == 1
    assert len(files(path, FileType.MANIFEST)) == 1


def test_the_log_of_events_is_rotated(path: str) -> None:
    with DB(path, create_if_missing=True) as db:
        db.put(b"k", b"v")
        db.flush()
    first = contents(path)["LOG"]
    assert b"Level-2 table" in first
    DB(path).close()
    assert contents(path)["LOG.old"] == first
    assert contents(path)["LOG"] != first


def test_a_manifest_does_not_grow_for_ever(path: str) -> None:
    with DB(path, create_if_missing=True) as db:
        big = b"k" * 50_000  # twice in every edit: as smallest and as largest key
        for n in range(100):
            db.put(big, b"%d" % n)
            db.flush()
        db.compact_range()
        settle(db)
        (name,) = files(path, FileType.MANIFEST)
        assert len(contents(path)[name]) < 4_000_000
    with DB(path) as db:
        assert dict(db) == {big: b"99"}


# Options


@pytest.mark.parametrize("compression", ["snappy", "zstd", "none", None])
@pytest.mark.parametrize("layout", ["block", "table", "both"])
def test_compressions_and_filter_layouts(path: str, compression: Any, layout: Any) -> None:
    with DB(
        path, create_if_missing=True, compression=compression, filter_layout=layout, **TINY
    ) as db:
        fill(db)
        db.compact_range()
    for reading in ("block", "table", "both"):  # readers use what they find
        with DB(path, filter_layout=reading, lru_cache_size=0) as db:
            assert dict(db) == ENTRIES
            for key, value in list(ENTRIES.items())[::10]:
                assert db.get(key) == value
                assert db.get(key + b"x") is None
            asked = db.stats().filters_asked
            assert asked >= 30
            db.check()


def test_options_may_change_between_openings(path: str) -> None:
    settings: list[dict[str, Any]] = [
        {"compression": None, "block_size": 64, "bloom_filter_bits": 0},
        {"compression": "snappy", "block_size": 1 << 20, "block_restart_interval": 1},
        {"compression": "zstd", "zstd_compression_level": 9, "max_open_files": 1},
        {"reuse_logs": True, "lru_cache_size": 0, "filter_layout": "both"},
        {"paranoid_checks": True, "max_file_size": 1, "write_buffer_size": 1},
    ]
    expected = {}
    for n, options in enumerate(settings):
        with DB(path, create_if_missing=True, **options) as db:
            assert dict(db) == expected
            for key in list(ENTRIES)[n::2]:
                db.put(key, expected.setdefault(key, b"%d" % n))
                expected[key] = b"%d" % n
                db.put(key, b"%d" % n)
            db.flush()
            db.check()
    with DB(path) as db:
        db.compact_range()
        assert dict(db) == expected


def test_reuse_logs(path: str) -> None:
    with DB(path, create_if_missing=True) as db:
        db.put(b"a", b"1")
    logs = files(path, FileType.LOG)
    with DB(path, reuse_logs=True) as db:
        assert files(path, FileType.LOG) == logs
        assert db.get(b"a") == b"1"
        db.put(b"b", b"2")
    with DB(path, reuse_logs=True) as db:
        assert files(path, FileType.LOG) == logs
        assert dict(db) == {b"a": b"1", b"b": b"2"}
        assert files_at(db) == [0] * 7
    with DB(path) as db:
        assert files(path, FileType.LOG).isdisjoint(logs)
        assert dict(db) == {b"a": b"1", b"b": b"2"}


def reverse(a: bytes, b: bytes) -> int:
    return (a < b) - (a > b)


def fold(a: bytes, b: bytes) -> int:
    """An order that calls different bytes equal."""
    a, b = a.lower(), b.lower()
    return (a > b) - (a < b)


@pytest.mark.parametrize("step", ["none", "flush", "compact", "reopen"])
def test_a_comparator_of_the_users(path: str, step: str) -> None:
    options: dict[str, Any] = {"comparator": reverse, "comparator_name": "test.reverse"}
    db = DB(path, create_if_missing=True, **TINY, **options)
    fill(db)
    db.delete(b"key0007")
    if step == "flush":
        db.flush()
    elif step == "compact":
        db.compact_range()
    elif step == "reopen":
        db.close()
        db = DB(path, **TINY, **options)
    expected = sorted(ENTRIES.items(), reverse=True)
    expected.remove((b"key0007", ENTRIES[b"key0007"]))
    with db:
        assert list(db) == expected
        assert list(db.iterator(reverse=True)) == expected[::-1]
        got = list(db.iterator(start=b"key0200", stop=b"key0100", include_value=False))
        assert got == [b"key%04d" % n for n in range(200, 100, -1)]
        assert db.get(b"key0007") is None
        assert db.get(b"key0008") == ENTRIES[b"key0008"]
        db.check()


@pytest.mark.parametrize("flushed", [False, True])
def test_a_comparator_that_calls_different_bytes_equal(path: str, flushed: bool) -> None:
    with DB(
        path, create_if_missing=True, comparator=fold, comparator_name="test.fold", **TINY
    ) as db:
        db.put(b"Key", b"1")
        db.put(b"other", b"2")
        if flushed:
            db.flush()
        assert db.get(b"kEY") == b"1"
        with db.snapshot() as snapshot:
            db.put(b"KEY", b"3")
            if flushed:
                db.flush()
            assert db.get(b"key") == b"3"
            assert [value for _, value in db] == [b"3", b"2"]
            assert snapshot.get(b"key") == b"1"
            assert [value for _, value in snapshot] == [b"1", b"2"]
        db.delete(b"key")
        if flushed:
            db.compact_range()
        assert db.get(b"Key") is None
        assert dict(db) == {b"other": b"2"}
        assert db.stats().filters_asked == 0


def test_a_comparator_object_with_its_own_name(path: str) -> None:
    with DB(path, create_if_missing=True, comparator=lsmkv.ReverseBytewiseComparator()) as db:
        fill(db)
        db.compact_range()
        assert [key for key, _ in db] == sorted(ENTRIES, reverse=True)
        assert db.get(b"key0001x") is None
        assert db.stats().filters_asked > 0
    with pytest.raises(lsmkv.ComparatorMismatchError) as caught:
        DB(path)
    assert "leveldb.BytewiseComparator" in str(caught.value)
    assert "leveldb.ReverseBytewiseComparator" in str(caught.value)


class SuffixPolicy:
    """A filter of the user's: the set of last bytes."""

    name = "test.suffix"

    def create_filter(self, keys: Any, /) -> bytes:
        return bytes(sorted({key[-1] for key in keys}))

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        return key[-1] in filter_data


def test_a_filter_policy_of_the_users(path: str) -> None:
    with DB(path, create_if_missing=True, filter_policy=SuffixPolicy(), lru_cache_size=0) as db:
        fill(db)
        db.flush()
        assert db.get(b"key0001x") is None
        assert db.stats().blocks_read == 0
        assert db.get(b"key00019") is None
        assert db.get(b"key0019") == ENTRIES[b"key0019"]
        stats = db.stats()
        assert (stats.filters_asked, stats.filter_negatives) == (3, 1)
        assert stats.filter_false_positives == 1
    with DB(path) as db:  # another policy finds no filter of its own name
        assert db.get(b"key0019") == ENTRIES[b"key0019"]
        assert db.stats().filters_asked == 0


def test_a_block_cache_may_be_shared(tmp_path: pathlib.Path) -> None:
    """Two stores whose tables bear the same numbers."""
    cache: lsmkv.BlockCache[tuple[int, int], Any] = lsmkv.BlockCache(1 << 20)
    stores = [DB(tmp_path / name, create_if_missing=True, block_cache=cache) for name in ("a", "b")]
    for n, db in enumerate(stores):
        db.put(b"k", b"%d" % n)
        db.flush()
    for _ in range(2):
        assert [db.get(b"k") for db in stores] == [b"0", b"1"]
    assert [db.stats().block_cache_hits for db in stores] == [1, 1]
    for db in stores:
        db.close()


def test_fill_cache(db: DB) -> None:
    fill(db)
    db.flush()
    db.get(b"key0001", fill_cache=False)
    list(db.iterator(fill_cache=False))
    assert db.stats().block_cache_bytes == 0
    db.get(b"key0001")
    assert db.stats().block_cache_bytes > 0
    read = db.stats().blocks_read
    db.get(b"key0001", verify_checksums=True)
    assert db.stats().blocks_read == read


# What the store says of itself


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


def test_path_types(tmp_path: pathlib.Path) -> None:
    for path in (str(tmp_path / "s"), tmp_path / "p", os.fsencode(tmp_path / "b")):
        with DB(path, create_if_missing=True) as db:
            db.put(b"k", b"v")
            assert db.path == os.fsdecode(path)
            assert repr(db) == f"<lsmkv.DB {os.fsdecode(path)!r}>"
        assert repr(db).endswith("(closed)>")
        with DB(path) as db:
            assert db.get(b"k") == b"v"


def test_in_memory() -> None:
    with DB(":memory:", create_if_missing=True) as one:
        with DB(":memory:", create_if_missing=True) as two:
            one.put(b"k", b"1")
            assert two.get(b"k") is None
        one.compact_range()
        assert one.get(b"k") == b"1"
    assert not os.path.exists(":memory:")


# Counters of reads


def key_of(n: int) -> bytes:
    """Keys without a pattern: LevelDB's hash does badly on numbers that differ by one digit."""
    return hashlib.sha256(b"%d" % n).digest()[:16]


@pytest.fixture(scope="module")
def two_stores(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """The same 20,000 keys with and without filters."""
    paths = {}
    for bits in (0, 10):
        paths[bits] = str(tmp_path_factory.mktemp("counters") / f"bits{bits}")
        with DB(paths[bits], create_if_missing=True, bloom_filter_bits=bits) as db:
            numbers = list(range(20_000))
            random.Random(3).shuffle(numbers)
            for n in numbers:
                db.put(key_of(2 * n), b"v" * 100)
            db.compact_range()
    return paths


@pytest.mark.parametrize(("bits", "at_least", "at_most"), [(10, 0.0, 0.02), (0, 0.9, 1.1)])
def test_data_blocks_read_for_a_miss(
    two_stores: dict[int, str], bits: int, at_least: float, at_most: float
) -> None:
    with DB(two_stores[bits], bloom_filter_bits=bits, lru_cache_size=0) as db:
        rng = random.Random(4)
        gets = 4000
        for _ in range(gets):
            assert db.get(key_of(2 * rng.randrange(19_999) + 1)) is None
        stats = db.stats()
        assert (stats.gets, stats.gets_found) == (gets, 0)
        assert at_least <= stats.blocks_read / gets <= at_most
        assert stats.filters_asked == (gets if bits else 0)
        assert stats.filters_asked - stats.filter_negatives == stats.filter_false_positives
        assert stats.blocks_read == (stats.filter_false_positives if bits else gets)
        for level in stats.levels:
            assert level.filter_negatives + level.filter_positives == level.filters_asked
            assert level.filter_false_positives <= level.filter_positives


class CountingEnv(lsmkv.LocalEnv):
    """Counts the reads of tables as the file system sees them."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[int] = []

    def open_directory(self, path: str, create: bool = False) -> Any:
        directory: Any = super().open_directory(path, create)
        inner = directory.open
        directory.open = lambda name: self._counted(inner(name), name)
        return directory

    def _counted(self, file: Any, name: str) -> Any:
        if name.endswith(".ldb"):
            read = file.read

            def counted(offset: int, length: int) -> bytes:
                self.reads.append(length)
                return bytes(read(offset, length))

            file.read = counted
        return file


def test_the_counters_agree_with_the_file_system(two_stores: dict[int, str]) -> None:
    env = CountingEnv()
    with DB(two_stores[10], env=env, lru_cache_size=0) as db:
        rng = random.Random(5)
        found = 0
        for _ in range(500):
            found += db.get(key_of(rng.randrange(40_000))) is not None
        stats = db.stats()
        assert stats.gets_found == found > 200
        assert len(env.reads) == stats.metadata_reads + stats.blocks_read
        assert sum(env.reads) == stats.metadata_bytes_read + stats.bytes_read
        assert found <= stats.blocks_read <= found + 20


def test_a_hit_is_no_false_positive(db: DB) -> None:
    fill(db)
    db.flush()
    for key in ENTRIES:
        db.get(key)
    stats = db.stats()
    assert stats.filters_asked == len(ENTRIES)
    assert (stats.filter_negatives, stats.filter_false_positives) == (0, 0)
    assert stats.gets_found == stats.gets == len(ENTRIES)


def test_a_memtable_answers_without_a_table(db: DB) -> None:
    fill(db)
    db.flush()
    db.put(b"key0001", b"new")
    db.delete(b"key0002")
    assert db.get(b"key0001") == b"new"
    assert db.get(b"key0002") is None
    stats = db.stats()
    assert stats.gets_from_memory == 2
    assert stats.filters_asked == stats.blocks_read == 0


# Seek compaction


def three_levels(path: str, **options: Any) -> DB:
    """Three overlapping tables on three levels, none of which is due for compaction."""
    db = DB(path, create_if_missing=True, lru_cache_size=0, **options)
    for n in range(3):
        for key in ENTRIES:
            db.put(key, b"%d" % n)
        db.flush()
    assert [count > 0 for count in files_at(db)] == [True, True, True, *[False] * 4]
    return db


def test_absent_keys_start_no_compaction(path: str) -> None:
    with three_levels(path) as db:
        before = data_files(path)
        for n in range(3000):
            assert db.get(b"key%04dx" % (n % 299)) is None
        settle(db)
        assert data_files(path) == before
        assert db.stats().seek_compactions == 0


def test_reads_in_vain_start_a_compaction_at_last(path: str) -> None:
    """Without filters a miss reads a block of each table, and the first is read in vain."""
    with three_levels(path, bloom_filter_bits=0) as db:
        before = files_at(db)
        for n in range(150):
            assert db.get(b"key%04dx" % n) is None
        settle(db)
        assert db.stats().seek_compactions + db.stats().trivial_moves > 0
        assert files_at(db) != before
        assert dict(db) == dict.fromkeys(ENTRIES, b"2")
        for n in range(2000):  # it comes to an end
            assert db.get(b"key%04dx" % (n % 299)) is None
        settle(db)
        after = data_files(path)
        for n in range(2000):
            assert db.get(b"key%04dx" % (n % 299)) is None
        settle(db)
        assert data_files(path) == after


def test_reads_in_vain_at_a_snapshot_count_too(path: str) -> None:
    """Also those for the newest version, which is looked for first, and was written later."""
    options: dict[str, Any] = {"bloom_filter_bits": 0, "block_size": 64, "lru_cache_size": 4096}
    with DB(path, create_if_missing=True, **options) as db:
        for n, suffix in enumerate((b"", b"", b"x")):
            for key in ENTRIES:
                db.put(key + suffix, b"%d" % n)
            db.flush()
            if n == 0:
                snapshot = db.snapshot()
        before = files_at(db)
        assert [count > 0 for count in before] == [True, True, True, *[False] * 4]
        leaping = (list(ENTRIES) * 7)[::7]  # from block to block: a block in the cache costs nobody
        assert {snapshot.get(key) for key in leaping} == {b"0"}
        settle(db)
        assert files_at(db) != before


def test_a_read_of_one_block_charges_nobody(path: str) -> None:
    """Hits in the first table: nothing was read in vain."""
    with three_levels(path, bloom_filter_bits=0) as db:
        before = data_files(path)
        for n in range(2000):
            assert db.get(b"key%04d" % (n % 300)) == b"2"
        settle(db)
        assert data_files(path) == before


def test_seek_compaction_can_be_switched_off(path: str) -> None:
    with three_levels(path, bloom_filter_bits=0, seek_compaction=False) as db:
        before = data_files(path)
        for n in range(2000):
            assert db.get(b"key%04dx" % (n % 299)) is None
        settle(db)
        assert data_files(path) == before
        assert db.stats().seek_compactions == 0


# Bad input, by which nothing is lost


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda db: db.put("k", b"v"), r"key must be bytes, not str.*encode"),
        (lambda db: db.put(b"k", "v"), r"value must be bytes, not str.*encode"),
        (lambda db: db.put(b"k", None), r"value must be bytes, not NoneType"),
        (lambda db: db.put(1, b"v"), r"key must be bytes, not int"),
        (lambda db: db.get("k"), r"key must be bytes, not str"),
        (lambda db: db.get(None), r"key must be bytes, not NoneType"),
        (lambda db: db.delete(["k"]), r"key must be bytes, not list"),
        (lambda db: db.write([(b"k", b"v")]), r"WriteBatch.*list"),
        (lambda db: db.write_batch().put(b"k", 1.5), r"value must be bytes, not float"),
        (lambda db: db.write_batch().delete("k"), r"key must be bytes, not str"),
        (lambda db: db.write_batch().append({}), r"WriteBatch.*dict"),
        (lambda db: db.iterator(start="a"), r"start key must be bytes, not str"),
        (lambda db: db.iterator(stop=5), r"stop key must be bytes, not int"),
        (lambda db: db.iterator(prefix="a"), r"prefix must be bytes, not str"),
        (lambda db: db.iterator(prefix=b"a", stop=b"b"), r"prefix, or start and stop"),
        (lambda db: db.iterator(begin=b"a"), r"begin"),
        (lambda db: db.iterator().seek("a"), r"target must be bytes, not str"),
        (lambda db: db.snapshot().get("a"), r"key must be bytes, not str"),
        (lambda db: db.compact_range("a"), r"start key must be bytes, not str"),
        (lambda db: db.compact_range(b"a", 7), r"stop key must be bytes, not int"),
        (lambda db: db.approximate_size("a", b"b"), r"start key must be bytes, not str"),
        (lambda db: db.approximate_sizes((b"a", "b")), r"stop key must be bytes, not str"),
        (lambda db: db.get_property(5), r"str.*bytes.* int"),
    ],
)
def test_wrong_types(db: DB, call: Callable[[Any], object], hint: str) -> None:
    db.put(b"kept", b"1")
    with pytest.raises(TypeError, match=hint):
        call(db)
    assert dict(db) == {b"kept": b"1"}
    assert len(db._store.live) == 0


@pytest.mark.parametrize(
    ("options", "error", "hint"),
    [
        ({"blok_size": 4096}, TypeError, r"lsmkv\.DB.*'blok_size': did you mean 'block_size'\?"),
        ({"verify_checksums": True}, TypeError, r"lsmkv\.DB has no option 'verify_checksums'$"),
        ({"compression": "lz4"}, ValueError, r"unknown compression 'lz4'.*snappy.*zstd"),
        ({"compression": 1}, TypeError, "compression must be a str or None, not int"),
        ({"compression": ["snappy"]}, TypeError, "compression must be a str"),
        ({"filter_layout": "page"}, ValueError, r"filter_layout.*'page'"),
        ({"background": "fiber"}, ValueError, r"background.*'fiber'"),
        ({"background": "process", "env": MemoryEnv()}, ValueError, "background='process'"),
        ({"background": "process", "filter_policy": SuffixPolicy()}, ValueError, "another process"),
        (
            {"background": "process", "comparator": reverse, "comparator_name": "reverse"},
            ValueError,
            "another process",
        ),
        ({"block_size": "4k"}, TypeError, r"block_size must be an int, not str"),
        ({"write_buffer_size": -1}, ValueError, "write_buffer_size cannot be negative"),
        ({"max_open_files": True}, TypeError, "max_open_files must be an int, not bool"),
        ({"env": "disk"}, TypeError, r"env must derive from .*Env, not str"),
        ({"filter_policy": object()}, TypeError, "filter_policy lacks 'name'"),
        ({"filter_policy": SuffixPolicy(), "bloom_filter_bits": 5}, ValueError, "not both"),
        ({"comparator": 5}, TypeError, "comparator must be a function"),
        ({"comparator": reverse}, ValueError, "needs a comparator_name"),
        ({"comparator_name": "x"}, ValueError, "without a comparator"),
    ],
)
def test_wrong_options(
    path: str, options: dict[str, Any], error: type[Exception], hint: str
) -> None:
    with pytest.raises(error, match=hint):
        DB(path, create_if_missing=True, **options)
    assert not os.path.exists(path)
    with DB(path, create_if_missing=True) as db:
        fill(db)
    before = contents(path)
    with pytest.raises(error, match=hint):
        DB(path, **options)
    assert contents(path) == before


@pytest.mark.parametrize(
    ("opens", "taker"),
    [
        (DB, "DB"),
        (lsmkv.open, "DB"),
        (lsmkv.repair_db, "DB"),
        (lsmkv.plan_repair, "DB"),
        (lsmkv.plyvel.DB, r"plyvel\.DB"),
        (lsmkv.TableWriter, "TableWriter"),
        (lambda path, **options: asyncio.run(lsmkv.aio.DB(path, **options).open()), "DB"),
    ],
)
def test_a_misspelt_option(path: str, opens: Callable[..., object], taker: str) -> None:
    """Wherever options are taken, and what is no option there is not one of another's."""
    with pytest.raises(TypeError, match=rf"lsmkv\.{taker} .*'blok_size'.* mean 'block_size'\?$"):
        opens(path, block_restart_interval=4, blok_size=4096)
    with pytest.raises(TypeError, match=rf"lsmkv\.{taker} has no option 'kept'$"):
        opens(path, kept=1)
    assert not os.path.exists(path)


def test_options_of_others_are_refused(path: str) -> None:
    for opens in (lsmkv.plyvel.DB, lsmkv.TableWriter):
        with pytest.raises(TypeError, match=r"has no option 'background'$"):
            opens(path, background="thread")
    assert not os.path.exists(path)


def test_a_missing_database(tmp_path: pathlib.Path, path: str) -> None:
    with pytest.raises(lsmkv.NotFoundError, match="create_if_missing") as caught:
        DB(path)
    assert caught.value.filename == path
    assert isinstance(caught.value, FileNotFoundError)
    assert os.listdir(tmp_path) == []
    os.mkdir(path)
    with pytest.raises(lsmkv.NotFoundError):
        DB(path)
    assert os.listdir(path) == []
    pathlib.Path(path, "notes.txt").write_text("mine")
    with pytest.raises(lsmkv.NotFoundError):
        DB(path)
    assert os.listdir(path) == ["notes.txt"]


def test_a_missing_parent(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        DB(tmp_path / "no" / "db", create_if_missing=True)
    assert isinstance(caught.value, lsmkv.Error)
    assert "create_if_missing is false" not in str(caught.value)
    assert os.listdir(tmp_path) == []


def test_a_path_that_is_no_directory(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"mine")
    for create in (False, True):
        with pytest.raises(lsmkv.IOError) as caught:
            DB(file, create_if_missing=create)
        assert caught.value.filename == str(file)
    assert file.read_bytes() == b"mine"
    with pytest.raises(TypeError):
        DB(5, create_if_missing=True)  # type: ignore[arg-type]


def test_error_if_exists(path: str) -> None:
    with DB(path, create_if_missing=True, error_if_exists=True) as db:
        fill(db)
    before = data_files(path)
    with pytest.raises(lsmkv.Error, match="error_if_exists"):
        DB(path, error_if_exists=True)
    assert data_files(path) == before
    with DB(path) as db:
        assert dict(db) == ENTRIES


def test_a_second_opening_in_the_same_process(db: DB) -> None:
    fill(db)
    before = contents(db.path)
    for attempt in (db.path, os.path.join(db.path, "..", "db")):
        with pytest.raises(lsmkv.LockedError) as caught:
            DB(attempt)
        assert caught.value.pid == os.getpid()
        assert isinstance(caught.value, BlockingIOError)
    assert contents(db.path) == before
    assert dict(db) == ENTRIES
    db.put(b"more", b"1")


def test_a_lock_held_by_another_process(db: DB) -> None:
    fill(db)
    before = contents(db.path)
    program = """
        import sys, lsmkv
        try:
            lsmkv.DB(sys.argv[1])
        except lsmkv.LockedError as error:
            print(error.pid, error, sep="|")
        try:
            lsmkv.destroy_db(sys.argv[1])
        except lsmkv.LockedError as error:
            print(error.pid)
    """
    result = run_python(program, db.path)
    assert result.stderr == ""
    opened, destroyed = result.stdout.splitlines()
    assert opened.startswith(f"{os.getpid()}|")
    assert f"held by process {os.getpid()}" in opened
    assert destroyed == str(os.getpid())
    assert contents(db.path) == before
    db.put(b"more", b"1")
    assert db.get(b"key0001") == ENTRIES[b"key0001"]


def test_a_lock_dies_with_its_holder(path: str) -> None:
    program = """
        import os, sys, lsmkv
        db = lsmkv.DB(sys.argv[1], create_if_missing=True)
        db.put(b"k", b"v")
        os._exit(7)
    """
    assert run_python(program, path).returncode == 7
    with DB(path) as db:
        assert dict(db) == {b"k": b"v"}


@pytest.mark.parametrize("compression", ["snappy", None])
def test_damage_in_a_table(path: str, compression: Any) -> None:
    with DB(path, create_if_missing=True, block_size=512, compression=compression) as db:
        fill(db)
        db.compact_range()
    (name,) = files(path, FileType.TABLE)
    table = pathlib.Path(path, name)
    sound = table.read_bytes()
    damaged = bytearray(sound)
    damaged[10] ^= 0x20  # in the first data block
    table.write_bytes(damaged)
    with DB(path) as db:
        for read in (
            lambda: db.get(b"key0000"),
            lambda: db.get(b"key0000"),  # damage is not cached
            lambda: next(iter(db)),
            lambda: list(db.iterator(reverse=True)),
            db.check,
            lambda: db.snapshot().get(b"key0000", verify_checksums=False),
        ):
            with pytest.raises(lsmkv.CorruptionError) as caught:
                read()
            assert caught.value.path == str(table)
            assert caught.value.offset == 0
            assert name in str(caught.value)
        assert db.get(b"key0299") == ENTRIES[b"key0299"]  # another block
    table.write_bytes(sound)
    with DB(path) as db:
        db.compact_range()
        assert dict(db) == ENTRIES


def test_compaction_stops_at_damage_and_loses_nothing(path: str) -> None:
    with DB(path, create_if_missing=True) as db:
        for _ in range(2):
            fill(db)
            db.flush()
    names = sorted(files(path, FileType.TABLE))
    table = pathlib.Path(path, names[0])
    sound = table.read_bytes()
    table.write_bytes(sound[:20] + bytes([sound[20] ^ 1]) + sound[21:])
    with DB(path) as db:
        db.put(b"fresh", b"1")
        with pytest.raises(lsmkv.CorruptionError) as caught:
            db.compact_range()
        assert caught.value.path == str(table)
        assert db.get(b"fresh") == b"1"
        with pytest.raises(lsmkv.CorruptionError) as caught:
            db.put(b"refused", b"1")  # kept, and raised by every later write
        assert caught.value.path == str(table)
        with pytest.raises(lsmkv.CorruptionError):
            db.sync()
        with pytest.raises(lsmkv.CorruptionError):
            db.flush()
        assert set(names) <= files(path, FileType.TABLE)
    table.write_bytes(sound)
    with DB(path) as db:
        assert dict(db) == {**ENTRIES, b"fresh": b"1"}
        db.compact_range()
        db.check()


def test_a_missing_table(path: str) -> None:
    with DB(path, create_if_missing=True) as db:
        fill(db)
        db.flush()
    (name,) = files(path, FileType.TABLE)
    os.rename(os.path.join(path, name), os.path.join(path, "aside"))
    with DB(path) as db:
        with pytest.raises(lsmkv.CorruptionError, match="missing") as caught:
            db.get(b"key0001")
        assert str(caught.value.path).endswith(name)
    os.rename(os.path.join(path, "aside"), os.path.join(path, name))
    with DB(path) as db:
        assert dict(db) == ENTRIES


# Closing


def test_closed(path: str) -> None:
    db = DB(path, create_if_missing=True)
    db.put(b"k", b"v")
    iterator = iter(db)
    idle = iter(db)
    snapshot = db.snapshot()
    batch = db.write_batch()
    batch.put(b"k", b"w")
    assert next(iterator) == (b"k", b"v")
    assert not db.closed
    db.close()
    db.close()
    assert db.closed
    assert iterator.closed
    calls: list[Callable[[], object]] = [
        lambda: db.get(b"k"),
        lambda: db.put(b"k", b"x"),
        lambda: db.delete(b"k"),
        lambda: db.write(batch),
        lambda: db.write(WriteBatch()),
        db.write_batch,
        batch.write,
        db.iterator,
        lambda: iter(db),
        db.snapshot,
        db.sync,
        db.flush,
        db.compact_range,
        lambda: db.get_property("leveldb.stats"),
        lambda: db.approximate_size(b"a", b"b"),
        db.stats,
        db.check,
        iterator.next,
        iterator.prev,
        idle.next,
        lambda: iterator.seek(b"a"),
        iterator.seek_to_start,
        iterator.seek_to_stop,
        lambda: snapshot.get(b"k"),
        snapshot.iterator,
    ]
    for call in calls:
        with pytest.raises(lsmkv.ClosedError):
            call()
    iterator.close()
    snapshot.close()
    with DB(path) as db:
        assert dict(db) == {b"k": b"v"}


def test_a_block_that_raises_closes(path: str) -> None:
    def block() -> None:
        with DB(path, create_if_missing=True) as db:
            db.put(b"k", b"v")
            raise KeyError("inside")

    with pytest.raises(KeyError):
        block()
    with DB(path) as db:
        assert db.get(b"k") == b"v"


def test_an_unclosed_store_warns_and_closes(path: str) -> None:
    db = DB(path, create_if_missing=True)
    db.put(b"k", b"v")
    stores = [db]
    del db
    with pytest.warns(ResourceWarning, match="unclosed.*db"):
        stores.clear()
    with warnings.catch_warnings(), DB(path) as db:  # the lock is free
        assert db.get(b"k") == b"v"


def test_a_forgotten_store_that_its_own_comparator_knows_is_collected(path: str) -> None:
    """Options lie in every table, and what a block is searched by in every block."""

    def use() -> None:
        known: list[DB] = []

        def compare(a: bytes, b: bytes) -> int:
            assert len(known) <= 1
            return (a > b) - (a < b)

        db = DB(path, create_if_missing=True, comparator=compare, comparator_name="knowing")
        known.append(db)
        for number in range(100):
            db.put(b"%03d" % number, bytes(50))
        db.compact_range()
        for number in range(1000):
            assert db.get(b"%03d" % (number % 100)) is not None
        assert len(list(db)) == 100

    use()
    with pytest.warns(ResourceWarning, match="unclosed.*db"):
        gc.collect()
    with DB(path, comparator=lambda a, b: (a > b) - (a < b), comparator_name="knowing"):
        pass  # the lock is free


def test_a_failed_opening_leaves_no_warning(path: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(lsmkv.NotFoundError):
            DB(path)
        with pytest.raises(TypeError):
            DB(path, nonsense=1)
        gc.collect()


def test_at_interpreter_exit(path: str) -> None:
    """Background work at exit neither hangs nor loses anything, and the lock is free after."""
    program = """
        import sys, lsmkv
        db = lsmkv.DB(sys.argv[1], create_if_missing=True, write_buffer_size=1024)
        for n in range(500):
            db.put(b"%05d" % n, b"v" * 50)
    """
    result = run_python(program, path)
    assert result.stderr == ""
    assert result.returncode == 0
    with DB(path) as db:
        assert len(list(db)) == 500


def run_threads(*targets: Callable[[], None]) -> list[BaseException]:
    """Run them all at once, to their end; what they raised."""
    errors: list[BaseException] = []

    def guarded(target: Callable[[], None]) -> None:
        try:
            target()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(target,)) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


@pytest.mark.parametrize("where", ["disk", "memory"])
@pytest.mark.parametrize("round_", range(4))
def test_closing_under_readers_and_writers(path: str, where: str, round_: int) -> None:
    env = None
    if where == "memory":
        env, path = MemoryEnv(), "/db"
    # No cache, and room for ten tables only: readers open and close files all the time.
    options = {**TINY, "lru_cache_size": 0, "max_open_files": 20, "env": env}
    db = DB(path, create_if_missing=True, **options)
    fill(db)
    acknowledged: dict[bytes, bytes] = {}
    running = threading.Barrier(7)
    keys = list(ENTRIES)

    def until_closed(step: Callable[[int], object]) -> Callable[[], None]:
        def loop() -> None:
            running.wait()
            n = round_
            while True:
                n += 1
                try:
                    step(n)
                except lsmkv.ClosedError:
                    return

        return loop

    def write(n: int) -> None:
        db.put(b"new%d" % n, b"v" * 40)
        acknowledged[b"new%d" % n] = b"v" * 40

    def close() -> None:
        running.wait()
        while len(acknowledged) < 60:
            pass
        db.close()

    errors = run_threads(
        until_closed(lambda n: db.get(keys[n * 7 % 300])),
        until_closed(lambda n: list(db.iterator(start=keys[n * 11 % 300]))),
        until_closed(lambda n: list(db.iterator(reverse=True, stop=keys[n * 13 % 300]))),
        until_closed(write),
        until_closed(lambda _: db.snapshot().get(b"key0100")),
        until_closed(lambda _: db.flush()),
        close,
    )
    assert errors == []
    with DB(path, env=env) as db:
        assert {**ENTRIES, **acknowledged}.items() <= dict(db).items()


class GatedEnv(MemoryEnv):
    """Holds up every creation of a table until it is let go, or fails then.

    With ``no_logs`` there is no room for a log before one is removed, and with ``half`` its name
    is there all the same.
    """

    def __init__(self) -> None:
        super().__init__()
        self.open = threading.Event()
        self.open.set()
        self.waiting = threading.Event()
        self.full = False
        self.no_logs = self.half = False
        self.refused = 0
        self.logs_made = 0

    def open_directory(self, path: str, create: bool = False) -> Any:
        directory: Any = super().open_directory(path, create)
        inner = directory.create

        def gated(name: str) -> Any:
            if name.endswith(".ldb"):
                self.waiting.set()
                self.open.wait()
                if self.full:
                    raise OSError(errno.ENOSPC, "disk full")
            if self.no_logs and name.endswith(".log"):
                self.refused += 1
                if self.half:
                    inner(name).close()
                raise OSError(errno.ENOSPC, "disk full")
            self.logs_made += name.endswith(".log")
            return inner(name)

        def remove(name: str) -> None:
            inner_remove(name)
            if name.endswith(".log"):
                self.no_logs = False

        inner_remove = directory.remove
        directory.create = gated
        directory.remove = remove
        return directory


def background_of(target: Callable[[], object]) -> tuple[threading.Thread, list[BaseException]]:
    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            target()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=guarded, daemon=True)  # a hang must not hold up the exit
    thread.start()
    return thread, errors


@pytest.mark.parametrize("waiter", ["flush", "compact_range", "stalled put", "second flush"])
def test_closing_while_a_thread_waits_for_background_work(waiter: str) -> None:
    """A compaction is at work; who waits for what comes after it must not wait for ever."""
    env = GatedEnv()
    db = DB("/db", create_if_missing=True, env=env, write_buffer_size=1024)
    for n in range(3):  # they land on levels 2, 1 and 0
        fill(db, {b"a": b"%d" % n, b"z": b"%d" % n})
        db.flush()
    env.open.clear()
    env.waiting.clear()
    compacting, compaction_errors = background_of(
        lambda: db._background.compact_level(0, None, None)
    )
    assert env.waiting.wait(60)
    threads = []

    def put_until_refused() -> None:
        for n in range(100):
            db.put(b"%d" % n, b"v" * 100)

    db.put(b"m", b"1")
    target = {
        "flush": db.flush,
        "second flush": db.flush,
        "compact_range": db.compact_range,
        "stalled put": put_until_refused,
    }[waiter]
    threads.append(background_of(target))
    while db._store.view.immutable is None:
        pass
    if waiter == "second flush":
        threads.append(background_of(db.flush))
    closing, close_errors = background_of(db.close)
    while not db._store.closing:
        pass
    env.open.set()
    for thread, errors in [*threads, (compacting, compaction_errors)]:
        thread.join(60)
        assert not thread.is_alive()
        assert all(isinstance(error, lsmkv.ClosedError) for error in errors), errors
    closing.join(60)
    assert not closing.is_alive()
    assert close_errors == []
    with DB("/db", env=env) as db:
        assert db.get(b"m") == b"1"
        assert db.get(b"a") == b"2"


def test_a_flush_in_the_middle_of_a_compaction() -> None:
    """It must not place its table where an output of the compaction will lie."""
    env = GatedEnv()
    low = {b"a%03d" % n: b"v" * 50 for n in range(300)}
    high = {b"x%03d" % n: b"v" for n in range(9)}
    with DB("/db", create_if_missing=True, env=env) as db:
        for entries in (low, high, low, high):  # two tables on level 2, two on level 1
            fill(db, entries)
            db.flush()
        assert files_at(db) == [0, 2, 2, 0, 0, 0, 0]
        env.open.clear()
        env.waiting.clear()
        compacting, errors = background_of(db.compact_range)
        assert env.waiting.wait(60)  # its output will reach from a to x
        db.put(b"m", b"1")
        flushing, more_errors = background_of(db.flush)
        while db._store.view.immutable is None:
            pass
        env.open.set()
        compacting.join()
        flushing.join()
        assert errors == more_errors == []
        assert dict(db) == {**low, **high, b"m": b"1"}
        db.put(b"after", b"1")
        db.check()
    with DB("/db", env=env) as db:
        assert dict(db) == {**low, **high, b"m": b"1", b"after": b"1"}
        db.check()


def test_closing_ends_a_compaction_early(path: str) -> None:
    with DB(path, create_if_missing=True, compression=None) as db:
        for _ in range(2):
            for n in range(3000):
                db.put(b"%05d" % n, b"v" * 300)
            db.flush()
        thread, errors = background_of(db.compact_range)
        while not db._background.busy and thread.is_alive():
            pass
    thread.join()
    assert all(isinstance(error, lsmkv.ClosedError) for error in errors)
    with DB(path) as db:
        assert len(list(db.iterator(include_value=False))) == 3000
        db.check()
        assert len(files(path, FileType.TABLE)) == sum(files_at(db))


# Threads and stalls


def test_a_full_memtable_waits_for_its_flush() -> None:
    """A writer that finds both memtables full waits, and goes on as soon as there is room."""
    env = GatedEnv()
    with DB("/db", create_if_missing=True, env=env, write_buffer_size=1024) as db:
        env.open.clear()

        def write() -> None:
            for n in range(100):
                db.put(b"%05d" % n, b"v" * 100)

        thread, errors = background_of(write)
        env.waiting.wait()
        while db.stats().memtable_bytes < 2048:
            pass
        assert thread.is_alive()
        assert db.get(b"00000") == b"v" * 100  # reads go on meanwhile
        assert len(list(db)) >= 14
        env.open.set()
        thread.join()
        assert errors == []
        assert len(list(db)) == 100
        stats = db.stats()
        assert stats.stalls > 0
        assert stats.stall_seconds > 0
        assert stats.flushes > 5


@pytest.mark.parametrize("then", ["it goes on", "the store is closed", "the flush fails"])
def test_the_next_log_is_made_while_a_flush_is_waited_for(then: str) -> None:
    env = GatedEnv()
    db = DB("/db", create_if_missing=True, env=env, write_buffer_size=1024)
    directory = env.open_directory("/db")

    def logs() -> list[int]:
        parsed = [parse_filename(name) for name in directory.names()]
        return sorted(one[0] for one in parsed if one is not None and one[1] is FileType.LOG)

    env.open.clear()
    written: list[int] = []

    def write() -> None:
        for n in range(30):
            db.put(b"%05d" % n, b"v" * 100)
            written.append(n)

    thread, errors = background_of(write)
    env.waiting.wait()
    while len(logs()) < 3:
        assert thread.is_alive()
    *held, following = logs()
    view = db._store.view
    assert held == [view.immutable.log_number, view.memtable.log_number]
    assert directory.read_file(log_name(following), 1) == b""
    if then == "the store is closed":
        closing, _ = background_of(db.close)
        while not db._store.closing:
            pass
    elif then == "the flush fails":
        env.full = True
    env.open.set()
    thread.join(60)
    assert not thread.is_alive()
    if then == "it goes on":
        assert errors == []
        db.flush()
        assert env.logs_made == 1 + db.stats().flushes
        db.check()
    else:
        assert [type(error) for error in errors] == [
            lsmkv.ClosedError if then == "the store is closed" else lsmkv.IOError
        ]
    db.close()
    if then == "the store is closed":
        closing.join(60)
    if then != "it goes on":
        assert following not in logs()
    env.full = False
    with DB("/db", env=env) as db:
        assert dict(db) == {b"%05d" % n: b"v" * 100 for n in written}


@pytest.mark.parametrize("half", [False, True])
def test_a_disk_that_is_full_until_the_flush_is_done_fails_no_write(half: bool) -> None:
    env = GatedEnv()
    env.half = half
    with DB("/db", create_if_missing=True, env=env, write_buffer_size=1024) as db:
        env.open.clear()
        while db._store.view.immutable is None:
            db.put(b"k", b"v" * 100)
        env.no_logs = True

        def write() -> None:
            for n in range(20):
                db.put(b"%05d" % n, b"v" * 100)

        thread, errors = background_of(write)
        while env.refused == 0:
            assert thread.is_alive()
        env.open.set()
        thread.join(60)
        assert errors == []
        assert len(dict(db)) == 21


def test_the_thread_leaves_nothing_to_be_removed() -> None:
    """Though it has found, at the end, nothing else to do: the flush that it saved it for, say."""
    env = MemoryEnv()
    with DB("/db", create_if_missing=True, env=env) as db:
        background: Any = db._background
        settle(db)
        env.open_directory("/db").create("000001.log").close()
        runner = Runner(None)
        background._runner = runner
        background.has_obsolete_files = True
        background._work(runner)
        assert background._runner is None
        assert not env.open_directory("/db").exists("000001.log")


def test_files_have_the_same_numbers_whenever_flushes_are_computed() -> None:
    numbered: list[set[int]] = []
    for stalls in (False, True):
        env = GatedEnv()
        with DB("/db", create_if_missing=True, env=env, write_buffer_size=1024) as db:
            made = env.logs_made

            def write(db: DB = db, stalls: bool = stalls) -> None:
                for n in range(40):
                    db.put(b"%05d" % n, b"v" * 100)
                    if not stalls:
                        settle(db)

            if stalls:
                env.open.clear()
            thread, errors = background_of(write)
            while stalls and env.logs_made < made + 2:
                assert thread.is_alive()
            env.open.set()
            thread.join(60)
            assert errors == []
            settle(db)
            assert db.stats().flushes > 3
            numbered.append({table.number for table in db.tables()})
    assert numbered[0] == numbered[1]


def test_a_failed_flush_ends_a_stall_with_its_error() -> None:
    env = FaultyEnv()
    with DB("/db", create_if_missing=True, env=env, write_buffer_size=1024) as db:
        written = 0

        def write() -> None:
            nonlocal written
            for n in range(1000):
                db.put(b"%05d" % n, b"v" * 100)
                written += 1

        for n in range(3):
            db.put(b"a%d" % n, b"v")
        db.flush()
        env.fail_at(1, OSError(28, "No space left on device"), sticky=True, calls={"create"})
        with pytest.raises(lsmkv.IOError, match="No space left") as caught:
            write()
        assert caught.value.errno == 28
        first = written
        with pytest.raises(lsmkv.IOError, match="No space left"):
            db.put(b"again", b"x")
        env.heal()
        assert db.get(b"a1") == b"v"
        assert len(list(db)) == first + 3
    with DB("/db", env=env) as db:
        expected = {b"%05d" % n: b"v" * 100 for n in range(first)}
        assert dict(db) == {**expected, b"a0": b"v", b"a1": b"v", b"a2": b"v"}
        db.put(b"more", b"1")


def failed_after_the_last_write(env: FaultyEnv, call: str, n: int) -> tuple[DB, dict[bytes, bytes]]:
    """A store whose last write set off a flush, which failed: in making the table, say."""
    db = DB("/db", create_if_missing=True, env=env, write_buffer_size=1024, background="thread")
    state = {b"%d" % number: b"v" * 300 for number in range(4)}
    for key, value in state.items():
        db.put(key, value)
    env.fail_at(n, OSError(errno.ENOSPC, "disk full"), calls={call})
    state[b"last"] = b"1"
    db.put(b"last", b"1")
    settle(db)
    assert env.failures == 1
    return db, state


# The log comes first, created and synced by the writer; then the table; then the MANIFEST.
@pytest.mark.parametrize(("call", "n"), [("create", 2), ("sync", 2), ("sync", 3)])
def test_closing_does_not_raise_what_a_flush_failed_with(
    call: str, n: int, caplog: pytest.LogCaptureFixture
) -> None:
    """It was logged, and all is there: after a power cut, too."""
    env = FaultyEnv()
    db, state = failed_after_the_last_write(env, call, n)
    assert "Background work ended by an error: [Errno 28] disk full" in caplog.text
    with pytest.raises(lsmkv.IOError, match="disk full"):
        db.put(b"refused", b"")
    db.close()
    for after in (env.kill(), env.power_cut(), env):
        with DB("/db", env=after) as again:
            assert dict(again) == state


def test_a_block_that_raises_is_not_hidden_by_a_failed_flush() -> None:
    db, _ = failed_after_the_last_write(FaultyEnv(), "create", 2)
    with pytest.raises(LookupError, match="of the block") as caught, db:
        raise LookupError("of the block")
    assert caught.value.__context__ is None
    assert db.closed


def test_closing_raises_what_syncing_the_log_failed_with() -> None:
    env = FaultyEnv()
    db = DB("/db", create_if_missing=True, env=env)
    db.put(b"k", b"v")
    env.fail_at(1, OSError(errno.EIO, "bad disk"), calls={"sync"})
    with pytest.raises(lsmkv.IOError, match="bad disk"):
        db.close()
    assert db.closed
    db.close()
    with DB("/db", env=env) as again:  # the lock was given up
        assert dict(again) == {b"k": b"v"}


def test_many_small_tables_slow_writes_down_and_no_more(path: str) -> None:
    with DB(path, create_if_missing=True, write_buffer_size=1024) as db:
        expected = {}
        rng = random.Random(9)
        for n in range(3000):
            key = b"%04d" % rng.randrange(2000)
            expected[key] = b"%d" % n * 8
            db.put(key, expected[key])
        assert dict(db) == expected
        settle(db)
        assert files_at(db)[0] < 12
        assert db.stats().compactions > 0
        db.check()


def test_an_interrupted_opening_gives_up_the_lock(path: str) -> None:
    DB(path, create_if_missing=True).close()

    class Interrupting(lsmkv.LocalEnv):
        def open_directory(self, path: str, create: bool = False) -> Any:
            directory: Any = super().open_directory(path, create)

            def interrupted(name: str) -> RandomAccessFile:
                raise KeyboardInterrupt

            directory.open = interrupted
            return directory

    with pytest.raises(KeyboardInterrupt):
        DB(path, env=Interrupting())
    DB(path).close()


# Forks


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_child_is_refused(path: str) -> None:
    program = """
        import os, sys, warnings, lsmkv
        path = sys.argv[1]
        db = lsmkv.DB(path, create_if_missing=True, write_buffer_size=1024)
        db.put(b"before", b"1")
        iterator = iter(db)
        snapshot = db.snapshot()
        batch = db.write_batch()
        batch.put(b"child", b"1")
        ready, told = os.pipe()
        child = os.fork()
        if child == 0:
            outcome = 0
            for n, call in enumerate((
                lambda: db.get(b"before"),
                lambda: db.put(b"child", b"1"),
                lambda: db.delete(b"before"),
                lambda: db.write(batch),
                db.sync, db.flush, db.compact_range, db.snapshot, db.iterator,
                lambda: snapshot.get(b"before"),
            )):
                try:
                    call()
                    os._exit(10 + n)
                except lsmkv.ForkedError as error:
                    if "fork" not in str(error):
                        os._exit(50 + n)
            try:
                next(iterator)
                os._exit(90)
            except lsmkv.ClosedError:
                pass
            try:
                lsmkv.DB(path)  # the parent's lock still holds
                os._exit(91)
            except lsmkv.LockedError as error:
                if error.pid != os.getppid():
                    os._exit(92)
            db.close()
            del db, snapshot, iterator, batch
            os.read(ready, 1)  # lives on while the parent closes and opens again
            os._exit(0)
        for n in range(200):
            db.put(b"parent%03d" % n, b"v" * 20)
        assert next(iterator) == (b"before", b"1")
        assert snapshot.get(b"parent000") is None
        db.close()
        with lsmkv.DB(path) as db:
            assert len(list(db)) == 201, list(db)
            db.check()
        os.write(told, b"x")
        _, status = os.waitpid(child, 0)
        print("child", os.waitstatus_to_exitcode(status))
    """
    result = run_python(program, path)
    assert result.stderr == ""
    assert result.stdout == "child 0\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_child_waits_for_no_lock_that_its_parent_held(path: str) -> None:
    program = """
        import os, signal, sys, lsmkv
        db = lsmkv.DB(sys.argv[1], create_if_missing=True)
        batch = db.write_batch()
        batch.put(b"child", b"1")
        with db._writer._lock:  # as another thread would, that the child does not have
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                for n, call in enumerate((
                    lambda: db.put(b"child", b"1"),
                    lambda: db.delete(b"before"),
                    lambda: db.write(batch),
                    db.sync, db.flush, db.compact_range,
                )):
                    try:
                        call()
                        os._exit(10 + n)
                    except lsmkv.ForkedError:
                        pass
                db.close()
                os._exit(0)
        _, status = os.waitpid(child, 0)
        print("child", os.waitstatus_to_exitcode(status))
        db.close()
    """
    result = run_python(program, path)
    assert result.stderr == ""
    assert result.stdout == "child 0\n"


# Destroying


def test_destroy_db(path: str) -> None:
    with DB(path, create_if_missing=True, **TINY) as db:
        fill(db)
        with pytest.raises(lsmkv.LockedError):
            lsmkv.destroy_db(path)
        db.check()
    DB(path).close()
    lsmkv.destroy_db(path)
    assert not os.path.exists(path)
    lsmkv.destroy_db(path)
    with DB(path, create_if_missing=True) as db:
        assert list(db) == []


def test_destroy_db_spares_what_is_not_the_engines(path: str) -> None:
    with DB(path, create_if_missing=True) as db:
        fill(db)
        db.flush()
    foreign = {"notes.txt", "data.ldb", "1.ldb.bak", "000001.log.gz", "sub"}
    os.mkdir(os.path.join(path, "sub"))
    pathlib.Path(path, "sub", "000001.ldb").write_bytes(b"mine")
    for name in foreign - {"sub"}:
        pathlib.Path(path, name).write_bytes(b"mine")
    lsmkv.destroy_db(pathlib.Path(path))
    assert set(os.listdir(path)) == foreign
    assert pathlib.Path(path, "sub", "000001.ldb").read_bytes() == b"mine"


def test_destroy_db_in_an_env_of_ones_own() -> None:
    env = MemoryEnv()
    with DB("/db", create_if_missing=True, env=env) as db:
        fill(db)
    lsmkv.destroy_db("/db", env=env)
    with pytest.raises(lsmkv.NotFoundError):
        DB("/db", env=env)


def test_destroy_db_empties_what_recovery_set_aside(path: str) -> None:
    with DB(path, create_if_missing=True) as db:
        for n in range(10):
            db.put(b"%d" % n, b"v" * 50)
    (name,) = files(path, FileType.LOG)
    log = pathlib.Path(path, name)
    data = bytearray(log.read_bytes())
    data[150] ^= 1
    log.write_bytes(data)
    DB(path).close()
    assert os.listdir(os.path.join(path, "lost")) == [name]
    lsmkv.destroy_db(path)
    assert not os.path.exists(path)


def test_a_directory_that_moves_while_open(path: str) -> None:
    """The path is resolved once: the store follows its directory, not the name."""
    with DB(path, create_if_missing=True, **TINY) as db:
        fill(db)
        os.rename(path, path + "2")
        os.mkdir(path)
        db.put(b"more", b"1")
        db.compact_range()
        assert db.get(b"key0001") == ENTRIES[b"key0001"]
        assert os.listdir(path) == []
    with DB(path + "2") as db:
        assert dict(db) == {**ENTRIES, b"more": b"1"}


def test_the_directory_may_be_reached_through_a_symbolic_link(path: str) -> None:
    DB(path, create_if_missing=True).close()
    os.symlink(path, path + "-link")
    with DB(path + "-link") as db:
        db.put(b"k", b"v")
        with pytest.raises(lsmkv.LockedError):
            DB(path)
    with DB(path) as db:
        assert db.get(b"k") == b"v"


def test_interface_of_directories_is_all_that_the_store_uses() -> None:
    """A file system of the user's: whatever derives from Env will do."""

    class Strict(lsmkv.Env):
        def __init__(self) -> None:
            self.inner = MemoryEnv()

        def open_directory(self, path: str, create: bool = False) -> Directory:
            return self.inner.open_directory(path, create)

        def remove_directory(self, path: str) -> None:
            self.inner.remove_directory(path)

        def rename_directory(self, old: str, new: str) -> None:
            self.inner.rename_directory(old, new)

    with DB("somewhere", create_if_missing=True, env=Strict(), **TINY) as db:
        fill(db)
        db.compact_range()
        assert dict(db) == ENTRIES


def test_a_batch_whose_writer_was_interrupted_holds_nobody_up() -> None:
    """A signal may strike when the batch is in the queue and nobody leads for it yet."""
    with DB(":memory:") as db:
        db.put(b"a", b"1")
        writer = db._writer
        assert writer is not None
        writer._queue.waiting.append(Pending([(b"orphan", b"1")], False, None))
        thread = threading.Thread(target=db.put, args=(b"b", b"1"), daemon=True)
        thread.start()
        thread.join(30)
        assert not thread.is_alive()
        assert dict(db) == {b"a": b"1", b"b": b"1", b"orphan": b"1"}
