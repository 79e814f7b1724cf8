"""lsmkv.engine.filter.hash64: the hash against XXH3's own, and its width."""

from __future__ import annotations

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from librt.vecs import vec
from mypy_extensions import i64

from lsmkv.engine.filter.bloom64 import Bloom64Policy
from lsmkv.engine.filter.hash64 import append_hashes, packed, xxh3_hash

LOW_62_BITS = (1 << 62) - 1

GOLDEN = {
    b"": 0x2D06800538D394C2,
    b"a": 0x26C632B61E964E1F,
    b"hello": 0x1555E8555C62DCFD,
    b"key36": 0x23B36BB3427A0808,
}


@given(st.binary(max_size=300))
def test_it_is_xxh3_less_two_bits(key: bytes) -> None:
    assert xxh3_hash(key) == xxhash.xxh3_64_intdigest(key) & LOW_62_BITS


def key_whose_hash(bits: int, wanted: int) -> bytes:
    """The first of many keys whose whole hash begins with these bits."""
    for number in range(1_000_000):
        key = b"%d" % number
        if xxhash.xxh3_64_intdigest(key) >> (64 - bits) == wanted:
            return key
    raise AssertionError("no such key")


@pytest.mark.parametrize("top", [0b00, 0b01, 0b10, 0b11])
def test_the_highest_bits_are_left_out(top: int) -> None:
    """From 2^62 on, and from 2^63 on, where a machine integer would be negative."""
    key = key_whose_hash(12, top << 10 | 0x3FF)
    whole = xxhash.xxh3_64_intdigest(key)
    assert whole >> 62 == top
    assert xxh3_hash(key) == whole - (top << 62)
    policy = Bloom64Policy(10)
    assert policy.hash_may_match(xxh3_hash(key), policy.create_filter([key]))


def test_the_hash_never_changes() -> None:
    """It is on disk: the same on every platform, in every mode."""
    assert {key: xxh3_hash(key) for key in GOLDEN} == GOLDEN


def test_a_key_that_repeats_the_one_before_is_left_out() -> None:
    keys = [b"", b"", b"a", b"a", b"b", b"a"]
    hashes = list(append_hashes(append_hashes(vec[i64](), keys[:2]), keys[2:], keys[1]))
    assert hashes == list(append_hashes(vec[i64](), keys))
    assert hashes == [xxh3_hash(key) for key in (b"", b"a", b"b", b"a")]


@pytest.mark.parametrize("wrong", [-1, 1 << 62, 1 << 64])
def test_what_is_no_hash_is_refused(wrong: int) -> None:
    assert list(packed([0, LOW_62_BITS])) == [0, LOW_62_BITS]
    with pytest.raises(ValueError, match="not a hash of 62 bits"):
        packed([1, wrong])
