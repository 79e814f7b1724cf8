"""Scans over long runs of deletions, in memtables, tables and both: against plyvel.

``tests/stress/model_study.py`` has such runs, too, and compares them with a dict.
"""

from __future__ import annotations

import pathlib
import random
import sys
from types import FrameType

import pytest
from stores import SMALL

import lsmkv
from lsmkv import DB

MOST = 700


def key_of(number: int) -> bytes:
    return b"k%04d" % number


def random_changes(rng: random.Random) -> list[tuple[bytes, bytes | None]]:
    """Values or deletions of many keys in a row, or of a few here and there."""
    start = rng.randrange(MOST)
    stop = min(MOST, start + rng.choice([1, 20, 150, MOST]))
    numbers = list(range(start, stop, rng.choice([1, 1, 1, 2, 13])))
    if rng.random() < 0.3:
        rng.shuffle(numbers)
    if rng.random() < 0.5:
        return [(key_of(number), None) for number in numbers]
    return [(key_of(number), rng.randbytes(rng.choice([3, 40]))) for number in numbers]


@pytest.mark.parametrize("seed", range(6))
def test_the_same_writes_in_plyvel(tmp_path: pathlib.Path, seed: int) -> None:
    plyvel = pytest.importorskip("plyvel")
    rng = random.Random(seed)
    beyond = b"\xff" * 8
    with DB(tmp_path / "ours", create_if_missing=True, **SMALL) as db:
        theirs = plyvel.DB(str(tmp_path / "theirs"), create_if_missing=True, block_size=256)
        try:
            for _ in range(15):
                changes = random_changes(rng)
                flushed = rng.random() < 0.6
                for store in (db, theirs):
                    for key, value in changes:
                        if value is None:
                            store.delete(key)
                        else:
                            store.put(key, value)
                    if flushed:  # which a compaction of no key does, and nothing else
                        store.compact_range(start=beyond, stop=beyond + beyond)
                for reverse in (False, True):
                    bounds = {"start": key_of(rng.randrange(MOST)), "reverse": reverse}
                    assert list(db.iterator(reverse=reverse)) == list(
                        theirs.iterator(reverse=reverse)
                    )
                    assert list(db.iterator(**bounds)) == list(theirs.iterator(**bounds))
        finally:
            theirs.close()


@pytest.mark.parametrize("flushed", [False, True])
def test_a_queue_gives_its_entries_in_order(flushed: bool) -> None:
    """Its first entry is taken again and again, behind all those that were taken before."""
    with DB(":memory:", **SMALL) as db:
        taken, put = 0, 0
        rng = random.Random(1)
        while taken < 600:
            for _ in range(rng.choice([0, 1, 5])):
                db.put(key_of(put), b"%d" % put)
                put += 1
            if flushed and rng.random() < 0.02:
                db.flush()
            with db.iterator() as iterator:
                first = next(iterator, None)
                assert first == (None if taken == put else (key_of(taken), b"%d" % taken))
                if first is not None:
                    db.delete(first[0])
                    taken += 1
                if rng.random() < 0.1:  # the iterator still sees what was deleted
                    iterator.seek_to_start()
                    assert next(iterator, None) == first


def test_an_iterator_beside_a_writer_sees_what_is_deleted_later() -> None:
    """Also where the memtable knows by then that only deletions are left of these keys."""
    with DB(":memory:") as db:
        for number in range(3000):
            db.put(key_of(number), b"v")
        for number in range(0, 3000, 3):
            db.delete(key_of(number))
        expected = [key_of(number) for number in range(3000) if number % 3]
        before = db.snapshot()
        started = db.iterator(include_value=False)
        got = [next(started) for _ in range(5)]
        for number in range(3000):
            db.delete(key_of(number))
        for _ in range(4):
            assert list(db.iterator()) == []
            assert list(db.iterator(reverse=True)) == []
        assert list(before.iterator(include_value=False)) == expected
        assert list(before.iterator(include_value=False, reverse=True)) == expected[::-1]
        assert got + list(started) == expected
        db.put(key_of(1500), b"again")
        db.put(b"k1500a", b"new")
        assert list(db.iterator()) == [(key_of(1500), b"again"), (b"k1500a", b"new")]
        assert list(before.iterator(include_value=False)) == expected


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("place", ["memtable", "tables", "both", "one table"])
def test_signals_and_threads_are_let_in_while_nothing_is_found(place: str, reverse: bool) -> None:
    """Compiled code lets them in where it calls interpreted code, and only there."""
    count = 20_000
    with DB(":memory:", lru_cache_size=64 << 20, write_buffer_size=64 << 20) as db:
        if place != "one table":
            for number in range(count):
                db.put(b"%06d" % number, b"v")
            if place != "memtable":
                db.flush()
        else:  # deletions stay in a table while a deeper level may have such keys
            db.put(b"", b"first")
            db.put(b"9", b"last")
            db.flush()
        for number in range(count):
            db.delete(b"%06d" % number)
        if place in ("tables", "one table"):
            db.flush()
        list(db.iterator(start=b"0", stop=b"1"))  # so that all blocks are in the cache
        assert db._store is not None
        db._store.forget_ranges()
        calls = 0

        def count_calls(frame: FrameType, event: str, argument: object) -> None:
            nonlocal calls
            calls += event == "call" and frame.f_code.co_name == "allow_interrupts"

        iterator = db.iterator(start=b"0", stop=b"1", reverse=reverse)
        sys.setprofile(count_calls)
        try:
            assert next(iterator, None) is None
        finally:
            sys.setprofile(None)
        assert calls >= count // 1024


def test_a_database_is_closed_in_the_middle_of_a_run(tmp_path: pathlib.Path) -> None:
    with DB(tmp_path / "db", create_if_missing=True, **SMALL) as db:
        for number in range(500):
            db.put(key_of(number), b"v" * 100)
        db.flush()
        for number in range(10, 490):
            db.delete(key_of(number))
        db.flush()
        iterator = db.iterator(include_value=False)
        assert [next(iterator) for _ in range(10)] == [key_of(number) for number in range(10)]
    with pytest.raises(lsmkv.ClosedError):
        next(iterator)
