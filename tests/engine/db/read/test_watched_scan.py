"""Scans that step over empty ranges: what they read again, and that they miss nothing."""

from __future__ import annotations

import random
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from stores import SMALL

import lsmkv
from lsmkv import DB
from lsmkv.engine.db.read.scan import Bounds, Scan
from lsmkv.engine.db.read.watched_scan import WatchedScan
from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.format.keys import MAX_SEQUENCE

COUNT = 5000


def key_of(number: int) -> bytes:
    return b"k%05d" % number


def store_of(db: lsmkv.DB, shortest: int | None = None) -> Store:
    store = db._store
    assert store is not None
    if shortest is not None:
        store.empty_ranges.shortest = shortest
    return store


def deleted(place: str, **options: Any) -> DB:
    """A store in which all keys but the first and the last were deleted."""
    db = DB(":memory:", write_buffer_size=8 << 20, **{**SMALL, **options})
    for number in range(COUNT):
        db.put(key_of(number), bytes(20))
    if place != "memtable":
        db.flush()
    for number in range(1, COUNT - 1):
        db.delete(key_of(number))
    if place == "tables":
        db.flush()
    return db


def blocks_asked(db: DB) -> int:
    levels = db.stats().levels
    return sum(level.blocks_read + level.block_cache_hits for level in levels)


