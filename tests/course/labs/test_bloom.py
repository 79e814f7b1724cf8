"""Lab 4: planted mistakes are named."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from labs import Mistake, Planted, assert_caught, mistakes

from lsmkv.course.labs.bloom import LAB, without_cutting
from lsmkv.engine.filter.bloom import BloomFilterPolicy, leveldb_hash, predicted_rate


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


MISTAKES: Planted = {
    ("create_filter", "the bytes of a filter"): [
        ("sums not cut", with_sums_not_cut, "not reduced to 32 bits before the modulus"),
        ("bits turned", with_bits_turned, "1 << (p % 8)"),
        ("a probe less", with_a_probe_less, "0 (probe 6 of b'hello')"),
    ],
    ("bloom_hash", "the hash of a key"): [
        ("big-endian words", with_words_turned, "little"),
        ("the rest turned", with_the_rest_turned, "left over"),
        ("64 bits", lambda key: leveldb_hash(key) + (len(key) << 32), "more than 32 bits"),
        ("signed", lambda key: -1, "seed"),
    ],
    ("probes", "the number of probes"): [
        ("rounded k", lambda bits: max(1, min(30, round(bits * 0.69))), "truncated, not rounded"),
        ("k without a limit", lambda bits: max(1, int(bits * 0.69)), "at most 30"),
        ("k of 0", lambda bits: int(bits * 0.69), "at least 1"),
    ],
    ("create_filter", "the size of a filter"): [
        ("no byte for k", lambda keys, bits: made(keys, bits)[:-1], "which stores k"),
        ("no minimum", without_a_minimum, "at least 64 bits"),
        ("rounded down", cut_down, "rounded up"),
    ],
    ("key_may_match", "no false negatives"): [
        (
            "a false negative",
            lambda key, data: key != b"" and asked(key, data),
            "A false negative: b'' is among",
        ),
    ],
    ("key_may_match", "asking a filter"): [
        (
            "a different k",
            lambda key, data: data[-1:] > b"\x1e" or asked(key, data[:-1] + b"\x06"),
            "k is the last byte of the filter",
        ),
        (
            "reserved k",
            lambda key, data: data[-1:] < b"\x1f" and asked(key, data),
            "reserved for other encodings",
        ),
        (
            "k of 30 reserved, too",
            lambda key, data: data[-1:] == b"\x1e" or asked(key, data),
            "The last byte is 30, which is ordinary",
        ),
        (
            "an empty filter",
            lambda key, data: len(data) < 2 or asked(key, data),
            "fewer than two bytes",
        ),
    ],
    ("predicted_rate", "the rate of errors"): [
        (
            "another formula",
            lambda bits, k: 1 - (1 - predicted_rate(bits, k)) ** k,
            "The formula is",
        ),
    ],
    ("key_may_match", "the rate of errors"): [
        (
            "one bit asked",
            lambda key, data: asked(key, data[:-1] + b"\x01"),
            "Do both functions use all k probes",
        ),
    ],
    ("key_may_match", "in the real engine"): [
        (
            "a key lost in the store",
            lambda key, data: not key.startswith(b"7") and asked(key, data),
            "lost b'7",
        ),
        ("a filter that saves nothing", lambda key, data: True, "save too few reads"),
    ],
    ("create_filter", "in the real engine"): [
        (
            "another filter in the store",
            lambda keys, bits: made([*keys, b"one more"], bits),
            "in a filter block",
        ),
    ],
}


@pytest.mark.parametrize("mistake", mistakes(MISTAKES), ids=lambda mistake: mistake.name)
def test_a_mistake_is_named(mistake: Mistake) -> None:
    assert_caught(LAB, mistake)


def test_each_check_catches_a_mistake() -> None:
    assert {check for _, check in MISTAKES} == {check.name for check in LAB.checks}
