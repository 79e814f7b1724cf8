"""``repr`` of the handles: short, of what they are, and never in the way."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator
from typing import Any

import pytest

import lsmkv
import lsmkv.aio
import lsmkv.plyvel


@pytest.fixture
def db() -> Iterator[lsmkv.DB]:
    with lsmkv.DB(":memory:") as db:
        for key in (b"a", b"b", b"c"):
            db.put(key, b"v")
        yield db


def test_a_snapshot(db: lsmkv.DB) -> None:
    snapshot = db.snapshot()
    assert repr(snapshot) == "<lsmkv.Snapshot of ':memory:' at write 3>"
    snapshot.close()
    assert repr(snapshot) == "<lsmkv.Snapshot at write 3 (closed)>"
    part = db.prefixed_db(b"p").snapshot()
    assert repr(part) == (
        "<lsmkv.PrefixedSnapshot b'p' of <lsmkv.Snapshot of ':memory:' at write 3>>"
    )
    db.close()
    assert repr(part).endswith(" at write 3 (closed)>>")


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        ({}, "all keys"),
        ({"start": b"a"}, "b'a' <= key"),
        ({"stop": b"c"}, "key < b'c'"),
        ({"prefix": b"b"}, "b'b' <= key < b'c'"),
        (
            {"start": b"a", "stop": b"c", "include_start": False, "include_stop": True},
            "b'a' < key <= b'c'",
        ),
        ({"start": bytes(1000)}, f"{bytes(8)!r}... <= key"),
    ],
)
def test_an_iterator(db: lsmkv.DB, arguments: Any, keys: str) -> None:
    iterator = db.iterator(**arguments)
    assert repr(iterator) == f"<lsmkv.Iterator over {keys} at write 3>"
    list(iterator)
    assert repr(iterator) == f"<lsmkv.Iterator over {keys} at write 3>"
    iterator.close()
    assert repr(iterator) == f"<lsmkv.Iterator over {keys} at write 3 (closed)>"
    backwards = db.iterator(reverse=True, **arguments)
    assert repr(backwards) == f"<lsmkv.Iterator over {keys} at write 3, reverse>"
    db.close()
    assert repr(backwards) == f"<lsmkv.Iterator over {keys} at write 3, reverse (closed)>"


def test_a_raw_iterator(db: lsmkv.DB) -> None:
    raw = db.raw_iterator()
    assert repr(raw) == "<lsmkv.RawIterator over all keys at write 3, on no entry>"
    raw.seek_to_last()
    assert repr(raw) == "<lsmkv.RawIterator over all keys at write 3, on b'c'>"
    raw.close()
    assert repr(raw) == "<lsmkv.RawIterator over all keys at write 3, on no entry (closed)>"


def test_a_batch(db: lsmkv.DB) -> None:
    batch = lsmkv.WriteBatch()
    assert repr(batch) == "<lsmkv.WriteBatch of 0 operations>"
    batch.put(b"k", b"v")
    assert repr(batch) == "<lsmkv.WriteBatch of 1 operation>"
    batch = db.write_batch()
    assert repr(batch) == "<lsmkv.WriteBatch of 0 operations for <lsmkv.DB ':memory:'>>"
    db.close()
    assert repr(batch) == "<lsmkv.WriteBatch of 0 operations for <lsmkv.DB ':memory:' (closed)>>"


def test_a_transaction(db: lsmkv.DB) -> None:
    transaction = db.transaction()
    transaction.put(b"a", b"w")
    assert repr(transaction) == "<lsmkv.Transaction of 1 operation since write 3>"
    transaction.rollback()
    assert repr(transaction) == "<lsmkv.Transaction (over)>"


def test_a_part(db: lsmkv.DB) -> None:
    part = db.prefixed_db(b"p")
    assert repr(part) == "<lsmkv.PrefixedDB b'p' of <lsmkv.DB ':memory:'>>"
    db.close()
    assert repr(part) == "<lsmkv.PrefixedDB b'p' of <lsmkv.DB ':memory:' (closed)>>"


def test_nothing_is_read(db: lsmkv.DB) -> None:
    db.flush()
    before = db.stats()
    handles = [db.snapshot(), db.raw_iterator(), db.prefixed_db(b"p").snapshot(), db.transaction()]
    handles.append(db.iterator(start=b"b"))
    assert all(repr(handle).startswith("<lsmkv.") for handle in handles)
    cost = db.stats() - before
    assert (cost.blocks_read, cost.block_cache_hits, cost.tables_opened) == (0, 0, 0)


def test_those_of_the_drop_in() -> None:
    with lsmkv.plyvel.DB(":memory:") as db:
        whole = repr(db)
        assert repr(db.snapshot()) == "<lsmkv.Snapshot of ':memory:' at write 0>"
        assert repr(db.write_batch()) == f"<lsmkv.WriteBatch of 0 operations for {whole}>"
        assert repr(db.prefixed_db(b"p")) == f"<lsmkv.PrefixedDB b'p' of {whole}>"


async def test_a_store_open_for_reading_only_says_so(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "db")
    lsmkv.DB(path, create_if_missing=True).close()
    with lsmkv.DB(path, read_only=True) as reader:
        assert repr(reader) == f"<lsmkv.DB {path!r} (read-only)>"
    assert repr(reader) == f"<lsmkv.DB {path!r} (closed)>"
    async with lsmkv.aio.open_db(path, read_only=True) as awaited:
        assert repr(awaited) == f"<lsmkv.aio.DB {path!r} (read-only)>"


def test_statistics_are_one_line(db: lsmkv.DB) -> None:
    db.get(b"a")
    db.flush()
    assert re.fullmatch(r"<lsmkv.Stats: 1 Get, 3 writes, 1 table of \d+ B>", repr(db.stats()))
    assert "\n" in str(db.stats())
