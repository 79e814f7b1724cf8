"""lsmkv.engine.format.keys: internal keys byte for byte, their order, and LevelDB's shortened
ones.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from librt.strings import BytesWriter
from orders import FOLDING

from lsmkv.engine.format.keys import (
    KIND_DELETION,
    KIND_VALUE,
    MAX_SEQUENCE,
    TAG_SIZE,
    InternalKeyComparator,
    before_versions,
    entry_overhead,
    pack,
    sequence_in,
    tagged_value,
    unpack,
    user_key_of,
)
from lsmkv.engine.util.comparator import (
    BYTEWISE,
    REVERSE_BYTEWISE,
    Comparator,
)
from lsmkv.errors import CorruptionError

COMPARATORS: list[Comparator] = [BYTEWISE, REVERSE_BYTEWISE, FOLDING]
USER_KEYS = [b"", b"k", b"hello", b"longggggggggggggggggggggg", b"\xff\x00"]
POWERS = (8, 16, 32, 48, 55)
SEQUENCES = [
    0, 1, 2, 3, *(1 << power for power in POWERS), *((1 << power) - 1 for power in POWERS),
    *((1 << power) + 1 for power in POWERS), MAX_SEQUENCE - 1, MAX_SEQUENCE,
]  # fmt: skip

user_keys = st.text(alphabet="aAbB\xff", max_size=4).map(lambda text: text.encode("latin-1"))
sequences = st.one_of(st.sampled_from(SEQUENCES), st.integers(0, MAX_SEQUENCE))
versions = st.tuples(user_keys, sequences, st.sampled_from([KIND_DELETION, KIND_VALUE]))


# Encoding


def test_the_exact_bytes() -> None:
    assert MAX_SEQUENCE == 2**56 - 1
    assert pack(b"foo", 1, KIND_VALUE) == b"foo" + bytes.fromhex("0101000000000000")
    assert pack(b"foo", 2, KIND_DELETION) == b"foo" + bytes.fromhex("0002000000000000")
    assert pack(b"", 0x0102030405, KIND_VALUE) == bytes.fromhex("0105040302010000")
    assert pack(b"a", MAX_SEQUENCE, KIND_VALUE) == b"a\x01" + b"\xff" * 7
    assert pack(b"a", 1 << 55, KIND_DELETION) == b"a\x00" + bytes(6) + b"\x80"


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("kind", [KIND_DELETION, KIND_VALUE])
def test_encode_and_decode(sequence: int, kind: int) -> None:
    for user_key in USER_KEYS:
        key = pack(user_key, sequence, kind)
        assert unpack(key) == (user_key, sequence, kind)
        assert user_key_of(key) == user_key
        assert sequence_in(key[len(user_key) :]) == sequence


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("kind", [KIND_DELETION, KIND_VALUE])
def test_a_tagged_value_is_the_tag_and_the_value(sequence: int, kind: int) -> None:
    room = BytesWriter()
    for value in (b"", b"v", b"value" * 100, b"before", bytes((1 << 16) - 1), bytes(1 << 16), b"w"):
        tagged = tagged_value(room, sequence, kind, value)
        assert tagged == pack(b"", sequence, kind) + value
        assert sequence_in(tagged) == sequence


@pytest.mark.parametrize("size", range(8))
def test_too_short_to_be_an_internal_key(size: int) -> None:
    with pytest.raises(CorruptionError):
        unpack(bytes(size))
    with pytest.raises(CorruptionError, match="shorter than its tag"):
        user_key_of(bytes(size))


@pytest.mark.parametrize("kind", range(2, 256))
def test_unknown_kinds_are_refused(kind: int) -> None:
    bad = b"key" + bytes([kind]) + bytes(7)
    with pytest.raises(CorruptionError):
        unpack(bad)


def test_a_tag_alone_is_the_empty_key() -> None:
    assert user_key_of(bytes(TAG_SIZE)) == b""
    assert unpack(bytes(TAG_SIZE)) == (b"", 0, KIND_DELETION)


@pytest.mark.parametrize(
    ("key_size", "value_size", "lengths"),
    [(0, 0, 2), (119, 127, 2), (120, 127, 3), (119, 128, 3), (120, 128, 4), (20000, 1 << 21, 7)],
)
def test_what_leveldbs_memtable_takes_beside_key_and_value(
    key_size: int, value_size: int, lengths: int
) -> None:
    node_and_padding = 16 + 2 + 4
    assert entry_overhead(key_size, value_size) == lengths + TAG_SIZE + node_and_padding


# Order


@pytest.mark.parametrize("user_comparator", COMPARATORS, ids=lambda each: each.name)
@given(a=versions, b=versions)
def test_the_order(
    user_comparator: Comparator, a: tuple[bytes, int, int], b: tuple[bytes, int, int]
) -> None:
    comparator = InternalKeyComparator(user_comparator)
    by_user_key = user_comparator.compare(a[0], b[0])
    newer = (b[1], b[2]) < (a[1], a[2])
    older = (a[1], a[2]) < (b[1], b[2])
    expected = by_user_key or older - newer
    compared = comparator.compare(pack(*a), pack(*b))
    assert (compared > 0, compared < 0) == (expected > 0, expected < 0)
    x, y = comparator.sort_key(pack(*a)), comparator.sort_key(pack(*b))
    assert (x > y, x < y) == (expected > 0, expected < 0)


@pytest.mark.parametrize("user_comparator", COMPARATORS, ids=lambda each: each.name)
@given(version=versions, other=user_keys)
def test_before_all_versions(
    user_comparator: Comparator, version: tuple[bytes, int, int], other: bytes
) -> None:
    comparator = InternalKeyComparator(user_comparator)
    key = pack(*version)
    assert user_key_of(before_versions(version[0])) == version[0]
    assert comparator.compare(before_versions(version[0]), key) <= 0
    by_user_key = user_comparator.compare(version[0], other)
    if by_user_key != 0:
        compared = comparator.compare(key, before_versions(other))
        assert (compared > 0, compared < 0) == (by_user_key > 0, by_user_key < 0)


def test_the_order_of_the_user_keys() -> None:
    for user_comparator in COMPARATORS:
        comparator = InternalKeyComparator(user_comparator)
        assert comparator.user_comparator is user_comparator
        assert comparator.order.is_bytewise == (user_comparator is BYTEWISE)
        assert comparator.order.compare(b"a", b"B") == user_comparator.compare(b"a", b"B")


def test_the_name_is_leveldbs() -> None:
    assert InternalKeyComparator(REVERSE_BYTEWISE).name == "leveldb.InternalKeyComparator"


# Shortened keys: LevelDB's own cases


def shorten(start: bytes, limit: bytes) -> bytes:
    return InternalKeyComparator(BYTEWISE).find_shortest_separator(start, limit)


def successor(key: bytes) -> bytes:
    return InternalKeyComparator(BYTEWISE).find_short_successor(key)


@pytest.mark.parametrize(
    "limit",
    [
        pack(b"foo", 99, KIND_VALUE),  # the same user key
        pack(b"foo", 101, KIND_VALUE),
        pack(b"foo", 100, KIND_VALUE),
        pack(b"foo", 100, KIND_DELETION),
        pack(b"bar", 99, KIND_VALUE),  # misordered
        pack(b"foobar", 200, KIND_VALUE),  # start is a prefix of limit
    ],
)
def test_a_separator_that_cannot_be_shorter(limit: bytes) -> None:
    start = pack(b"foo", 100, KIND_VALUE)
    assert shorten(start, limit) == start


def test_a_shorter_separator() -> None:
    assert shorten(pack(b"foo", 100, KIND_VALUE), pack(b"hello", 200, KIND_VALUE)) == pack(
        b"g", MAX_SEQUENCE, KIND_VALUE
    )


def test_limit_is_a_prefix_of_start() -> None:
    start = pack(b"foobar", 100, KIND_VALUE)
    assert shorten(start, pack(b"foo", 200, KIND_VALUE)) == start


def test_a_separator_of_the_same_length_stays() -> None:
    # "foo" could become "fop", which is no shorter.
    start = pack(b"foo", 100, KIND_VALUE)
    assert shorten(start, pack(b"fox", 100, KIND_VALUE)) == start


def test_short_successors() -> None:
    assert successor(pack(b"foo", 100, KIND_VALUE)) == pack(b"g", MAX_SEQUENCE, KIND_VALUE)
    last = pack(b"\xff\xff", 100, KIND_VALUE)
    assert successor(last) == last
    empty = pack(b"", 100, KIND_VALUE)
    assert successor(empty) == empty


@pytest.mark.parametrize("user_comparator", COMPARATORS, ids=lambda each: each.name)
@given(a=versions, b=versions)
def test_shortened_keys_stay_in_their_place(
    user_comparator: Comparator, a: tuple[bytes, int, int], b: tuple[bytes, int, int]
) -> None:
    comparator = InternalKeyComparator(user_comparator)
    start, limit = pack(*a), pack(*b)
    if comparator.compare(start, limit) > 0:
        start, limit = limit, start
    if comparator.compare(start, limit) < 0:
        separator = comparator.find_shortest_separator(start, limit)
        assert comparator.compare(start, separator) <= 0
        assert comparator.compare(separator, limit) < 0
    assert comparator.compare(comparator.find_short_successor(start), start) >= 0
