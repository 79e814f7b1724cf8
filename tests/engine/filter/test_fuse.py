"""lsmkv.engine.filter.fuse: members, rates, sizes, retries, and filters that are damaged."""

from __future__ import annotations

import hashlib
import math
import random

import pytest
from hostile_filters import hostile_filters
from hypothesis import given
from hypothesis import strategies as st
from librt.vecs import vec
from mypy_extensions import i64

from lsmkv.engine.filter import fuse
from lsmkv.engine.filter.bloom64 import Bloom64Policy
from lsmkv.engine.filter.fuse import (
    FEWEST_KEYS,
    FUSE_MARK,
    BinaryFusePolicy,
    FuseShape,
    filter64_may_match,
    fuse_shape,
    shape_of,
)
from lsmkv.engine.filter.hash64 import xxh3_hash

POLICY = BinaryFusePolicy()


def hashes_of(count: int, seed: int = 1) -> list[int]:
    source = random.Random(seed)
    return [source.getrandbits(62) for _ in range(count)]


def slots_of(key_hash: int, shape: FuseShape) -> list[int]:
    """The slots of a key, by the definition: one each of neighboring segments."""
    a, b = key_hash >> 31, key_hash & ((1 << 31) - 1)
    length = 1 << shape.segment_bits
    first = a * shape.segments * length >> 31
    slots = [first]
    for which in range(1, shape.arity):
        offset = b >> (31 - which * shape.segment_bits) & (length - 1)
        slots.append((first // length + which) * length + offset)
    return slots


def fingerprint(key_hash: int) -> int:
    return ((key_hash >> 31) ^ (key_hash & ((1 << 31) - 1))) * 0x2C1B3C6D >> 16 & 0xFF


@pytest.mark.parametrize("count", [FEWEST_KEYS, 5_000, 30_000])
def test_the_slots_of_a_key_give_its_fingerprint(count: int) -> None:
    hashes = hashes_of(count)
    data = POLICY.create_filter_from_hashes(hashes)
    shape = shape_of(data)
    assert shape == fuse_shape(count)
    assert data[-1] == FUSE_MARK + shape.arity
    assert data[-2] == 0  # the first seed did
    for one in hashes:
        value = 0
        for slot in slots_of(one, shape):
            value ^= data[slot]
        assert value == fingerprint(one)


def test_exact_bytes() -> None:
    """The trailer, and a digest of the slots: the format is on disk."""
    data = POLICY.create_filter([b"key%d" % n for n in range(3000)])
    assert data[-7:].hex() == "39000000060084"
    assert hashlib.sha256(data).hexdigest()[:16] == "ebe8f4089045c11d"


@given(st.integers(FEWEST_KEYS, 3000), st.integers(0, 1000))
def test_no_member_is_denied(count: int, seed: int) -> None:
    hashes = hashes_of(count, seed)
    data = POLICY.create_filter_from_hashes(hashes)
    assert all(filter64_may_match(one, b"..." + data + b"...", 3, 3 + len(data)) for one in hashes)


@pytest.mark.parametrize("count", [10_000, 20_000, 50_000])
def test_rate_and_size(count: int) -> None:
    hashes = hashes_of(2 * count)
    data = POLICY.create_filter_from_hashes(hashes[:count])
    assert len(data) * 8 / count <= 9.9
    passed = sum(POLICY.hash_may_match(one, data) for one in hashes[count:])
    rate = 1 / 256
    assert passed / count < rate + 4 * math.sqrt(rate / count)


@pytest.mark.parametrize("count", range(10_000, 200_000, 997))
def test_a_shape_takes_few_bits(count: int) -> None:
    shape = fuse_shape(count)
    assert (shape.slots + 7) * 8 / count <= 9.9
    assert (shape.arity - 1) * shape.segment_bits <= 31


def test_repeated_keys_fit() -> None:
    """Equal hashes never fit side by side: they are found, and taken once."""
    hashes = hashes_of(2000)
    data = POLICY.create_filter_from_hashes(hashes + hashes)
    assert shape_of(data) is not None
    assert data[-2] >= 1
    assert all(POLICY.hash_may_match(one, data) for one in hashes)


def test_another_seed_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """With too few slots for most seeds, some seed does; members are found under it."""
    found = 0
    for seed in range(40):
        hashes = hashes_of(FEWEST_KEYS, seed)
        packed = vec[i64](hashes)
        shape = FuseShape(4, 5, 37)
        for attempt in range(10):
            data = fuse._try_fuse(packed, shape, attempt)
            if data is not None:
                assert data[-2] == attempt
                assert all(POLICY.hash_may_match(one, data) for one in hashes)
                found += attempt > 0
                break
    assert found > 0


def test_where_no_seed_does_it_is_a_bloom_filter() -> None:
    """Hashes that share all their slots, as nothing but intent would make them."""
    hashes = [5 << 31 | n for n in range(FEWEST_KEYS)]
    data = POLICY.create_filter_from_hashes(hashes)
    if shape_of(data) is None:
        assert data == Bloom64Policy(10).create_filter_from_hashes(sorted(hashes))
    assert all(POLICY.hash_may_match(one, data) for one in hashes)


def test_few_keys_get_a_bloom_filter() -> None:
    keys = [b"%d" % n for n in range(FEWEST_KEYS - 1)]
    assert POLICY.create_filter(keys) == Bloom64Policy(10).create_filter(keys)
    assert BinaryFusePolicy(6).create_filter(keys) == Bloom64Policy(6).create_filter(keys)
    assert shape_of(POLICY.create_filter([*keys, b"one more"])) is not None


def test_the_slots_that_a_lookup_reads() -> None:
    hashes = hashes_of(5000)
    data = POLICY.create_filter_from_hashes(hashes)
    shape = shape_of(data)
    assert shape is not None
    assert data[-2] == 0
    for one in hashes[:50]:
        assert POLICY.probed_positions(one, data) == [8 * slot for slot in slots_of(one, shape)]


def test_cut_or_changed_it_denies_nothing_by_accident_of_sizes() -> None:
    """Sizes that do not fit each other are an encoding yet to come: any key may be there."""
    hashes = hashes_of(2000)
    data = POLICY.create_filter_from_hashes(hashes)
    for size in (2, 6, 7, 100, len(data) - 1):
        cut = data[len(data) - size :]
        if size < len(data):
            assert filter64_may_match(1, cut, 0, len(cut))
    for at in range(1, 8):
        for change in (0x01, 0x80, 0xFF):
            changed = bytearray(data)
            changed[-at] ^= change
            odd = bytes(changed)
            for one in hashes[:20]:  # no error, wherever it lies
                inside = filter64_may_match(one, b"." + odd, 1, 1 + len(odd))
                assert filter64_may_match(one, odd, 0, len(odd)) == inside
                POLICY.probed_positions(one, odd)


def test_by_key_and_by_hash() -> None:
    keys = [b"key%d" % n for n in range(2000)]
    data = POLICY.create_filter(keys)
    assert POLICY.create_filter_from_hashes([xxh3_hash(key) for key in keys]) == data
    assert all(POLICY.key_may_match(key, data) for key in keys)
    assert not POLICY.key_may_match(b"a", b"")
    assert not POLICY.key_may_match(b"a", b"\x07")


EDGES = [0, 1, (1 << 31) - 1, 1 << 31, (1 << 62) - 1, xxh3_hash(b"key")]
"""Hashes whose halves are all zeros or all ones, and one like any other."""


def test_filters_of_any_bytes_are_answered_by_all_readers_alike() -> None:
    """No size, shift or slot that a damaged filter states leads out of it."""
    answers = {False: 0, True: 0}
    fuses = 0
    for data in hostile_filters():
        fuses += shape_of(data) is not None
        for key_hash in EDGES:
            answer = filter64_may_match(key_hash, data, 0, len(data))
            inside = b"\xff" * 5 + data + b"\0" * 5
            assert filter64_may_match(key_hash, inside, 5, 5 + len(data)) == answer
            assert POLICY.hash_may_match(key_hash, data) == answer
            positions = POLICY.probed_positions(key_hash, data)
            assert all(0 <= position < 8 * len(data) for position in positions)
            if shape_of(data) is None and len(data) >= 2 and data[-1] > 30:
                assert answer  # an encoding yet to come
            answers[answer] += 1
    assert min(fuses, *answers.values()) > 500


@pytest.mark.parametrize(
    ("arity", "bits", "segments", "slots"),
    [
        (3, 15, (1 << 32) - 1, ((1 << 32) + 1) << 15),  # as they would be in a file of 2^47 bytes
        (4, 10, (1 << 32) - 1, ((1 << 32) + 2) << 10),
        (3, 15, 1 << 17, ((1 << 17) + 2) << 15),
        (3, 16, 1, 3 << 16),
        (4, 11, 1, 4 << 11),
        (3, 255, 1, 3 << 60),
        (3, 1, 0, 4),
        (3, 1, 1, 5),
    ],
)
def test_sizes_that_do_not_fit(arity: int, bits: int, segments: int, slots: int) -> None:
    """A filter that would need more than 31 bits for a place is taken for none."""
    assert not fuse._fits(arity, bits, segments, slots)


def test_sizes_that_fit() -> None:
    for shape in (FuseShape(3, 15, 1), FuseShape(4, 10, 7), fuse_shape(10**6), FuseShape(3, 0, 5)):
        assert fuse._fits(*shape[:2], shape.segments, shape.slots)
        assert not fuse._fits(*shape[:2], shape.segments, shape.slots + 1)
