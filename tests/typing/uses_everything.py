"""Uses the public names of lsmkv; checked by mypy, never run."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any, assert_type

import lsmkv
from lsmkv import DB


class LastByte:
    """A filter policy of a user's own: no base class is asked for."""

    name = "example.LastByte"

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        return bytes(key[-1] for key in keys if key)

    def key_may_match(self, key: bytes, filter: bytes) -> bool:
        return not key or key[-1] in filter


policy: lsmkv.FilterPolicy = LastByte()


def opening(path: pathlib.Path) -> None:
    with DB(path, create_if_missing=True, compression="zstd", filter_policy=policy) as db:
        assert_type(db, DB)
        assert_type(db.path, str)
        assert_type(db.name, str)
        assert_type(db.closed, bool)
        assert_type(db.options, lsmkv.Options)
    DB(str(path), read_only=True).refresh()
    DB(path, compression="lzma")  # type: ignore[arg-type]
    DB(path, no_such_option=1)  # type: ignore[call-arg]
    DB(b"bytes")  # type: ignore[arg-type]
    DB(path, comparator=lambda a, b: len(a) - len(b), comparator_name="by length")
    DB(path, block_cache=lsmkv.LRUCache(1 << 20), env=lsmkv.MemoryEnv(), filter_layout="both")
    lsmkv.destroy_db(path, env=lsmkv.LocalEnv())


def reading(db: DB) -> None:
    assert_type(db.get(b"k"), bytes | None)
    assert_type(db.get(bytearray(b"k"), None), bytes | None)
    assert_type(db.get(memoryview(b"k"), b""), bytes)
    assert_type(db.get(b"k", 3), bytes | int)
    assert_type(db.get(b"k", "", fill_cache=False), bytes | str)
    db.get("k")  # type: ignore[call-overload]
    assert_type(db.multi_get([b"a", b"b"]), list[bytes | None])
    assert_type(b"k" in db, bool)
    assert_type(db.may_contain(b"k"), bool)
    assert_type(db.get_property("leveldb.stats"), str | None)
    assert_type(db.get_property(b"leveldb.stats"), bytes | None)
    assert_type(db.approximate_size(b"a", b"b"), int)
    assert_type(db.approximate_sizes((b"a", b"b"), (b"c", b"d")), list[int])
    assert_type(db.verify(), list[lsmkv.CorruptionError])
    db.check()


def iterating(db: DB) -> None:
    with db.iterator(start=b"a", stop=b"b", include_stop=True, reverse=True) as iterator:
        assert_type(iterator, lsmkv.Iterator)
        assert_type(next(iterator), Any)
        assert_type(iterator.closed, bool)
        iterator.seek(b"k")
    db.iterator(begin=b"a")  # type: ignore[call-arg]
    assert_type(iter(db), lsmkv.Iterator)
    raw = db.raw_iterator(prefix=b"p")
    assert_type(raw, lsmkv.RawIterator)
    raw.seek_to_first()
    assert_type(raw.valid(), bool)
    assert_type(raw.item(), tuple[bytes, bytes])
    assert_type(raw.key(), bytes)
    assert_type(raw.value(), bytes)
    with db.snapshot() as snapshot:
        assert_type(snapshot, lsmkv.Snapshot)
        assert_type(snapshot.get(b"k"), bytes | None)
        assert_type(snapshot.get(b"k", 0), bytes | int)
        assert_type(snapshot.sequence, int)
        assert_type(snapshot.iterator(), lsmkv.Iterator)
    part = db.prefixed_db(b"p")
    assert_type(part, lsmkv.PrefixedDB[DB])
    assert_type(part.get(b"k"), bytes | None)
    assert_type(part.get(b"k", 0), bytes | int)
    assert_type(part.db, DB)
    assert_type(part.prefixed_db(b"q").prefix, bytes)


def writing(db: DB, path: pathlib.Path) -> None:
    db.put(b"k", bytearray(b"v"), sync=True)
    db.put(b"k", "v")  # type: ignore[arg-type]
    db.delete(b"k")
    batch = lsmkv.WriteBatch()
    batch.put(b"k", b"v")
    assert_type(len(batch), int)
    db.write(batch, sync=True)
    with db.write_batch(transaction=False) as bound:
        assert_type(bound, lsmkv.WriteBatch)
        bound.append(batch)
    with db.transaction(sync=True) as transaction:
        assert_type(transaction, lsmkv.Transaction)
        assert_type(transaction.get(b"k"), bytes | None)
        assert_type(transaction.get(b"k", 1), bytes | int)
        transaction.put(b"k", b"v")
        transaction.delete(b"k")
    db.flush()
    db.sync()
    db.compact_range(b"a", None, progress=report)
    db.checkpoint(path, progress=report)
    db.verify(progress=report)


def report(done: int, total: int, phase: str) -> None:
    """A progress callback."""


def looking(db: DB) -> None:
    told = db.explain(b"k")
    assert_type(told, lsmkv.Explanation)
    assert_type(told.found, bool)
    assert_type(told.to_dict(), dict[str, Any])
    assert_type(told.tables[0].filters[0].positions, tuple[int, ...])
    assert_type(told.tables[0].index_key, bytes | None)
    stats = db.stats()
    assert_type(stats, lsmkv.Stats)
    assert_type(stats - stats, lsmkv.Stats)
    assert_type(stats.levels, tuple[lsmkv.LevelStats, ...])
    assert_type(stats.write_amplification, float)
    bloom = lsmkv.new_bloom_filter_policy(10)
    assert_type(bloom, lsmkv.BloomFilterPolicy)
    assert_type(bloom.create_filter([b"k"]), bytes)
    order: lsmkv.Comparator = lsmkv.BytewiseComparator()
    assert_type(order.compare(b"a", b"b"), int)
    assert_type(lsmkv.COMPILED, bool)


def failing(db: DB) -> None:
    try:
        db.get(b"k")
    except lsmkv.LockedError as error:
        assert_type(error.pid, int | None)
    except lsmkv.CorruptionError as error:
        assert_type(error.path, str | None)
        assert_type(error.offset, int | None)
    except lsmkv.Error:
        pass