@pytest.mark.parametrize("comparator", [None, "reverse"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("place", ["memtable", "tables", "both"])
def test_a_second_scan_reads_little(place: str, reverse: bool, comparator: str | None) -> None:
    options = {} if comparator is None else {"comparator": lsmkv.ReverseBytewiseComparator()}
    with deleted(place, **options) as db:
        ranges = store_of(db).empty_ranges
        expected = [(key_of(number), bytes(20)) for number in (0, COUNT - 1)]
        if reverse is (comparator is None):
            expected.reverse()
        for turn in range(3):
            before = blocks_asked(db)
            assert list(db.iterator(reverse=reverse)) == expected
            spent = blocks_asked(db) - before
            if turn > 0:
                assert spent <= (0 if place == "memtable" else 12)
            elif place != "memtable":
                assert spent > 100
            (found,) = ranges.known()
            assert found.reads >= ranges.shortest
        assert list(db.iterator(reverse=not reverse)) == expected[::-1]
        db.compact_range()
        assert list(db.iterator(reverse=reverse)) == expected
        db.put(key_of(77), b"again")
        assert len(list(db.iterator(reverse=reverse))) == 3


@pytest.mark.parametrize("reverse", [False, True])
def test_a_store_in_which_nothing_is_left(reverse: bool) -> None:
    with deleted("both") as db:
        db.delete(key_of(0))
        db.delete(key_of(COUNT - 1))
        for _ in range(3):
            assert list(db.iterator(reverse=reverse)) == []
        (found,) = store_of(db).empty_ranges.known()
        assert (found.lower, found.upper) == (None, None)
        prefixed = list(db.iterator(prefix=b"k", reverse=reverse))
        assert prefixed == []
        db.put(b"k", b"v")
        assert list(db.iterator(reverse=reverse)) == [(b"k", b"v")]


def test_a_queue_joins_its_ranges() -> None:
    """Its head is taken again and again; what was taken is one range, and little is read."""
    with DB(":memory:", **SMALL) as db:
        ranges = store_of(db).empty_ranges
        for number in range(COUNT):
            db.put(key_of(number), bytes(20))
        db.flush()
        most = 0
        for number in range(COUNT):
            before = blocks_asked(db)
            with db.iterator() as iterator:
                key, _ = next(iterator)
            most = max(most, blocks_asked(db) - before)
            assert key == key_of(number)
            db.delete(key)
            if number % 500 == 499:
                db.flush()
                list(db.iterator(start=key_of(number - 5)))  # which joins what it passes
        assert len(ranges.known()) == 1
        assert most < 40


def test_a_transaction_sees_its_own_puts_there() -> None:
    with deleted("both") as db:
        list(db)
        assert store_of(db).empty_ranges.known()
        with db.transaction() as transaction:
            transaction.put(key_of(7), b"mine")
            assert [key for key, _ in transaction.iterator()][1] == key_of(7)
            assert len(list(db)) == 2
        assert len(list(db)) == 3


def test_ingested_tables_are_seen(tmp_path: Path) -> None:
    with deleted("tables") as db:
        list(db)
        ranges = store_of(db).empty_ranges
        assert ranges.known()
        with lsmkv.TableWriter(tmp_path / "one.ldb") as table:
            table.add(key_of(7), b"v")
        db.ingest([tmp_path / "one.ldb"])
        assert store_of(db).empty_ranges is not ranges
        assert not store_of(db).empty_ranges.active
        assert len(list(db)) == 3


def test_a_snapshot_from_before_sees_what_was_deleted() -> None:
    with DB(":memory:", **SMALL) as db:
        for number in range(COUNT):
            db.put(key_of(number), b"")
        before = db.snapshot()
        open_one = db.iterator(include_value=False)
        some = [next(open_one) for _ in range(3)]
        for number in range(COUNT):
            db.delete(key_of(number))
        after = db.snapshot()
        for _ in range(2):
            assert list(db) == list(after) == []
        db.put(key_of(5), b"")
        everything = [key_of(number) for number in range(COUNT)]
        assert list(before.iterator(include_value=False)) == everything
        assert some + list(open_one) == everything
        assert list(after) == []
        assert list(db) == [(key_of(5), b"")]
        before.close()
        after.close()


def test_an_error_on_the_way_leaves_no_search(tmp_path: Path) -> None:
    with deleted("tables") as db:
        ranges = store_of(db).empty_ranges
        seen: list[bool] = []

        def interrupt(*_: object) -> None:
            seen.append(bool(ranges._searches))
            if len(seen) == 3:
                raise KeyboardInterrupt

        sys.setprofile(
            lambda frame, event, _: (
                interrupt()
                if event == "call" and frame.f_code.co_name == "allow_interrupts"
                else None
            )
        )
        try:
            with pytest.raises(KeyboardInterrupt):
                list(db)
        finally:
            sys.setprofile(None)
        assert seen[-1]
        assert not ranges._searches
        assert not ranges.active
        assert len(list(db)) == 2


def test_a_scan_in_parts_has_one_share_of_the_cache() -> None:
    with DB(":memory:", **SMALL | {"write_buffer_size": 8 << 20, "lru_cache_size": 400_000}) as db:
        for number in range(20_000):
            db.put(key_of(number), bytes(100))
        db.flush()
        for begin in range(1000, 20_000, 1000):
            for number in range(begin, begin + 300):
                db.delete(key_of(number))
        db.flush()
        cache = store_of(db).options.block_cache
        assert cache is not None
        list(db.iterator(fill_cache=False))
        assert len(store_of(db).empty_ranges.known()) > 10
        before = cache.usage
        list(db)
        assert cache.usage - before < 120_000


def test_a_level_that_finds_nothing_behind_pairs_ends_the_chunk() -> None:
    """So that the first scan learns what is empty, and only that."""
    with DB(":memory:", write_buffer_size=8 << 20, **SMALL) as db:
        db.put(b"m", b"")
        for number in range(COUNT):
            db.put(key_of(number), bytes(20))
        db.put(b"x", b"")
        db.flush()
        for number in range(COUNT):
            db.delete(key_of(number))
        db.flush()
        for number in range(20):
            db.put(b"a%02d" % number, b"")
        for _ in range(2):
            assert len(list(db)) == 22
            (found,) = store_of(db).empty_ranges.known()
            assert found.lower is not None
            assert found.upper is not None
            assert (found.lower.user_key, found.upper.user_key) == (b"a19", b"m")
        before = blocks_asked(db)
        assert len(list(db)) == 22
        assert blocks_asked(db) - before < 12


def test_a_stretch_that_begins_in_the_middle_of_a_chunk_is_found() -> None:
    with DB(":memory:", write_buffer_size=8 << 20, **SMALL) as db:
        for number in range(COUNT):
            db.put(key_of(number), bytes(20))
        db.flush()
        for number in range(700, COUNT - 1):
            db.delete(key_of(number))
        assert len(list(db)) == 701
        found = store_of(db).empty_ranges.known()[-1]
        assert found.lower is not None
        assert (found.lower.user_key, found.lower.after) == (key_of(699), True)


def test_a_reader_beside_a_writer_sees_what_is_put_there(tmp_path: Path) -> None:
    """By its log, by its tables, and where everything has to be read again."""
    writer = DB(tmp_path / "store", create_if_missing=True, **SMALL)
    for number in range(COUNT):
        writer.put(key_of(number), b"")
    for number in range(COUNT):
        writer.delete(key_of(number))
    expected: list[tuple[bytes, bytes]] = []
    with DB(tmp_path / "store", read_only=True) as reader:
        for turn, number in enumerate((7, 4000, 80, 300)):
            assert list(reader) == expected
            assert store_of(reader).empty_ranges.known()
            if turn == 2:
                writer.close()
                writer = DB(tmp_path / "store", **SMALL)
            writer.put(key_of(number), b"v")
            if turn in (1, 3):
                writer.flush()
            expected = sorted([*expected, (key_of(number), b"v")])
            reader.refresh()
            assert list(reader) == expected
    writer.close()


def test_a_range_deletion_finds_what_the_tables_that_it_drops_have_hidden() -> None:
    """Values below deletions in tables that go as a whole."""
    with DB(":memory:", write_buffer_size=8 << 20, **SMALL) as db:
        db.put(key_of(0), b"")
        db.put(key_of(COUNT), b"")
        for number in range(100, 900):
            db.put(key_of(number), bytes(20))
        db.flush()
        for number in range(100, 900):
            db.delete(key_of(number))
        db.flush()
        assert len(list(db)) == 2
        assert store_of(db).empty_ranges.known()
        db.delete_range(key_of(50), key_of(1000))
        assert len(list(db)) == 2
        db.check()


def test_a_view_that_is_not_the_stores_has_no_ranges() -> None:
    """Such as that of a nested call, which may read what the store does not show yet."""
    with deleted("memtable") as db:
        store = store_of(db)
        for made in (store.read_view(), store._nested_read_view(MAX_SEQUENCE, None)):
            scan = Scan(store, made, Bounds(None, None), True)
            assert isinstance(scan.forward(None), WatchedScan) is (made.ranges is not None)
            made.release()


@pytest.mark.parametrize("seed", range(8))
def test_random_writes_and_scans(seed: int) -> None:
    """Every scan shows what a dict has, at its snapshot too."""
    rng = random.Random(seed)
    options = {"comparator": lsmkv.ReverseBytewiseComparator()} if seed % 4 == 3 else {}
    with DB(":memory:", write_buffer_size=32 << 10, **SMALL, **options) as db:
        ranges = store_of(db, shortest=1).empty_ranges
        held: dict[bytes, bytes] = {}
        views: list[tuple[Any, dict[bytes, bytes]]] = []
        most = 0
        for _ in range(120):
            begin = rng.randrange(600)
            numbers = range(begin, min(600, begin + rng.choice([1, 1, 10, 200])))
            if rng.random() < 0.6:
                for number in numbers:
                    db.delete(key_of(number))
                    held.pop(key_of(number), None)
            else:
                with db.write_batch() as batch:
                    for number in numbers:
                        value = rng.randbytes(9)
                        batch.put(key_of(number), value)
                        held[key_of(number)] = value
            if rng.random() < 0.1:
                db.flush()
            if rng.random() < 0.05:
                db.compact_range()
            if rng.random() < 0.2:
                views.append((db.snapshot(), dict(held)))
                if len(views) > 3:
                    views.pop(rng.randrange(3))[0].close()
            for view, expected in [(db, held), *views]:
                if rng.random() < 0.1:  # the wrong way round
                    low, high = sorted(rng.sample(range(600), 2))
                    if options:
                        low, high = high, low
                    assert not list(view.iterator(start=key_of(high), stop=key_of(low)))
                start, stop = sorted((key_of(rng.randrange(600)), key_of(rng.randrange(600))))
                reverse = rng.random() < 0.5
                backward = reverse is not bool(options)
                if options:
                    start, stop = stop, start
                bounds = {} if rng.random() < 0.4 else {"start": start, "stop": stop}
                wanted = sorted(
                    (
                        (key, value)
                        for key, value in expected.items()
                        if not bounds or min(start, stop) <= key <= max(start, stop)
                    ),
                    reverse=backward,
                )
                if bounds:
                    bounds["include_stop"] = True
                assert list(view.iterator(reverse=reverse, **bounds)) == wanted
            raw = db.raw_iterator()
            place = key_of(rng.randrange(600))
            ordered = sorted(held, reverse=bool(options))
            raw.seek(place)
            later = [key for key in ordered if (key <= place if options else key >= place)]
            assert (raw.key() if raw.valid() else None) == (later[0] if later else None)
            if raw.valid():
                raw.prev()
                sooner = ordered[: len(ordered) - len(later)]
                assert (raw.key() if raw.valid() else None) == (sooner[-1] if sooner else None)
            raw.close()
            most = max(most, len(ranges.known()))
        assert most > 1
        assert not ranges._searches


@pytest.mark.parametrize("kind", ["owner", "member"])
def test_a_queue_of_several_threads_loses_nothing(kind: str, tmp_path: Path) -> None:
    """Some put entries with priorities, so before others, and some take the first."""
    with lsmkv.SharedDB(tmp_path / "store", create_if_missing=True) as owner:
        member = lsmkv.SharedDB(tmp_path / "store") if kind == "member" else None
        db = owner if member is None else member
        for handle in (owner, db):
            store_of(handle, shortest=1)  # type: ignore[arg-type]
        producers = 3
        each = 300
        done = threading.Barrier(producers + 1)
        failures: list[BaseException] = []

        def put(number: int) -> None:
            rng = random.Random(number)
            for turn in range(each):
                owner.put(b"%02d-%d-%d" % (rng.randrange(100), number, turn), b"v")
            done.wait()

        taken: set[bytes] = set()
        finished = False

        def take() -> None:
            try:
                while True:
                    last = finished
                    with db.iterator(include_value=False) as iterator:
                        key = next(iterator, None)
                    if key is None:
                        if last:
                            return
                        continue
                    assert key not in taken
                    db.delete(key)
                    taken.add(key)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=put, args=(number,)) for number in range(producers)]
        taker = threading.Thread(target=take)
        for thread in [*threads, taker]:
            thread.start()
        done.wait()
        finished = True
        for thread in [*threads, taker]:
            thread.join()
        assert not failures
        assert len(taken) == producers * each
        if member is not None:
            member.close()
