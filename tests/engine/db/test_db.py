"""lsmkv.engine.db.db: reads and writes through the handle, by keys and by batches, and bad
input.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from parsed import docstring_of
from stores import ENTRIES, fill

from lsmkv import DB, WriteBatch


def test_the_table_of_methods_names_each_with_its_class() -> None:
    table = re.search(
        r"^class +its methods\n=.*?\n(.*?)^===", docstring_of("lsmkv.engine.db.db"), re.S | re.M
    )
    assert table is not None
    rows = re.split(r"^``(\w+)``", table[1], flags=re.MULTILINE)[1:]
    listed = {
        name: {*re.findall(r"[a-z_]+", re.sub(r"\(.*?\)|\w+:", "", row, flags=re.DOTALL))}
        for name, row in zip(rows[::2], rows[1::2], strict=True)
    }
    assert listed == {
        made.__name__: {name for name in vars(made) if not name.startswith("_")}
        for made in DB.__mro__
        if made is not object
    }


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
def test_writes_survive_flushes_compactions_and_reopening(path: str, step: str) -> None:
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


def test_the_newest_version_wins_across_levels_and_memtables(db: DB) -> None:
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
    assert len(db._store.pinned) == 0
