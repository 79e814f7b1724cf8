"""Lab 4: planted mistakes are named."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from labs import Mistake, assert_caught

from lsmkv.course.labs.bloom import LAB, without_cutting
from lsmkv.filter.bloom import BloomFilterPolicy, leveldb_hash, predicted_rate


def made(keys: Sequence[bytes], bits: int) -> bytes:
    return BloomFilterPolicy(bits).create_filter(keys)


def asked(key: bytes, data: bytes) -> bool:
    return BloomFilterPolicy().key_may_match(key, data)


def with_words_turned(key: bytes) -> int:
    whole = len(key) // 4 * 4
    words = [key[at : at + 4][::-1] for at in range(0, whole, 4)]
    return leveldb_hash(b"".join(words) + key[whole:])


def with_the_rest_turned(key: bytes) -> int:
    whole = len(key) // 4 * 4
    return leveldb_hash(key[:whole] + key[whole:][::-1])


def with_bits_turned(keys: Sequence[bytes], bits: int) -> bytes:
    data = made(keys, bits)
    return bytes(int(f"{byte:08b}"[::-1], 2) for byte in data[:-1]) + data[-1:]


def with_a_probe_less(keys: Sequence[bytes], bits: int) -> bytes:
    policy = BloomFilterPolicy(bits)
    policy.probes = max(1, policy.probes - 1)
    return policy.create_filter(keys)[:-1] + bytes([BloomFilterPolicy(bits).probes])


def without_a_minimum(keys: Sequence[bytes], bits: int) -> bytes:
    size = (len(keys) * bits + 7) // 8
    return made(keys, bits)[:size] + made(keys, bits)[-1:]


def cut_down(keys: Sequence[bytes], bits: int) -> bytes:
    data = made(keys, bits)
    return data if len(keys) * bits % 8 == 0 or len(data) == 9 else data[:-2] + data[-1:]


def with_sums_not_cut(keys: Sequence[bytes], bits: int) -> bytes:
    return without_cutting(keys, made(keys, bits))


MISTAKES = (
    Mistake(
        "sums not cut",
        "create_filter",
        with_sums_not_cut,
        "the bytes of a filter",
        "not reduced to 32 bits before the modulus",
    ),
    Mistake("big-endian words", "bloom_hash", with_words_turned, "the hash of a key", "little"),
    Mistake(
        "the rest turned", "bloom_hash", with_the_rest_turned, "the hash of a key", "left over"
    ),
    Mistake(
        "64 bits",
        "bloom_hash",
        lambda key: leveldb_hash(key) + (len(key) << 32),
        "the hash of a key",
        "more than 32 bits",
    ),
    Mistake("signed", "bloom_hash", lambda key: -1, "the hash of a key", "seed"),
    Mistake(
        "rounded k",
        "probes",
        lambda bits: max(1, min(30, round(bits * 0.69))),
        "the number of probes",
        "truncated, not rounded",
    ),
    Mistake(
        "k without a limit",
        "probes",
        lambda bits: max(1, int(bits * 0.69)),
        "the number of probes",
        "at most 30",
    ),
    Mistake(
        "k of 0", "probes", lambda bits: int(bits * 0.69), "the number of probes", "at least 1"
    ),
    Mistake(
        "no byte for k",
        "create_filter",
        lambda keys, bits: made(keys, bits)[:-1],
        "the size of a filter",
        "which stores k",
    ),
    Mistake(
        "no minimum", "create_filter", without_a_minimum, "the size of a filter", "at least 64 bits"
    ),
    Mistake("rounded down", "create_filter", cut_down, "the size of a filter", "rounded up"),
    Mistake(
        "bits turned", "create_filter", with_bits_turned, "the bytes of a filter", "1 << (p % 8)"
    ),
    Mistake(
        "a probe less",
        "create_filter",
        with_a_probe_less,
        "the bytes of a filter",
        "0 (probe 6 of b'hello')",
    ),
    Mistake(
        "a false negative",
        "key_may_match",
        lambda key, data: key != b"" and asked(key, data),
        "no false negatives",
        "A false negative: b'' is among",
    ),
    Mistake(
        "a different k",
        "key_may_match",
        lambda key, data: data[-1:] > b"\x1e" or asked(key, data[:-1] + b"\x06"),
        "asking a filter",
        "k is the last byte of the filter",
    ),
    Mistake(
        "reserved k",
        "key_may_match",
        lambda key, data: data[-1:] < b"\x1f" and asked(key, data),
        "asking a filter",
        "reserved for other encodings",
    ),
    Mistake(
        "an empty filter",
        "key_may_match",
        lambda key, data: len(data) < 2 or asked(key, data),
        "asking a filter",
        "fewer than two bytes",
    ),
    Mistake(
        "another formula",
        "predicted_rate",
        lambda bits, k: 1 - (1 - predicted_rate(bits, k)) ** k,
        "the rate of errors",
        "The formula is",
    ),
    Mistake(
        "one bit asked",
        "key_may_match",
        lambda key, data: asked(key, data[:-1] + b"\x01"),
        "the rate of errors",
        "Do both functions use all k probes",
    ),
    Mistake(
        "a key lost in the store",
        "key_may_match",
        lambda key, data: not key.startswith(b"7") and asked(key, data),
        "in the real engine",
        "lost b'7",
    ),
    Mistake(
        "another filter in the store",
        "create_filter",
        lambda keys, bits: made([*keys, b"one more"], bits),
        "in the real engine",
        "in a filter block",
    ),
    Mistake(
        "a filter that saves nothing",
        "key_may_match",
        lambda key, data: True,
        "in the real engine",
        "save too few reads",
    ),
)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_named(mistake: Mistake) -> None:
    assert_caught(LAB, mistake)


def test_each_check_catches_a_mistake() -> None:
    assert {mistake.check for mistake in MISTAKES} == {check.name for check in LAB.checks}
