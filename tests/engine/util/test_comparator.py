"""lsmkv.engine.util.comparator: the orders, and the keys that stand between two others."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from orders import fold

from lsmkv.engine.util.comparator import (
    BYTEWISE,
    REVERSE_BYTEWISE,
    CallableComparator,
    Comparator,
    equal_means_identical,
    sort_key,
)

# Few values, the extremes among them, so that prefixes and ties are common.
KEYS = st.one_of(
    st.binary(max_size=6),
    st.lists(st.sampled_from([0, 1, 0x61, 0x62, 0xFE, 0xFF]), max_size=6).map(bytes),
)


FOLDED = CallableComparator(fold, "test.fold")
ALL: list[Comparator] = [BYTEWISE, REVERSE_BYTEWISE, FOLDED]


def sign(number: int) -> int:
    return (number > 0) - (number < 0)


def test_names_that_are_written_to_disk() -> None:
    assert BYTEWISE.name == "leveldb.BytewiseComparator"
    assert REVERSE_BYTEWISE.name == "leveldb.ReverseBytewiseComparator"
    assert FOLDED.name == "test.fold"


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (b"", b"", 0),
        (b"", b"a", -1),
        (b"a", b"a", 0),
        (b"a", b"b", -1),
        (b"a", b"aa", -1),
        (b"a", b"a\x00", -1),
        (b"\x7f", b"\x80", -1),  # bytes are unsigned
        (b"\xff", b"\xff\x00", -1),
        (b"b", b"aaaa", 1),
    ],
)
def test_compare(a: bytes, b: bytes, expected: int) -> None:
    assert sign(BYTEWISE.compare(a, b)) == expected
    assert sign(BYTEWISE.compare(b, a)) == -expected
    assert sign(REVERSE_BYTEWISE.compare(a, b)) == -expected
    assert sign(REVERSE_BYTEWISE.compare(b, a)) == expected


@pytest.mark.parametrize(
    ("start", "limit", "separator"),
    [
        (b"foo", b"hello", b"g"),
        (b"foo", b"foo", b"foo"),
        (b"abc1xyz", b"abc9", b"abc2"),
        (b"abc1xyz", b"abc2", b"abc1xyz"),  # the next value is the limit's own
        (b"abc1", b"abc3", b"abc2"),
        (b"abc", b"abcd", b"abc"),  # prefixes
        (b"abcd", b"abc", b"abcd"),
        (b"", b"", b""),
        (b"", b"a", b""),
        (b"a", b"", b"a"),
        (b"b", b"a", b"b"),  # wrong order: left alone
        (b"a\xff\xff", b"c", b"b"),
        (b"a\xff\xff", b"b", b"a\xff\xff"),
        (b"a\xfe1", b"a\xff2", b"a\xfe1"),
        (b"a\xff1", b"a\xff3", b"a\xff2"),
        (b"\xff\xff", b"\xff\xff\xff", b"\xff\xff"),
        (b"\xff1", b"\xfe", b"\xff1"),
        (b"\x00", b"\xff", b"\x01"),
    ],
)
def test_shortest_separator(start: bytes, limit: bytes, separator: bytes) -> None:
    assert BYTEWISE.find_shortest_separator(start, limit) == separator


@pytest.mark.parametrize(
    ("key", "successor"),
    [
        (b"", b""),
        (b"foo", b"g"),
        (b"\x00", b"\x01"),
        (b"\xfe\xff", b"\xff"),
        (b"\xffa\xff", b"\xffb"),
        (b"\xff\xffx", b"\xff\xffy"),
        (b"\xff", b"\xff"),
        (b"\xff\xff", b"\xff\xff"),
    ],
)
def test_short_successor(key: bytes, successor: bytes) -> None:
    assert BYTEWISE.find_short_successor(key) == successor


@settings(deadline=None)
@given(KEYS, KEYS)
def test_a_separator_separates(a: bytes, b: bytes) -> None:
    for comparator in ALL:
        order = comparator.compare(a, b)
        assume(order != 0)
        start, limit = (a, b) if order < 0 else (b, a)
        separator = comparator.find_shortest_separator(start, limit)
        assert comparator.compare(start, separator) <= 0
        assert comparator.compare(separator, limit) < 0
        assert len(separator) <= len(start)


@settings(deadline=None)
@given(KEYS)
def test_a_successor_does_not_precede(key: bytes) -> None:
    for comparator in ALL:
        successor = comparator.find_short_successor(key)
        assert comparator.compare(key, successor) <= 0
        assert len(successor) <= len(key)


@settings(deadline=None)
@given(KEYS, KEYS, KEYS)
def test_each_is_a_total_order(a: bytes, b: bytes, c: bytes) -> None:
    for comparator in ALL:
        compare = comparator.compare
        assert compare(a, a) == 0
        assert sign(compare(a, b)) == -sign(compare(b, a))
        if compare(a, b) <= 0 and compare(b, c) <= 0:
            assert compare(a, c) <= 0


@settings(deadline=None)
@given(st.lists(KEYS, max_size=12))
def test_sort_key_gives_the_same_order(keys: list[bytes]) -> None:
    assert sort_key(BYTEWISE) is None
    for comparator in ALL:
        ordered = sorted(keys, key=sort_key(comparator))
        for a, b in itertools.pairwise(ordered):
            assert comparator.compare(a, b) <= 0


class Shouting:
    """A user's comparator that brings its own sort key."""

    name = "test.shouting"

    def compare(self, a: bytes, b: bytes, /) -> int:
        raise AssertionError("the sort key stands in for it")

    def find_shortest_separator(self, start: bytes, limit: bytes, /) -> bytes:
        return start

    def find_short_successor(self, key: bytes, /) -> bytes:
        return key

    def sort_key(self, key: bytes) -> bytes:
        return key.upper()


def test_a_comparator_may_have_its_own_sort_key() -> None:
    assert sorted([b"b", b"C", b"a"], key=sort_key(Shouting())) == [b"a", b"b", b"C"]


def test_equal_means_identical_for_bytewise_orders_alone() -> None:
    assert equal_means_identical(BYTEWISE)
    assert equal_means_identical(REVERSE_BYTEWISE)
    assert not equal_means_identical(FOLDED)
    assert not equal_means_identical(Shouting())


def test_a_callable_is_passed_bytes_and_its_answer_kept() -> None:
    seen = []

    def compare(a: bytes, b: bytes) -> int:
        seen.append((a, b))
        return 42

    comparator = CallableComparator(compare, "test.seen")
    assert comparator.compare(b"x", b"y") == 42
    assert seen == [(b"x", b"y")]
    assert comparator.find_shortest_separator(b"a", b"c") == b"a"
    assert comparator.find_short_successor(b"a") == b"a"
