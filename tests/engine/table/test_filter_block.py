"""lsmkv.engine.table.filter_block: LevelDB's cases with a stub policy, exact bytes, hostile
offsets.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from librt.vecs import append, vec
from mypy_extensions import i64
from plain import fixed32

from lsmkv.engine.counters import ReadCounters
from lsmkv.engine.filter.bloom import BloomFilterPolicy, leveldb_hash
from lsmkv.engine.filter.key_hashes import KeyHashes
from lsmkv.engine.filter.policy import FilterPolicy
from lsmkv.engine.table.filter_block import (
    FilterBlockBuilder,
    FilterBlockReader,
    FilterReader,
    TableFilterReader,
    TableFilters,
    count_denied,
)
from lsmkv.errors import CorruptionError


class HashListPolicy:
    """A filter that is the list of its keys' hashes: one can read it in the block's bytes."""

    name = "test.HashList"

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        return b"".join(hash_of(key) for key in keys)

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        wanted = hash_of(key)
        return any(filter_data[at : at + 4] == wanted for at in range(0, len(filter_data), 4))


class FirstBytePolicy:
    """The first bytes of the keys; can be asked by hash, and keeps what it was asked with."""

    name = "test.FirstByte"

    def __init__(self) -> None:
        self.asked: list[bytes | int] = []

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        return b"".join(key[:1] for key in keys)

    def key_hash(self, key: bytes, /) -> int:
        return key[0]

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        self.asked.append(key)
        return key[:1] in filter_data

    def hash_may_match(self, key_hash: int, filter_data: bytes, /) -> bool:
        self.asked.append(key_hash)
        return key_hash in filter_data


def hash_of(key: bytes) -> bytes:
    return leveldb_hash(key, 1).to_bytes(4, "little")


def build(blocks: list[tuple[int, list[bytes]]], policy: FilterPolicy | None = None) -> bytes:
    builder = FilterBlockBuilder(policy or HashListPolicy())
    for offset, keys in blocks:
        builder.start_block(offset)
        builder.add_keys(list(keys))
    return builder.finish()


def ask(reader: FilterReader, offset: int, key: bytes) -> bool:
    return reader.may_match(offset, KeyHashes(key))


# LevelDB's cases


def test_empty_builder() -> None:
    data = build([])
    assert data.hex() == "000000000b"
    reader = FilterBlockReader(HashListPolicy(), data)
    assert ask(reader, 0, b"foo")
    assert ask(reader, 100_000, b"foo")


def test_a_block_without_keys() -> None:
    assert build([(0, [])]).hex() == "000000000b"


def test_single_chunk() -> None:
    data = build([(100, [b"foo", b"bar", b"box"]), (200, [b"box"]), (300, [b"hello"])])
    hashes = [hash_of(key) for key in (b"foo", b"bar", b"box", b"box", b"hello")]
    assert data == b"".join(hashes) + fixed32(0, 20) + b"\x0b"
    reader = FilterBlockReader(HashListPolicy(), data)
    for key in (b"foo", b"bar", b"box", b"hello"):
        assert ask(reader, 100, key)
    assert not ask(reader, 100, b"missing")
    assert not ask(reader, 100, b"other")


MULTI = [
    (0, [b"foo"]),
    (2000, [b"bar"]),
    (3100, [b"box"]),
    (9000, [b"box", b"hello"]),
]


def test_multi_chunk() -> None:
    data = build(MULTI)
    hashes = [hash_of(key) for key in (b"foo", b"bar", b"box", b"box", b"hello")]
    # Filters 2 and 3 are empty: no block starts between 4096 and 8191.
    assert data == b"".join(hashes) + fixed32(0, 8, 12, 12, 12, 20) + b"\x0b"
    reader = FilterBlockReader(HashListPolicy(), data)
    present = {
        0: [b"foo", b"bar"],
        2000: [b"foo", b"bar"],
        2047: [b"foo", b"bar"],
        2048: [b"box"],
        3100: [b"box"],
        4095: [b"box"],
        4096: [],
        4100: [],
        8191: [],
        8192: [b"box", b"hello"],
        9000: [b"box", b"hello"],
    }
    for offset, there in present.items():
        for key in (b"foo", b"bar", b"box", b"hello"):
            assert ask(reader, offset, key) == (key in there), (offset, key)


def test_a_block_that_no_filter_speaks_for_may_hold_anything() -> None:
    reader = FilterBlockReader(HashListPolicy(), build(MULTI))
    for offset in (10240, 12288, 2**32, 2**62):
        assert reader.filter_for(offset) is None
        assert ask(reader, offset, b"missing")


def test_a_filter_without_keys_says_no_without_asking_the_policy() -> None:
    policy = FirstBytePolicy()
    reader = FilterBlockReader(policy, build([(4096, [b"k"])], policy))
    assert reader.filter_for(0) == b""
    assert not ask(reader, 0, b"k")
    assert policy.asked == []


def test_large_offsets() -> None:
    data = build([(0, [b"a"]), (1 << 20, [b"z"])])
    assert len(data) == 8 + 4 * 513 + 4 + 1
    reader = FilterBlockReader(HashListPolicy(), data)
    assert ask(reader, 0, b"a")
    assert not ask(reader, 2048, b"a")
    assert ask(reader, 1 << 20, b"z")
    assert not ask(reader, (1 << 20) - 1, b"z")


def test_keys_added_twice_count_twice() -> None:
    policy = FirstBytePolicy()
    assert build([(0, [b"k", b"k"])], policy)[:2] == b"kk"


def test_keys_may_come_many_at_a_time() -> None:
    builder = FilterBlockBuilder(HashListPolicy())
    for offset, keys in MULTI:
        builder.start_block(offset)
        builder.add_keys(keys)
    assert builder.finish() == build(MULTI)


def test_bloom_filters() -> None:
    policy = BloomFilterPolicy(10)
    data = build([(0, [b"foo"]), (5000, [b"bar", b"baz"])], policy)
    first = policy.create_filter([b"foo"])
    last = policy.create_filter([b"bar", b"baz"])
    assert data == first + last + fixed32(0, 9, 9, 18) + b"\x0b"
    reader = FilterBlockReader(policy, data)
    assert [reader.filter_for(offset) for offset in (0, 2048, 4096)] == [first, b"", last]


@given(
    st.lists(
        st.tuples(st.integers(1, 9000), st.lists(st.binary(max_size=6), max_size=4)), max_size=8
    )
)
def test_members_always_match(steps: list[tuple[int, list[bytes]]]) -> None:
    blocks = []
    offset = 0
    for length, keys in steps:
        blocks.append((offset, keys))
        offset += length
    for policy in (HashListPolicy(), BloomFilterPolicy(10)):
        reader = FilterBlockReader(policy, build(blocks, policy))
        for start, keys in blocks:
            assert all(ask(reader, start, key) for key in keys)


# The order of calls


def test_builder_misuse() -> None:
    builder = FilterBlockBuilder(HashListPolicy())
    builder.start_block(5000)
    builder.add_keys([b"k"])
    with pytest.raises(ValueError, match="before a block"):
        builder.start_block(2000)
    builder.finish()
    with pytest.raises(ValueError, match="finish twice"):
        builder.finish()
    with pytest.raises(ValueError, match="start_block after finish"):
        builder.start_block(9000)


# Asking by hash


def test_a_policy_with_hashes_gets_the_hash() -> None:
    policy = FirstBytePolicy()
    data = build([(0, [b"apple"])], policy)
    for reader in (FilterBlockReader(policy, data), TableFilterReader(policy, b"a")):
        policy.asked.clear()
        assert ask(reader, 0, b"apple")
        assert not ask(reader, 0, b"berry")
        assert policy.asked == [ord("a"), ord("b")]


def test_a_policy_without_hashes_gets_the_key() -> None:
    reader = FilterBlockReader(HashListPolicy(), build([(0, [b"foo"])]))
    assert ask(reader, 0, b"foo")
    assert not ask(reader, 0, b"bar")


# The whole-table layout


def test_table_filter_is_the_policys_bytes_alone() -> None:
    policy = HashListPolicy()
    data = policy.create_filter([b"foo", b"bar"])
    reader = TableFilterReader(policy, data)
    for offset in (0, 2048, 2**40):
        assert reader.filter_for(offset) == data
        assert ask(reader, offset, b"foo")
        assert not ask(reader, offset, b"box")
    assert not ask(TableFilterReader(policy, b""), 0, b"foo")


# The filters of one table


def filters_of(readers: list[FilterReader], offsets: Sequence[int]) -> TableFilters:
    starts = vec[i64]()
    for offset in offsets:
        starts = append(starts, offset)
    return TableFilters(readers, starts)


def test_a_table_without_filters_may_hold_anything() -> None:
    counters = ReadCounters()
    assert filters_of([], [0]).may_match(0, KeyHashes(b"k"), counters)
    assert (counters.filters_asked, counters.filter_negatives) == (0, 0)


def test_filters_are_asked_by_the_number_of_a_block() -> None:
    for policy in (HashListPolicy(), BloomFilterPolicy(10)):
        reader = FilterBlockReader(policy, build(MULTI, policy))
        filters = filters_of([reader], [offset for offset, _ in MULTI])
        assert filters.readers == [reader]
        counters = ReadCounters()
        asked = denied = 0
        for number, (offset, _) in enumerate(MULTI):
            for key in (b"foo", b"bar", b"box", b"hello", b"missing"):
                expected = ask(reader, offset, key)
                assert filters.may_match(number, KeyHashes(key), counters) == expected
                asked += 1
                denied += not expected
                assert counters.filters_asked == asked
                assert counters.filter_negatives == denied
        assert 0 < denied < asked


def test_a_table_is_asked_filter_by_filter_until_one_says_no() -> None:
    policy = FirstBytePolicy()
    readers = [TableFilterReader(policy, b"ab"), TableFilterReader(policy, b"bc")]
    filters = filters_of([*readers], [0])
    for key, answers in {b"a": [True, False], b"b": [True, True], b"c": [False]}.items():
        counters = ReadCounters()
        policy.asked.clear()
        assert filters.may_match(0, KeyHashes(key), counters) == all(answers)
        assert policy.asked == [key[0]] * len(answers)
        assert counters.filters_asked == len(answers)
        assert counters.filter_negatives == answers.count(False)
        assert counters.filters_asked - counters.filter_negatives == answers.count(True)


def test_two_filters_of_blooms_are_both_asked() -> None:
    policy = BloomFilterPolicy(10)
    block = FilterBlockReader(policy, build([(0, [b"a"])], policy))
    table = TableFilterReader(policy, policy.create_filter([b"a", b"b"]))
    filters = filters_of([table, block], [0])
    for key, asked, negatives in ((b"a", 2, 0), (b"b", 2, 1), (b"missing", 1, 1)):
        counters = ReadCounters()
        assert filters.may_match(0, KeyHashes(key), counters) == (negatives == 0)
        assert (counters.filters_asked, counters.filter_negatives) == (asked, negatives)


@pytest.mark.parametrize("count", [0, 1, 3, 40])
def test_blooms_say_the_same_by_number_as_by_offset(count: int) -> None:
    """Though there are fewer filters than blocks, or empty ones."""
    policy = BloomFilterPolicy(10)
    rng = random.Random(count)
    members = [b"k%04d" % number for number in range(500)]
    offsets = [number * 69 for number in range(400)]
    unfiltered = denied = 0
    for _ in range(30):
        parts = [policy.create_filter(rng.sample(members, 9)) for _ in range(3)]
        contents = b"".join(parts)
        starts = sorted(rng.choice([0, *range(13, len(contents) + 1)]) for _ in range(count))
        array = fixed32(*starts, len(contents))
        reader = FilterBlockReader(policy, contents + array + bytes([rng.choice([7, 9, 11])]))
        filters = filters_of([reader], offsets)
        for number, offset in enumerate(offsets):
            key = rng.choice(members)
            filter_data = reader.filter_for(offset)
            expected = filter_data is None or policy.key_may_match(key, filter_data)
            assert filters.may_match(number, KeyHashes(key), ReadCounters()) == expected
            unfiltered += reader.filter_for(offset) is None
            denied += not expected
    assert unfiltered > 0
    assert (denied > 0) == (count > 0)


def test_denied_keys_are_counted_filter_by_filter() -> None:
    policy = HashListPolicy()
    block = FilterBlockReader(policy, build(MULTI))
    table = TableFilterReader(policy, policy.create_filter([b"foo", b"box"]))
    assert count_denied([], 0, [b"foo"]) == 0
    assert count_denied([block], 0, [b"foo", b"bar"]) == 0
    assert count_denied([block], 0, []) == 0
    assert count_denied([block], 3100, [b"foo", b"bar", b"box"]) == 2
    assert count_denied([table, block], 0, [b"foo", b"bar", b"box"]) == 2
    assert count_denied([table, block], 3100, [b"foo", b"bar"]) == 3


# Damage


def use(data: bytes) -> None:
    policy = BloomFilterPolicy(10)
    try:
        reader = FilterBlockReader(policy, data)
    except CorruptionError:
        return
    for offset in (0, 1, 2047, 2048, 9000, 2**31, 2**40, 2**62):
        assert ask(reader, offset, b"foo") in (True, False)
        found = reader.filter_for(offset)
        assert found is None or found in data


def test_cut_anywhere() -> None:
    data = build(MULTI, BloomFilterPolicy(10))
    for length in range(len(data)):
        use(data[:length])
        use(data[length:])
    for length in range(5):
        with pytest.raises(CorruptionError, match="cut short"):
            FilterBlockReader(HashListPolicy(), data[-length:] if length else b"")


def test_any_byte_changed_to_any_other() -> None:
    data = build(MULTI, BloomFilterPolicy(10))
    for at in range(len(data)):
        for byte in range(256):
            use(data[:at] + bytes([byte]) + data[at + 1 :])


@given(st.binary(max_size=40))
def test_noise(data: bytes) -> None:
    use(data)
    use(data + fixed32(0) + b"\x0b")


@pytest.mark.parametrize("array", [1, 2, 3, 5, 6, 100, 2**31, 2**32 - 1])
def test_an_array_beyond_the_block_or_of_broken_offsets(array: int) -> None:
    with pytest.raises(CorruptionError, match="beyond"):
        FilterBlockReader(HashListPolicy(), b"abcd" + fixed32(array) + b"\x0b")


@pytest.mark.parametrize("starts", [[5], [2**32 - 1], [0, 3, 2], [4, 0], [0, 5, 4], [0, 2**31, 4]])
def test_offsets_that_decrease_or_point_outside_are_refused(starts: list[int]) -> None:
    with pytest.raises(CorruptionError, match="out of order"):
        FilterBlockReader(HashListPolicy(), b"abcd" + fixed32(*starts, 4) + b"\x0b")


@pytest.mark.parametrize("base_lg", [0, 1, 12, 31, 32, 62, 63, 64, 200, 255])
def test_any_base_is_read(base_lg: int) -> None:
    data = hash_of(b"foo") + fixed32(0, 4) + bytes([base_lg])
    reader = FilterBlockReader(HashListPolicy(), data)
    assert ask(reader, 0, b"foo")
    assert not ask(reader, 0, b"bar")
    second = 2**base_lg
    if second <= 2**62:
        assert not ask(reader, second - 1, b"bar")
        assert ask(reader, second, b"bar")
    else:
        assert not ask(reader, 2**62, b"bar")
    if base_lg < 62:
        assert ask(reader, 2**63 - 1, b"bar")
