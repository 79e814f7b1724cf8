"""What two versions differ in, and what is not read to find out."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from hashlib import sha256
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lsmkv
from lsmkv.engine.util.pair_diff import Pair
from lsmkv.shards.building.diff import (
    Change,
    KeyRange,
    PairChange,
    diff_versions,
    ranges_to_compare,
)
from lsmkv.shards.version import COMPARATOR, ShardEntry, StoredFile, VersionDocument

Content = dict[bytes, bytes]
Pairs = Generator[Pair, None, None]


def version(content: Content, *cuts: bytes, meta: str = "00") -> VersionDocument:
    """A version whose shards have files that stand for their pairs."""
    firsts = [b"", *cuts]
    shards = []
    for at, first in enumerate(firsts):
        stop = firsts[at + 1] if at + 1 < len(firsts) else None
        pairs = between(content, first, stop)
        digest = sha256(repr(pairs).encode()).hexdigest()
        files = (StoredFile("000003.ldb", 1, digest), StoredFile("CURRENT", 1, "ab" * 32))
        path = f"shards/{digest}/{at}"
        shards.append(ShardEntry(path, first, len(pairs), StoredFile("META", 1, meta * 32), files))
    return VersionDocument(1, "", "b", "", COMPARATOR, None, None, tuple(shards))


def between(content: Content, start: bytes, stop: bytes | None) -> list[Pair]:
    return [
        (key, content[key])
        for key in sorted(content)
        if start <= key and (stop is None or key < stop)
    ]


class Reader:
    """Opens ranges of two contents, and knows which, and what was closed."""

    def __init__(self, old: Content, old_version: VersionDocument, new: Content) -> None:
        self._contents = {True: old, False: new}
        self._old = old_version
        self.opened: list[KeyRange] = []
        self.open = 0

    def __call__(self, asked: VersionDocument, start: bytes, stop: bytes | None) -> Pairs:
        self.opened.append(KeyRange(start, stop))
        return self._pairs(between(self._contents[asked is self._old], start, stop))

    def _pairs(self, pairs: list[Pair]) -> Pairs:
        self.open += 1
        try:
            yield from pairs
        finally:
            self.open -= 1


def changes(
    old: Content, new: Content, cuts_old: Iterator[bytes] | tuple[bytes, ...] = (), *cuts: bytes
) -> tuple[list[PairChange], list[KeyRange]]:
    a, b = version(old, *cuts_old), version(new, *cuts)
    reader = Reader(old, a, new)
    found = list(diff_versions(a, b, reader))
    assert reader.open == 0
    assert reader.opened[::2] == reader.opened[1::2] == ranges_to_compare(a, b)
    return found, ranges_to_compare(a, b)


def test_each_kind_of_change() -> None:
    old = {b"a": b"1", b"b": b"2", b"c": b"3"}
    new = {b"b": b"2", b"c": b"", b"d": b"4"}
    assert changes(old, new)[0] == [
        (Change.REMOVED, b"a", b"1", None),
        (Change.CHANGED, b"c", b"3", b""),
        (Change.ADDED, b"d", None, b"4"),
    ]


def test_shards_of_the_same_files_are_not_read() -> None:
    old = {bytes([at]): b"same" for at in range(100)}
    new = old | {b"\x20": b"other"}
    cuts = (b"\x10", b"\x20", b"\x30")
    found, ranges = changes(old, new, cuts, *cuts)
    assert found == [(Change.CHANGED, b"\x20", b"same", b"other")]
    assert ranges == [(b"\x20", b"\x30")]
    assert changes(old, old, cuts, *cuts) == ([], [])


def test_how_a_shard_was_built_is_no_difference() -> None:
    content = {b"a": b"1"}
    assert ranges_to_compare(version(content, meta="00"), version(content, meta="11")) == []


def test_a_digest_that_differs_in_one_file_is_read() -> None:
    one = version({b"a": b"1"})
    shard = one.shards[0]
    other = shard._replace(files=(shard.files[0], StoredFile("CURRENT", 1, "cd" * 32)))
    assert ranges_to_compare(one, one._replace(shards=(other,))) == [(b"", None)]


def test_ranges_side_by_side_are_joined() -> None:
    old = {bytes([at]): b"same" for at in range(100)}
    new = {key: b"other" if b"\x10" <= key < b"\x30" else b"same" for key in old}
    cuts = (b"\x10", b"\x20", b"\x30", b"\x40")
    _, ranges = changes(old, new, cuts, *cuts)
    assert ranges == [(b"\x10", b"\x30")]


def test_other_bounds_are_compared_between_those_in_common() -> None:
    content = {bytes([at]): b"same" for at in range(100)}
    old = (b"\x10", b"\x20", b"\x30", b"\x50")
    new = (b"\x10", b"\x28", b"\x30", b"\x50")
    found, ranges = changes(content, content, old, *new)
    assert found == []
    assert ranges == [(b"\x10", b"\x30")]


def test_a_set_without_shards_is_empty() -> None:
    content = {b"a": b"1"}
    full, empty = version(content), version({})._replace(shards=())
    assert ranges_to_compare(empty, empty) == []
    reader = Reader({}, empty, content)
    assert list(diff_versions(empty, full, reader)) == [(Change.ADDED, b"a", None, b"1")]


contents = st.dictionaries(st.binary(max_size=2), st.sampled_from([b"", b"1", b"2"]), max_size=20)
bounds = st.sets(st.binary(min_size=1, max_size=2), max_size=4).map(sorted)


@given(contents, contents, bounds, bounds, bounds)
def test_the_differences_are_those_of_dicts(
    old: Content, edits: Content, common: list[bytes], of_old: list[bytes], of_new: list[bytes]
) -> None:
    new = {key: value for key, value in (old | edits).items() if edits.get(key) != b""}
    cuts_old = tuple(sorted({*common, *of_old}))
    found, _ = changes(old, new, cuts_old, *sorted({*common, *of_new}))
    keys = [key for key in sorted(old | new) if old.get(key) != new.get(key)]
    assert [(one.key, one.old, one.new) for one in found] == [
        (key, old.get(key), new.get(key)) for key in keys
    ]
    kinds = [one.kind for one in found]
    assert kinds.count(Change.ADDED) == sum(key not in old for key in keys)
    assert kinds.count(Change.REMOVED) == sum(key not in new for key in keys)


def test_streams_are_read_one_pair_ahead_and_closed() -> None:
    """So memory does not grow with the ranges, and who stops early leaves nothing open."""
    made = {"old": 0, "new": 0}
    a, b = version({b"a": b"1"}), version({b"a": b"2"})

    def endless(asked: VersionDocument, start: bytes, stop: bytes | None) -> Pairs:
        side = "old" if asked is a else "new"
        try:
            for at in count():
                made[side] += 1
                yield at.to_bytes(8, "big"), side.encode()
        finally:
            made[side] = -1

    found = diff_versions(a, b, endless)
    for _ in range(10):
        next(found)
    assert made == {"old": 10, "new": 10}
    found.close()
    assert made == {"old": -1, "new": -1}


def test_progress_counts_the_keys_compared() -> None:
    old = {at.to_bytes(2, "big"): b"1" for at in range(2500)}
    new = old | {b"\xff": b"2"}
    advanced: list[int] = []
    a = version(old)
    list(diff_versions(a, version(new), Reader(old, a, new), advanced.append))
    assert sum(advanced) == 2501
    assert len(advanced) > 1


def test_databases_are_compared_by_their_iterators() -> None:
    """The iterators of lsmkv are what ``open_range`` may return."""
    with lsmkv.DB(":memory:") as one, lsmkv.DB(":memory:") as two:
        for db, value in ((one, b"1"), (two, b"2")):
            db.put(b"k", value)
            db.put(b"same", b"same")
        a, b = version({b"k": b"1"}), version({b"k": b"2"})
        readers = {id(a): one, id(b): two}

        def open_range(asked: VersionDocument, start: bytes, stop: bytes | None) -> lsmkv.Iterator:
            return readers[id(asked)].iterator(start=start, stop=stop)

        assert list(diff_versions(a, b, open_range)) == [(Change.CHANGED, b"k", b"1", b"2")]


def test_an_error_of_reading_is_passed_on() -> None:
    a, b = version({b"a": b"1"}), version({b"a": b"2"})
    reader = Reader({b"a": b"1"}, a, {})

    def broken(asked: VersionDocument, start: bytes, stop: bytes | None) -> Pairs:
        if asked is b:
            raise lsmkv.CorruptionError("damage", "s3://bucket/000003.ldb")
        return reader(asked, start, stop)

    with pytest.raises(lsmkv.CorruptionError, match="damage"):
        list(diff_versions(a, b, broken))
    assert reader.open == 0
