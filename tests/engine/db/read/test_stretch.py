"""lsmkv.engine.db.read.stretch: when a stretch of a scan becomes an empty range."""

from __future__ import annotations

import lsmkv
from lsmkv.engine.db.read.stretch import Stretch
from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.format.key_order import Position

LOWER, UPPER = Position(b"b", after=True), Position(b"c", after=False)


def store_of(db: lsmkv.DB) -> Store:
    store = db._store
    assert store is not None
    return store


def long_stretch(store: Store) -> Stretch:
    stretch = Stretch(store, store.empty_ranges, store.versions.last_sequence)
    for read in range(1, 10):
        stretch.note_empty_read()
        assert stretch.is_long is (read >= store.empty_ranges.shortest)
    return stretch


def test_a_long_one_is_a_range_that_saves_its_reads() -> None:
    with lsmkv.DB(":memory:") as db:
        db.put(b"b", b"v")
        store = store_of(db)
        long_stretch(store).end(LOWER, UPPER)
        (found,) = store.empty_ranges.known()
        assert (found.lower, found.upper, found.sequence, found.reads) == (LOWER, UPPER, 1, 9)


def test_puts_before_its_end_split_it_and_puts_before_it_was_long_prevent_it() -> None:
    with lsmkv.DB(":memory:") as db:
        db.put(b"b", b"v")
        store = store_of(db)
        stretch = long_stretch(store)
        db.put(b"bb", b"v")
        stretch.end(LOWER, UPPER)
        assert [found.reads for found in store.empty_ranges.known()] == [4, 8]
        store.forget_ranges()
        late = Stretch(store, store.empty_ranges, 1)
        for _ in range(10):
            late.note_empty_read()
        late.end(LOWER, UPPER)
        assert not store.empty_ranges.known()


def test_one_over_another_view_is_not_noted() -> None:
    """Begun before tables with other keys came into view, or only ended after that."""
    with lsmkv.DB(":memory:") as db:
        store = store_of(db)
        store.empty_ranges.shortest = 3
        stretch = long_stretch(store)
        before = store.empty_ranges
        store.forget_ranges()
        assert store.empty_ranges is not before
        assert store.empty_ranges.shortest == 3
        stretch.end(LOWER, UPPER)
        again = Stretch(store, before, 0)
        for _ in range(10):
            again.note_empty_read()
        again.end(LOWER, UPPER)
        assert not store.empty_ranges.known()
        assert not before.known()
        assert not before.active


def test_what_is_read_after_pairs_is_before_the_next_chunk() -> None:
    with lsmkv.DB(":memory:") as db:
        store = store_of(db)
        stretch = Stretch(store, store.empty_ranges, 0)
        stretch.has_pairs = True
        for _ in range(5):
            stretch.note_empty_read()
        assert not stretch.is_long
        stretch.next_chunk()
        assert (stretch.reads, stretch.is_long, stretch.has_pairs) == (5, True, False)
        stretch.next_chunk()
        assert not stretch.is_long


def test_a_short_one_joins_the_range_that_it_touches() -> None:
    with lsmkv.DB(":memory:") as db:
        store = store_of(db)
        long_stretch(store).end(LOWER, UPPER)
        Stretch(store, store.empty_ranges, 0).end(None, LOWER)
        (found,) = store.empty_ranges.known()
        assert (found.lower, found.upper, found.reads) == (None, UPPER, 9)


def test_one_that_is_given_up_leaves_nothing() -> None:
    with lsmkv.DB(":memory:") as db:
        store = store_of(db)
        stretch = long_stretch(store)
        assert store.empty_ranges.active
        stretch.give_up()
        assert not store.empty_ranges.active
        stretch.give_up()
        stretch.next_chunk()
        assert not stretch.is_long
