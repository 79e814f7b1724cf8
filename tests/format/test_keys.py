"""lsmkv.format.keys: internal keys byte for byte, their order, and LevelDB's shortened ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.errors import CorruptionError
from lsmkv.filter.bloom import BloomFilterPolicy
from lsmkv.format.keys import (
    KIND_DELETION,
    KIND_VALUE,
    MAX_SEQUENCE,
    InternalFilterPolicy,
    InternalHashedFilterPolicy,
    InternalKeyComparator,
    after_versions,
    before_versions,
    internal_filter_policy,
    is_value,
    oldest_rank_hidden,
    pack,
    pack_entry,
    rank_of,
    sequence_of,
    to_entries,
    unpack,
)
from lsmkv.util.comparator import (
    BYTEWISE,
    REVERSE_BYTEWISE,
    CallableComparator,
    Comparator,
)


def fold(a: bytes, b: bytes) -> int:
    return (a.lower() > b.lower()) - (a.lower() < b.lower())


FOLDING = CallableComparator(fold, "test.Folding")
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
        rank = rank_of(sequence, kind)
        assert pack_entry(user_key, rank) == key
        assert sequence_of(rank) == sequence
        assert is_value(rank) == (kind == KIND_VALUE)
        assert to_entries([key], [b"v"]) == [(user_key, rank, b"v")]


@pytest.mark.parametrize("size", range(8))
def test_too_short_to_be_an_internal_key(size: int) -> None:
    with pytest.raises(CorruptionError):
        unpack(bytes(size))
    with pytest.raises(CorruptionError):
        to_entries([pack(b"k", 1, KIND_VALUE), bytes(size)], [b"", b""])


@pytest.mark.parametrize("kind", range(2, 256))
def test_unknown_kinds_are_refused(kind: int) -> None:
    bad = b"key" + bytes([kind]) + bytes(7)
    with pytest.raises(CorruptionError):
        unpack(bad)
    with pytest.raises(CorruptionError):
        to_entries([pack(b"k", 1, KIND_VALUE), bad], [b"", b""])


def test_many_keys_are_decoded_at_once() -> None:
    rows = list(product(USER_KEYS, SEQUENCES, [KIND_DELETION, KIND_VALUE]))
    keys = [pack(*row) for row in rows]
    values = [b"%d" % at for at in range(len(rows))]
    assert to_entries(keys, values) == [
        (user_key, rank_of(sequence, kind), value)
        for (user_key, sequence, kind), value in zip(rows, values, strict=True)
    ]
    assert to_entries([], []) == []


def test_ranks_put_newer_versions_first() -> None:
    assert rank_of(2, KIND_DELETION) < rank_of(1, KIND_VALUE) < rank_of(1, KIND_DELETION)
    assert rank_of(MAX_SEQUENCE, KIND_VALUE) == -(2**64 - 255)


@pytest.mark.parametrize("sequence", SEQUENCES[:-1])
@pytest.mark.parametrize("kind", [KIND_DELETION, KIND_VALUE])
def test_which_versions_a_sequence_hides(sequence: int, kind: int) -> None:
    hidden = oldest_rank_hidden(sequence)
    assert rank_of(sequence, kind) > hidden
    assert rank_of(sequence + 1, kind) <= hidden


def test_nothing_is_hidden_from_the_largest_sequence() -> None:
    assert rank_of(MAX_SEQUENCE, KIND_VALUE) > oldest_rank_hidden(MAX_SEQUENCE)


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


@given(version=versions.filter(lambda version: version[1] > 0))
def test_before_and_after_all_versions(version: tuple[bytes, int, int]) -> None:
    comparator = InternalKeyComparator(BYTEWISE)
    key = pack(*version)
    assert comparator.compare(before_versions(version[0]), key) <= 0
    assert comparator.compare(key, after_versions(version[0])) < 0
    assert comparator.compare(after_versions(version[0]), before_versions(version[0] + b"\0")) < 0


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


# Filters


class RecordingPolicy:
    name = "test.Recording"

    def __init__(self) -> None:
        self.seen: list[bytes] = []

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        self.seen += keys
        return b"filter"

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        self.seen.append(key)
        return filter_data == b"filter"


def test_a_policy_is_asked_about_user_keys() -> None:
    mine = RecordingPolicy()
    policy = internal_filter_policy(mine)
    assert type(policy) is InternalFilterPolicy
    assert policy.name == "test.Recording"
    keys = [pack(b"a", 7, KIND_VALUE), pack(b"a", 3, KIND_DELETION), pack(b"", 1, KIND_VALUE)]
    assert policy.create_filter(keys) == b"filter"
    assert mine.seen == [b"a", b"a", b""]  # each version counts as one more key
    assert policy.key_may_match(pack(b"zz", MAX_SEQUENCE, KIND_VALUE), b"filter")
    assert not policy.key_may_match(pack(b"zz", 1, KIND_VALUE), b"other")
    assert mine.seen[3:] == [b"zz", b"zz"]


def test_a_policy_that_hashes_is_asked_by_the_user_keys_hash() -> None:
    bloom = BloomFilterPolicy(10)
    policy = internal_filter_policy(bloom)
    assert isinstance(policy, InternalHashedFilterPolicy)
    assert policy.name == bloom.name
    users = [b"key%d" % at for at in range(100)]
    data = policy.create_filter([pack(user, at + 1, KIND_VALUE) for at, user in enumerate(users)])
    assert data == bloom.create_filter(users)
    for user in users:
        asked = pack(user, 12345, KIND_VALUE)
        assert policy.key_hash(asked) == bloom.key_hash(user)
        assert policy.hash_may_match(policy.key_hash(asked), data)
        assert policy.key_may_match(asked, data)
