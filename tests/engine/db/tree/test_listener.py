"""lsmkv.engine.db.tree.listener: every operation is reported, with what it found; and is what it
was.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from observing import kinds, traced

import lsmkv
import lsmkv.aio
from lsmkv import DB, CorruptionError, WriteBatch


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "trace"


def test_gets(trace: Path) -> None:
    with DB(":memory:", trace=trace) as db:
        db.put(b"k", b"12345")
        with db.snapshot() as snapshot:
            db.delete(b"k")
            assert snapshot.get(b"k") == b"12345"
        assert db.get(b"k") is None
        assert b"k" not in db
        assert db.get(bytearray(b"k"), b"default") == b"default"
        assert db.multi_get([b"b", b"a"]) == [None, None]
        assert db.prefixed_db(b"user:").get(b"ann") is None
    assert kinds(trace) == [
        ("put", b"k", 5),
        ("delete", b"k", None),
        ("get", b"k", 5),
        ("get", b"k", None),
        ("get", b"k", None),
        ("get", b"k", None),
        ("get", b"a", None),
        ("get", b"b", None),
        ("get", b"user:ann", None),
    ]


def test_batches(trace: Path) -> None:
    with DB(":memory:", trace=trace) as db:
        with db.write_batch() as batch:
            batch.put(b"a", b"1")
            batch.delete(b"bb")
        single = WriteBatch()
        single.delete(b"c")
        db.write(single, sync=True)
        db.write(WriteBatch())
        with db.transaction() as transaction:
            transaction.put(b"a", b"2")
            transaction.put(b"b", b"3")
    found = traced(trace)
    assert [(one.operation, one.key, one.size, one.operations) for one in found] == [
        ("write", b"a", 4, 2),
        ("delete", b"c", None, 1),
        ("write", b"a", 4, 2),
    ]


def test_a_lost_transaction_is_not_noted(trace: Path) -> None:
    with DB(":memory:", trace=trace) as db:
        transaction = db.transaction()
        transaction.put(b"k", b"mine")
        db.put(b"k", b"theirs")
        with pytest.raises(lsmkv.ConflictError):
            transaction.commit()
        assert db.get(b"k") == b"theirs"
    assert kinds(trace) == [("put", b"k", 6), ("get", b"k", 6)]


def test_what_raises_is_not_noted(tmp_path: Path, trace: Path) -> None:
    store = tmp_path / "store"
    with DB(store, create_if_missing=True, compression=None) as db:
        db.put(b"k", b"value")
        db.flush()
        (table,) = db.tables()
    content = (store / table.name).read_bytes()
    (store / table.name).write_bytes(content.replace(b"value", b"wrong"))
    with DB(store, read_only=True, trace=trace) as db, pytest.raises(CorruptionError):
        db.get(b"k")
    assert kinds(trace) == []


def test_times_rise_and_durations_fit_in_between(trace: Path) -> None:
    with DB(":memory:", trace=trace) as db:
        for n in range(100):
            db.get(b"%d" % n)
    found = traced(trace)
    for before, after in itertools.pairwise(found):
        assert before.start + before.duration / 1000 <= after.start + 1
        assert 0 < before.duration < 1_000_000_000


def test_a_read_only_store_is_traced_and_after_a_refresh_too(tmp_path: Path, trace: Path) -> None:
    store = tmp_path / "store"
    with (
        DB(store, create_if_missing=True) as writer,
        DB(store, read_only=True, trace=trace) as reader,
    ):
        writer.put(b"k", b"v")
        assert reader.get(b"k") is None
        reader.refresh()
        assert reader.get(b"k") == b"v"
    assert kinds(trace) == [("get", b"k", None), ("get", b"k", 1)]


def test_classes_of_users_work_as_before(trace: Path) -> None:
    class Counting(DB):
        puts = 0

        def put(self, key: object, value: object, **options: bool) -> None:  # type: ignore[override]
            self.puts += 1
            super().put(key, value, **options)  # type: ignore[arg-type]

    with Counting(":memory:", trace=trace, publish_stats=True) as db:
        assert isinstance(db, DB)
        db.put(b"k", b"v")
        assert (db.puts, type(db).__name__) == (1, "Counting")
        assert isinstance(db.iterator(), lsmkv.Iterator)
        assert isinstance(db.raw_iterator(), lsmkv.RawIterator)
    assert kinds(trace) == [("put", b"k", 1)]


def test_stats_count_what_they_counted(trace: Path) -> None:
    def counts(**options: object) -> lsmkv.Stats:
        with DB(":memory:", **options) as db:  # type: ignore[arg-type]
            for n in range(100):
                db.put(b"%d" % n, b"v" * n)
            db.flush()
            for n in range(200):
                db.get(b"%d" % n)
            assert len(list(db.iterator(prefix=b"1"))) == 11
            return db.stats()

    plain, observed = counts(), counts(trace=trace, publish_stats=True)
    assert (plain.gets, plain.blocks_read, plain.filters_asked, plain.iterators) == (
        observed.gets,
        observed.blocks_read,
        observed.filters_asked,
        observed.iterators,
    )
    assert plain.log_bytes == observed.log_bytes
