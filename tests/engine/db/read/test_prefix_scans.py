"""Scans that ask prefix filters: what they save, when they ask none, and extractors that fail.

That no key is missing is compared with a dict by ``tests/stress/model_study.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from stores import TINY

from lsmkv import DB, BinaryFusePolicy, Bloom64Policy, DelimitedPrefix, Error, MemoryEnv


def _first_letter(key: bytes) -> bytes | None:
    """Keys that begin with ``a`` or ``b``; the others have no prefix."""
    return key[:1] if key[:1] in (b"a", b"b") else None


# What it saves, and when nothing is skipped

PEOPLE = 200
CITIES = {"prefix_extractor": b"/"}


def fill(db: DB, odd: int = 0) -> None:
    """Keys of every other person, in many tables over each other."""
    for n in range(odd, 2 * PEOPLE, 2):
        for part in (b"age", b"city", b"name"):
            db.put(b"%06d/" % (n * 7919 % (2 * PEOPLE) // 2 * 2 + odd) + part, bytes(100))


def scanned(db: DB, numbers: range) -> tuple[int, int, int, int]:
    """What scans of these persons ask and read: keys found, filters asked, negatives, blocks."""
    before = db.stats()
    found = sum(
        len(list(db.iterator(prefix=b"%06d/" % n, reverse=reverse)))
        for n in numbers
        for reverse in (False, True)
    )
    after = db.stats()
    return (
        found,
        after.filters_asked - before.filters_asked,
        after.filter_negatives - before.filter_negatives,
        after.blocks_read - before.blocks_read,
    )


ABSENT = range(1, 2 * PEOPLE, 2)
PRESENT = range(0, 2 * PEOPLE, 2)


@pytest.mark.parametrize("policy", [None, Bloom64Policy(10), BinaryFusePolicy()], ids=repr)
def test_a_scan_of_an_absent_prefix_reads_no_block(policy: Any) -> None:
    with DB(":memory:", **TINY, **CITIES, filter_policy=policy, lru_cache_size=0) as db:
        fill(db)
        scans = 2 * len(ABSENT)
        found, asked, negatives, blocks = scanned(db, ABSENT)
        assert found == 0
        assert asked >= scans  # one table each, or several: compactions run meanwhile
        assert negatives > 0.97 * asked
        assert blocks <= 0.1 * scans
        assert asked - negatives >= 0.3 * blocks  # a table may have a block or two of a range
        found, asked, negatives, blocks = scanned(db, PRESENT)
        assert found == 3 * 2 * len(PRESENT)
        assert asked - negatives >= 2 * len(PRESENT)
        assert blocks >= 2 * len(PRESENT)


@pytest.mark.parametrize(
    "other",
    [None, 6, b"a", (_first_letter, "test.First")],
    ids=["none", "fixed", "delimited", "callable"],
)
def test_filters_of_another_extractor_are_not_asked(other: Any) -> None:
    """An extractor of another name may have cut the keys elsewhere."""
    env = MemoryEnv()
    with DB("/db", create_if_missing=True, env=env, **TINY, **CITIES) as db:
        fill(db)
        db.compact_range()
    options: dict[str, Any] = {"prefix_extractor": other}
    if isinstance(other, tuple):
        options = {"prefix_extractor": other[0], "prefix_extractor_name": other[1]}
    with DB("/db", env=env, **TINY, **options) as db:
        assert scanned(db, PRESENT)[:3] == (3 * 2 * len(PRESENT), 0, 0)
        assert scanned(db, ABSENT)[:3] == (0, 0, 0)
        assert db.verify() == []


def test_ranges_beyond_one_prefix_ask_no_filter() -> None:
    with DB(":memory:", **TINY, **CITIES) as db:
        fill(db)
        db.flush()
        for bounds in (
            {"prefix": b"00000"},
            {"start": b"000001/", "stop": b"000003/"},
            {"start": b"000001/"},
            {"stop": b"000001/"},
            {"start": b"000001/", "stop": b"0000010", "include_stop": True},
            {},
        ):
            for reverse in (False, True):
                list(db.iterator(reverse=reverse, **bounds))
        with db.raw_iterator() as raw:
            raw.seek(b"000001/")
            assert raw.key() == b"000002/age"
        assert db.stats().filters_asked == 0
        assert db._store is not None
        db._store.forget_ranges()
        list(db.iterator(start=b"000001/", stop=b"0000010"))
        assert db.stats().filters_asked > 0


# Extractors that fail


class Failing:
    """Cuts keys at a slash, until a test makes it fail."""

    name = "test.Failing"

    def __init__(self, how: Callable[[bytes], bytes | None]) -> None:
        self.how = how
        self.fails = False

    def extract(self, key: bytes, /) -> bytes | None:
        return self.how(key) if self.fails else DelimitedPrefix(b"/").extract(key)


def _divides(key: bytes) -> bytes | None:
    return bytes([1 // (len(key) - len(key))])


WAYS = [_divides, lambda key: b"other", lambda key: key + b"x", lambda key: "text"]


@pytest.mark.parametrize("how", WAYS, ids=["raises", "other", "longer", "text"])
def test_an_extractor_that_fails_fails_the_scan_alone(how: Any) -> None:
    extractor = Failing(how)
    with DB(":memory:", **TINY, prefix_extractor=extractor) as db:
        fill(db)
        db.compact_range()
        with db.snapshot() as snapshot:
            extractor.fails = True
            for reader in (db, snapshot, db.prefixed_db(b"0000")):
                with pytest.raises(Error, match=r"extractor test\.Failing"):
                    reader.iterator(prefix=b"000001/")
                with pytest.raises(Error, match=r"extractor test\.Failing"):
                    reader.iterator(start=b"000001/a", stop=b"000001/b", reverse=True)
                with pytest.raises(Error, match=r"extractor test\.Failing"):
                    reader.raw_iterator(prefix=b"000001/")
            assert len(list(db)) == 3 * PEOPLE
            with pytest.raises(Error, match=r"extractor test\.Failing"):
                db.verify()
            extractor.fails = False
        assert db.verify() == []
        assert len(list(db.iterator(prefix=b"000002/"))) == 3
        assert db._store is not None
        assert len(db._store.pinned) == 0
        db.put(b"after", b"1")


@pytest.mark.parametrize("how", WAYS, ids=["raises", "other", "longer", "text"])
def test_an_extractor_that_fails_in_a_flush_stops_writes_and_loses_nothing(how: Any) -> None:
    env = MemoryEnv()
    extractor = Failing(how)
    with DB("/db", create_if_missing=True, env=env, prefix_extractor=extractor) as db:
        fill(db)
        db.flush()
        extractor.fails = True
        db.put(b"000001/age", b"1")
        with pytest.raises(Error, match=r"extractor test\.Failing"):
            db.flush()
        for _ in range(2):
            with pytest.raises(Error, match=r"extractor test\.Failing"):
                db.put(b"000001/city", b"1")
        assert db.get(b"000001/age") == b"1"
        assert len(list(db)) == 3 * PEOPLE + 1
    with pytest.raises(Error, match=r"extractor test\.Failing"):
        DB("/db", env=env, prefix_extractor=extractor)  # recovery makes a table of the log
    with DB("/db", env=env) as db:
        assert len(list(db)) == 3 * PEOPLE + 1
        assert db.get(b"000001/age") == b"1"
        assert db.verify() == []
        db.put(b"000001/city", b"1")
        db.compact_range()
    extractor.fails = False
    with DB("/db", env=env, prefix_extractor=extractor) as db:
        assert [key for key, _ in db.iterator(prefix=b"000001/")] == [b"000001/age", b"000001/city"]
