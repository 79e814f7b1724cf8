"""lsmkv.engine.db.read.base_iterator: what both kinds of iterators promise while open and once
closed.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator

import pytest
from stores import pinned

import lsmkv
from lsmkv import DB

AnyIterator = lsmkv.Iterator | lsmkv.RawIterator

KINDS: dict[str, Callable[[DB], AnyIterator]] = {
    "iterator": lambda db: db.iterator(),
    "raw iterator": lambda db: db.raw_iterator(),
}


@pytest.fixture(params=list(KINDS))
def opens(request: pytest.FixtureRequest) -> Callable[[DB], AnyIterator]:
    return KINDS[request.param]


@pytest.fixture
def db() -> Iterator[DB]:
    with DB(":memory:") as db:
        for key in (b"p1", b"p2", b"q"):
            db.put(key, b"v")
        yield db


def test_an_open_iterator_pins_its_sequence(db: DB, opens: Callable[[DB], AnyIterator]) -> None:
    before = db.stats().iterators
    first, second = opens(db), opens(db)
    assert db.stats().iterators - before == 2
    db.put(b"later", b"v")
    assert pinned(db) == 2
    assert not first.closed
    first.close()
    first.close()
    assert first.closed
    assert pinned(db) == 1
    del second
    gc.collect()
    assert pinned(db) == 0


def test_a_with_block_closes_also_when_it_raises(
    db: DB, opens: Callable[[DB], AnyIterator]
) -> None:
    iterator = opens(db)

    def block() -> None:
        with iterator as entered:
            assert entered is iterator
            raise LookupError("of the block")

    with pytest.raises(LookupError, match="of the block"):
        block()
    assert iterator.closed
    assert pinned(db) == 0


def test_an_error_says_whether_the_iterator_or_its_store_is_closed(
    db: DB, opens: Callable[[DB], AnyIterator]
) -> None:
    one, other = opens(db), opens(db)
    one.close()
    with pytest.raises(lsmkv.ClosedError, match="the iterator is closed"):
        one.seek(b"p")
    db.close()
    assert other.closed
    with pytest.raises(lsmkv.ClosedError, match="the database of this iterator is closed"):
        other.seek(b"p")


def test_an_iterator_keeps_its_store_open(opens: Callable[[DB], AnyIterator]) -> None:
    db = DB(":memory:")
    db.put(b"k", b"v")
    store = weakref.ref(db)
    iterator = opens(db)
    del db
    gc.collect()
    held = store()
    assert held is not None
    assert not iterator.closed
    held.close()


def test_a_prefix_is_hidden_from_keys_and_targets(db: DB) -> None:
    plain = db.iterator(prefix=b"p")
    plain.hide_prefix(b"p")
    plain.seek(b"2")
    assert list(plain) == [(b"2", b"v")]
    raw = db.raw_iterator(prefix=b"p")
    raw.hide_prefix(b"p")
    raw.seek(b"2")
    assert raw.key() == b"2"
    raw.next()
    assert not raw.valid()
