"""Snapshots read at their sequence, and release it once."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
from stores import pinned

from lsmkv import DB
from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.errors import ClosedError, CorruptionError


@pytest.fixture
def db() -> Iterator[DB]:
    with DB(":memory:") as db:
        db.put(b"a", b"1")
        db.put(b"b", b"2")
        yield db


def test_a_snapshot_stays_as_it_was(db: DB) -> None:
    with db.snapshot() as snapshot:
        assert snapshot.sequence == 2
        db.put(b"a", b"new")
        db.delete(b"b")
        db.put(b"c", b"3")
        for step in (lambda: None, db.flush, db.compact_range, db.compact_range):
            step()
            assert [snapshot.get(k) for k in (b"a", b"b", b"c")] == [b"1", b"2", None]
            assert snapshot.get(b"b", verify_checksums=False, fill_cache=False) == b"2"
            assert snapshot.get(b"c", b"default") == b"default"
            assert list(snapshot) == [(b"a", b"1"), (b"b", b"2")]
            assert list(snapshot.iterator(reverse=True, include_value=False)) == [b"b", b"a"]
            assert list(snapshot.iterator(prefix=b"b", reverse=True)) == [(b"b", b"2")]
            assert dict(db) == {b"a": b"new", b"c": b"3"}
        with pytest.raises(TypeError):
            snapshot.get("a")  # type: ignore[call-overload]


def test_closing_releases_once(db: DB) -> None:
    other = db.snapshot()
    snapshot = db.snapshot()
    assert pinned(db) == 2
    assert not snapshot.closed
    snapshot.close()
    snapshot.close()
    assert snapshot.closed
    assert pinned(db) == 1
    with pytest.raises(ClosedError, match="snapshot"):
        snapshot.get(b"k")
    with pytest.raises(ClosedError, match="snapshot"):
        snapshot.iterator()
    with pytest.raises(ClosedError, match="snapshot"):
        iter(snapshot)
    del snapshot
    gc.collect()
    assert pinned(db) == 1
    assert other.get(b"a") == b"1"


def test_a_with_block_closes_a_snapshot(db: DB) -> None:
    with db.snapshot() as snapshot:
        assert snapshot.get(b"a") == b"1"
        assert pinned(db) == 1
    assert snapshot.closed
    assert pinned(db) == 0


def test_a_collected_snapshot_is_closed(db: DB) -> None:
    snapshot = db.snapshot()
    gone = weakref.ref(snapshot)
    assert pinned(db) == 1
    del snapshot
    gc.collect()
    assert gone() is None
    assert pinned(db) == 0


def test_a_snapshot_keeps_its_store_open() -> None:
    snapshot = DB(":memory:").snapshot()
    gc.collect()
    assert snapshot.get(b"a") is None
    kept = [snapshot]
    del snapshot
    with pytest.warns(ResourceWarning, match="unclosed"):
        kept.clear()


def test_a_closed_store_closes_its_snapshots() -> None:
    with DB(":memory:") as db:
        snapshot = db.snapshot()
    with pytest.raises(ClosedError):
        snapshot.get(b"a")
    snapshot.close()


def tables_asked(db: DB) -> int:
    return sum(level.tables_asked for level in db.stats().levels)


def test_a_get_at_a_snapshot_asks_each_table_once() -> None:
    for cache_size in (1 << 20, 0):
        with DB(":memory:", lru_cache_size=cache_size) as db:
            for key in (b"b", b"a"):
                db.put(key, b"old")
            snapshot = db.snapshot()
            db.put(b"b", b"new")
            db.compact_range()
            for key in (b"a", b"b"):
                before = tables_asked(db)
                assert snapshot.get(key) == b"old"
                assert tables_asked(db) - before == 1
            assert db.get(b"b") == b"new"


def test_a_damaged_version_that_a_snapshot_does_not_see() -> None:
    env = MemoryEnv()
    with DB("/db", create_if_missing=True, env=env, block_size=100, compression=None) as db:
        db.put(b"k", b"old" * 100)
        snapshot = db.snapshot()
        db.put(b"k", b"new" * 100)
        db.compact_range()
        with env.open_directory("/db") as directory:
            (name,) = (name for name in directory.names() if name.endswith(".ldb"))
            with directory.open(name) as file:
                content = bytearray(file.read(0, file.size))
            content[content.index(b"newnew")] ^= 1
            directory.remove(name)
            with directory.create(name) as out:
                out.append(bytes(content))
        db._store.tables.clear()
        with pytest.raises(CorruptionError):
            db.get(b"k")
        assert snapshot.get(b"k") == b"old" * 100


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
