"""lsmkv.engine.filter.bloom64: exact bytes, members, and the rates that the textbook predicts."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.engine.filter.bloom import predicted_rate
from lsmkv.engine.filter.bloom64 import Bloom64Policy, best_probes, bloom64_positions
from lsmkv.engine.filter.hash64 import xxh3_hash

HALF = (1 << 31) - 1


def plain_filter(hashes: list[int], bits: int, probes: int) -> bytes:
    """The filter by the definition, in big integers."""
    array = 0
    for one in hashes:
        a, b = one >> 31, one & HALF
        for _ in range(probes):
            array |= 1 << (a * bits >> 31)
            a = (a * 1103515245 + b) % (1 << 31)
    return array.to_bytes(bits // 8, "little") + bytes([probes])


@given(
    st.lists(st.integers(0, (1 << 62) - 1), max_size=40),
    st.floats(1, 40),
)
def test_exact_bytes(hashes: list[int], bits_per_key: float) -> None:
    policy = Bloom64Policy(bits_per_key)
    bits = (max(64, int(len(hashes) * bits_per_key)) + 7) // 8 * 8
    expected = plain_filter(hashes, bits, policy.probes)
    assert policy.create_filter_from_hashes(hashes) == expected
    assert all(policy.hash_may_match(one, expected) for one in hashes)


@pytest.mark.parametrize("edge", [0, HALF, HALF + 1, (1 << 62) - 1, HALF << 31])
def test_the_edges_of_the_hash(edge: int) -> None:
    policy = Bloom64Policy(10)
    data = policy.create_filter_from_hashes([edge])
    assert data == plain_filter([edge], 64, 7)
    assert policy.hash_may_match(edge, data)


@given(st.lists(st.binary(max_size=12), max_size=60))
def test_no_member_is_denied(keys: list[bytes]) -> None:
    policy = Bloom64Policy(3)
    data = policy.create_filter(keys)
    assert all(policy.key_may_match(key, data) for key in keys)
    assert all(policy.hash_may_match(policy.key_hash(key), data) for key in keys)


def test_versions_of_a_key_count_once() -> None:
    policy = Bloom64Policy(10)
    keys = [b"key%d" % n for n in range(100)]
    assert policy.create_filter([key for key in keys for _ in range(9)]) == policy.create_filter(
        keys
    )


def corpora() -> dict[str, list[bytes]]:
    """Keys of kinds that LevelDB's hash takes well, and badly."""
    source = random.Random(7)
    return {
        "random": [source.randbytes(16) for _ in range(40_000)],
        "counting": [b"%016d" % n for n in range(40_000)],
        "big-endian": [n.to_bytes(8, "big") for n in range(40_000)],
        "time series": [b"cpu.%03d.%010d" % (n % 40, 1_700_000_000 + n) for n in range(40_000)],
    }


def most(rate: float, asked: int) -> float:
    """The rate, and four standard deviations of a sample of so many."""
    return rate + 4 * math.sqrt(rate * (1 - rate) / asked)


@pytest.mark.parametrize("kind", corpora())
def test_false_positives_are_those_of_the_textbook(kind: str) -> None:
    """Every other key is in, the others are asked: one filter, and filters of 35 keys."""
    keys = corpora()[kind]
    inside, outside = keys[::2], keys[1::2]
    policy = Bloom64Policy(10)
    whole = policy.create_filter(inside)
    passed = sum(policy.key_may_match(key, whole) for key in outside)
    assert passed / len(outside) < most(predicted_rate(10, 7), len(outside))
    passed = asked = 0
    for at in range(0, 3500, 35):
        small = policy.create_filter(inside[at : at + 35])
        for key in outside[at : at + 200]:
            asked += 1
            passed += policy.key_may_match(key, small)
    # The bits are a whole number of bytes, and few: 352 for 35 keys.
    assert passed / asked < most(0.0095, asked)


def test_positions_are_those_that_a_lookup_reads() -> None:
    policy = Bloom64Policy(10)
    data = policy.create_filter([b"a", b"b"])
    member = policy.probed_positions(xxh3_hash(b"a"), data)
    assert len(member) == 7
    assert all(data[bit // 8] >> bit % 8 & 1 for bit in member)
    absent = bloom64_positions(xxh3_hash(b"absent"), data)
    assert [data[bit // 8] >> bit % 8 & 1 for bit in absent][-1] == 0


def test_filters_that_say_nothing() -> None:
    policy = Bloom64Policy(10)
    assert not policy.key_may_match(b"a", b"")
    assert not policy.key_may_match(b"a", b"\x07")
    assert policy.key_may_match(b"a", bytes(8) + b"\x1f")  # reserved for encodings yet to come
    assert (
        policy.probed_positions(1, b"\x07") == policy.probed_positions(1, bytes(8) + b"\x1f") == []
    )


def test_probes() -> None:
    assert [best_probes(bits) for bits in (1, 1.44, 2.9, 9.4, 10, 14.4, 44, 1000)] == [
        *(1, 1, 2, 7, 7, 10, 30, 30)
    ]


@pytest.mark.parametrize("bits", ["10", None, True])
def test_bits_per_key_must_be_a_number(bits: object) -> None:
    with pytest.raises(TypeError):
        Bloom64Policy(bits)  # type: ignore[arg-type]


@pytest.mark.parametrize("bits", [0, 0.5, -3, math.nan, math.inf])
def test_bits_per_key_must_be_enough(bits: float) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Bloom64Policy(bits)
