"""lsmkv.PrefixedDB: part of a store, under keys without their prefix."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import lsmkv
from lsmkv.errors import ClosedError, IteratorInvalidError

PREFIXES = [b"", b"p", b"p\xff", b"\xff", b"\xff\xff", b"\0", b"p\0"]
INNER = [b"", b"\0", b"a", b"b\xff", b"\xff", b"\xff\xff"]


@pytest.fixture
def db() -> Iterator[lsmkv.DB]:
    with lsmkv.DB(":memory:") as store:
        yield store


def surrounded(db: lsmkv.DB, prefix: bytes) -> dict[bytes, bytes]:
    """Entries with the prefix, and around it; those with it, as they look from within."""
    for other in (b"", b"\0", b"o", b"o\xff", b"p", b"p\xfe", b"q", b"\xfe", b"\xfe\xff", b"\xff"):
        db.put(other, b"outside")
    for number, key in enumerate(INNER):
        db.put(prefix + key, b"%d" % number)
    return {key[len(prefix) :]: value for key, value in db.iterator() if key.startswith(prefix)}


def delete_and_raise(batch: lsmkv.WriteBatch) -> None:
    with batch:
        batch.delete(b"k")
        raise KeyError("on purpose")


def test_keys_have_the_prefix_in_the_store_alone(db: lsmkv.DB) -> None:
    part = db.prefixed_db(b"p:")
    part.put(b"k", b"1")
    part.put(bytearray(b"l"), memoryview(b"2"), sync=True)
    assert list(db) == [(b"p:k", b"1"), (b"p:l", b"2")]
    assert part.get(b"k") == part.get(b"k", fill_cache=False, verify_checksums=False) == b"1"
    assert part.get(b"p:k") is None
    assert part.get(b"x", b"default") == b"default"
    part.delete(b"k")
    assert db.get(b"p:k") is None
    part.delete(b"k", sync=True)
    assert list(part) == [(b"l", b"2")]


def test_membership(db: lsmkv.DB) -> None:
    part = db.prefixed_db(b"p")
    part.put(b"", b"")
    part.put(b"k", b"")
    assert b"" in part
    assert b"k" in part
    assert b"pk" not in part
    with part.snapshot() as snapshot:
        part.delete(b"k")
        assert b"k" in snapshot
        assert b"pk" not in snapshot
    assert b"k" not in part
    with pytest.raises(TypeError):
        "k" in part  # noqa: B015


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("reverse", [False, True])
def test_every_range(db: lsmkv.DB, prefix: bytes, reverse: bool) -> None:
    inside = surrounded(db, prefix)
    part = db.prefixed_db(prefix)
    ends = [None, *INNER]
    with part.snapshot() as snapshot:
        for start, stop in itertools.product(ends, ends):
            for include_start, include_stop in itertools.product((True, False), repeat=2):
                expected = [
                    (key, value)
                    for key, value in sorted(inside.items(), reverse=reverse)
                    if start is None or (key >= start if include_start else key > start)
                    if stop is None or (key <= stop if include_stop else key < stop)
                ]
                arguments: dict[str, Any] = {
                    "start": start,
                    "stop": stop,
                    "include_start": include_start,
                    "include_stop": include_stop,
                    "reverse": reverse,
                }
                assert list(part.iterator(**arguments)) == expected, arguments
                assert list(snapshot.iterator(**arguments)) == expected, arguments
        for within in INNER:
            expected = [
                item
                for item in sorted(inside.items(), reverse=reverse)
                if item[0].startswith(within)
            ]
            assert list(part.iterator(prefix=within, reverse=reverse)) == expected
            assert list(snapshot.iterator(prefix=within, reverse=reverse)) == expected


@pytest.mark.parametrize("prefix", PREFIXES)
def test_moving_stays_within(db: lsmkv.DB, prefix: bytes) -> None:
    inside = sorted(surrounded(db, prefix).items())
    for source in (db.prefixed_db(prefix), db.prefixed_db(prefix).snapshot()):
        it = source.iterator()
        with pytest.raises(StopIteration):
            it.prev()
        for item in inside:
            it.seek(item[0])
            assert next(it) == item
            assert it.prev() == item
        it.seek_to_stop()
        assert [it.prev() for _ in inside] == inside[::-1]
        with pytest.raises(StopIteration):
            it.prev()

        raw = source.raw_iterator()
        assert not raw.valid()
        raw.seek_to_first()
        for item in inside:
            assert raw.item() == item
            raw.next()
        assert not raw.valid()
        raw.seek_to_last()
        for item in inside[::-1]:
            assert (raw.key(), raw.value()) == item
            raw.prev()
        with pytest.raises(IteratorInvalidError):
            raw.prev()
        raw.seek(b"a")
        assert raw.key() == b"a"


def test_halves_of_entries(db: lsmkv.DB) -> None:
    part = db.prefixed_db(b"p")
    part.put(b"k", b"v")
    assert list(part.iterator(include_value=False)) == [b"k"]
    assert list(part.iterator(include_key=False)) == [b"v"]
    assert list(part.iterator(include_key=False, include_value=False)) == [None]
    assert part.iterator(prefix=b"k").prev is not None
    raw = part.raw_iterator(prefix=b"k", verify_checksums=False, fill_cache=False)
    raw.seek_to_first()
    assert raw.item() == (b"k", b"v")
    raw = part.snapshot().raw_iterator(prefix=b"l")
    raw.seek_to_first()
    assert not raw.valid()


def test_batches(db: lsmkv.DB) -> None:
    part = db.prefixed_db(b"p")
    part.put(b"old", b"")
    with part.write_batch() as batch:
        batch.put(b"k", b"1")
        batch.delete(b"old")
        assert isinstance(batch, lsmkv.WriteBatch)
        assert len(batch) == 2
    assert list(db) == [(b"pk", b"1")]
    with pytest.raises(KeyError):
        delete_and_raise(part.write_batch())
    assert b"k" in part
    with pytest.raises(KeyError):
        delete_and_raise(part.write_batch(transaction=False, sync=True))
    assert b"k" not in part


def test_batches_append_keys_as_they_are_in_the_store(db: lsmkv.DB) -> None:
    one = db.prefixed_db(b"1").write_batch()
    one.put(b"k", b"one")
    two = db.prefixed_db(b"2").write_batch()
    two.put(b"k", b"two")
    two.append(one)
    two.write()
    assert list(db) == [(b"1k", b"one"), (b"2k", b"two")]
    db.write(one)
    for wrong in ("k", 1, None):
        with pytest.raises(TypeError):
            one.put(wrong, b"")  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            one.delete(wrong)  # type: ignore[arg-type]
    assert len(one) == 1


def test_snapshots(db: lsmkv.DB) -> None:
    part = db.prefixed_db(b"p")
    part.put(b"k", b"old")
    snapshot = part.snapshot()
    part.put(b"k", b"new")
    db.put(b"k", b"outside")
    assert isinstance(snapshot, lsmkv.Snapshot)
    assert snapshot.get(b"k") == b"old"
    assert snapshot.get(b"pk", b"default", fill_cache=False) == b"default"
    assert list(snapshot) == [(b"k", b"old")]
    assert list(snapshot.iterator(include_value=False)) == [b"k"]
    with db.snapshot() as later:
        assert snapshot.sequence < later.sequence
    it = snapshot.iterator()
    snapshot.release()
    assert snapshot.closed
    assert list(it) == [(b"k", b"old")]  # outlives its snapshot
    snapshot.close()
    for use in (lambda: snapshot.get(b"k"), snapshot.iterator, snapshot.raw_iterator):
        with pytest.raises(ClosedError):
            use()


def test_snapshots_let_go(db: lsmkv.DB) -> None:
    store = db._store
    assert store is not None
    with db.prefixed_db(b"p").snapshot():
        assert len(store.pinned) == 1
    assert len(store.pinned) == 0
    db.prefixed_db(b"p").snapshot()
    gc.collect()
    assert len(store.pinned) == 0


def test_nested(db: lsmkv.DB) -> None:
    outer = db.prefixed_db(b"a")
    inner = outer.prefixed_db(bytearray(b"b"))
    inner.put(b"c", b"1")
    assert list(db) == [(b"abc", b"1")]
    assert list(outer) == [(b"bc", b"1")]
    assert list(inner) == [(b"c", b"1")]
    assert (outer.prefix, inner.prefix) == (b"a", b"ab")
    assert outer.db is inner.db is db
    assert list(db.prefixed_db(b"").prefixed_db(b"a")) == list(outer)


def test_attributes_are_for_reading(db: lsmkv.DB) -> None:
    part = db.prefixed_db(b"p")
    for name in ("db", "prefix"):
        with pytest.raises(AttributeError):
            setattr(part, name, None)
    assert weakref.ref(part)() is part
    assert repr(part) == "<lsmkv.PrefixedDB b'p' of <lsmkv.DB ':memory:'>>"


def test_wrong_arguments(db: lsmkv.DB) -> None:
    part = db.prefixed_db(b"p")
    for wrong in ("k", 1, None):
        for use in (part.get, part.delete, part.prefixed_db, db.prefixed_db, part.iterator().seek):
            with pytest.raises(TypeError):
                use(wrong)  # type: ignore[operator]
        for put in ((wrong, b"v"), (b"k", wrong)):
            with pytest.raises(TypeError):
                part.put(*put)  # type: ignore[arg-type]
    for name in ("start", "stop", "prefix"):
        with pytest.raises(TypeError):
            part.iterator(**{name: "k"})  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        part.iterator(unknown=1)  # type: ignore[call-arg]
    assert list(db) == []


def test_the_store_is_closed(db: lsmkv.DB) -> None:
    part = db.prefixed_db(b"p")
    it, snapshot, batch = part.iterator(), part.snapshot(), part.write_batch()
    db.close()
    for use in (
        lambda: part.get(b"k"),
        lambda: part.put(b"k", b"v"),
        lambda: part.delete(b"k"),
        lambda: b"k" in part,
        lambda: next(it),
        lambda: snapshot.get(b"k"),
        lambda: iter(part),
        part.iterator,
        part.raw_iterator,
        part.snapshot,
        part.write_batch,
    ):
        with pytest.raises(ClosedError):
            use()
    batch.put(b"k", b"v")
    with pytest.raises(ClosedError):
        batch.write()


def test_an_order_of_ones_own(db: lsmkv.DB) -> None:
    """Without a prefix the order does not matter; with one, gets and writes do not mind it."""
    with lsmkv.DB(":memory:", comparator=lsmkv.ReverseBytewiseComparator()) as backwards:
        backwards.put(b"pa", b"1")
        backwards.put(b"pb", b"2")
        assert list(backwards.prefixed_db(b"")) == [(b"pb", b"2"), (b"pa", b"1")]
        part = backwards.prefixed_db(b"p")
        part.put(b"c", b"3")
        assert part.get(b"a") == b"1"
        assert backwards.get(b"pc") == b"3"


def test_it_may_be_derived_from(db: lsmkv.DB) -> None:
    class Table(lsmkv.PrefixedDB[lsmkv.DB]):
        def count(self) -> int:
            return sum(1 for _ in self)

    table = Table(db=db, prefix=b"t")
    table.put(b"1", b"")
    within = table.prefixed_db(b"1")
    assert isinstance(within, Table)
    assert (table.count(), within.count()) == (1, 1)


def test_a_part_in_reverse_order_has_its_keys(db: lsmkv.DB) -> None:
    with lsmkv.DB(":memory:", comparator=lsmkv.ReverseBytewiseComparator()) as reverse:
        for key in (b"o", b"p", b"pa", b"pb", b"p\xff", b"q"):
            reverse.put(key, b"")
        part = reverse.prefixed_db(b"p")
        keys = [b"\xff", b"b", b"a", b""]
        for view in (part, part.snapshot()):
            assert list(view.iterator(include_value=False)) == keys
            assert list(view.iterator(include_value=False, reverse=True)) == keys[::-1]
            assert list(view.iterator(start=b"b", include_value=False)) == [b"b", b"a", b""]
            assert list(view.iterator(stop=b"a", include_value=False)) == [b"\xff", b"b"]


def test_a_part_of_a_part_takes_bounds_within_a_prefix(db: lsmkv.DB) -> None:
    part = db.prefixed_db(b"p")
    for key in (b"a1", b"a2", b"a3", b"b2"):
        part.put(key, b"")
    found = part.iterator(prefix=b"a", start=b"a2", limit=1, include_value=False)
    assert list(found) == [b"a2"]
    assert list(part.iterator(prefix=b"a", stop=b"a3", include_value=False)) == [b"a1", b"a2"]
