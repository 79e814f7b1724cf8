"""What ``check`` finds, and what it puts right."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from still_clocks import StillClock

import lsmkv
from lsmkv.cache.atomic_steps import Steps
from lsmkv.cache.counters import BASE, Counters
from lsmkv.cache.keys import chunk_key, head_key

DB = lsmkv.DB
MIB = 1 << 20


@pytest.fixture
def filled(clock: StillClock) -> Iterator[lsmkv.Cache]:
    with lsmkv.Cache(":memory:", shared=False, clock=clock) as cache:
        for number in range(5):
            cache.set(number, bytes(10), expire=100, tag="t")
        cache["large"] = bytes(200_000)
        cache["larger"] = bytes(1_200_000)
        yield cache


def first(db: DB, prefix: bytes) -> bytes:
    return next(db.iterator(prefix=prefix, include_value=False))


def after_last_chunk(db: DB) -> bytes:
    return first(db, b"v")[:-1] + b"\x02"


def last_chunk(db: DB) -> bytes:
    return first(db, b"v")[:-1] + b"\x01"


def cut(db: DB, cache: lsmkv.Cache) -> None:
    db.put(head_key(3, cache.codec), b"\0")


def double(db: DB, cache: lsmkv.Cache) -> None:
    data = db.get(head_key(3, cache.codec))
    assert data is not None
    db.put(head_key("copy", cache.codec), data)


DAMAGE: dict[str, Callable[[DB, lsmkv.Cache], object]] = {
    "is damaged": cut,
    "another's number": double,
    "is missing in an index": lambda db, _: db.delete(first(db, b"e")),
    "not in the order": lambda db, _: db.delete(first(db, b"n")),
    "leads to no entry": lambda db, _: db.put(b"t\0\0" + bytes(12), b""),
    "of 200,001 bytes": lambda db, _: db.delete(first(db, b"w")),
    "has 0 of 200,001 bytes": lambda db, _: db.put(first(db, b"w"), bytes(200_002)),
    "has 1,048,576 of 1,200,001 bytes": lambda db, _: db.put(last_chunk(db), bytes(200_002)),
    "\\x00\\x02' is a chunk of no entry": lambda db, _: db.put(after_last_chunk(db), b""),
    "is a chunk of no entry": lambda db, _: db.put(chunk_key(bytes(12), 0), b""),
    "were counted": lambda db, _: db.put(BASE, Counters(100, 1).encode()),
}


@pytest.mark.parametrize("problem", DAMAGE)
def test_a_problem_is_found_and_fixed(filled: lsmkv.Cache, problem: str) -> None:
    assert filled.check() == []
    DAMAGE[problem](filled._db, filled)
    filled._steps = Steps(filled._db, False)  # which has read the counters
    found = filled.check()
    assert problem in " ".join(found)
    assert filled.check(fix=True) == found
    assert filled.check() == []
    assert len(filled) == len(list(filled)) >= 5


def test_an_entry_whose_chunks_are_not_those_of_its_size_is_found(filled: lsmkv.Cache) -> None:
    """Releases before 0.3 stored this for a file that read more than it was asked for."""
    db = filled._db
    filled["large"] = bytes(3 * MIB - 10)
    chunks = list(db.iterator(prefix=b"v"))
    db.put(chunks[0][0], b"".join(value for _, value in chunks))
    for key, _ in chunks[1:]:
        db.delete(key)
    assert filled.get("large") is None
    assert "large' has 0 of 3,145,719 bytes" in filled.check()[0]
    assert "large" in filled
    filled.check(fix=True)
    assert "large" not in filled
    assert filled.check() == []


def test_an_entry_without_its_head_is_dropped(filled: lsmkv.Cache) -> None:
    filled._db.delete(head_key(3, filled.codec))
    assert len(filled.check(fix=True)) == 5  # four keys of indexes, and the counters
    assert filled.check() == []
    assert list(filled) == [0, 1, 2, 4, "large", "larger"]
