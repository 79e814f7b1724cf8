from __future__ import annotations

import random
from typing import Any

import pytest

from lsmkv import BinaryFusePolicy, Bloom64Policy, BloomFilterPolicy
from lsmkv.tools.playground.filters import ASKED, bloom, others, passed, stranger

KEYS = [f"key {number * 7919 % 1000}" for number in range(32)]


def test_the_bits_are_those_of_the_policy() -> None:
    rng = random.Random(1)
    for per_key in (2, 10, 20):
        policy = BloomFilterPolicy(per_key)
        keys = [f"{rng.randrange(10**6)} é" for _ in range(rng.randrange(8, 60))]
        data = policy.create_filter([key.encode() for key in keys])
        question = {"keys": keys, "bits": 8 * len(data) - 8, "probes": policy.probes}
        found = bloom(question)
        assert found["hex"] == data.hex()
        assert found["ones"] == int.from_bytes(data[:-1], "little").bit_count()
        for key, shown in zip(keys, found["keys"], strict=True):
            assert shown["may_match"]
            assert len(shown["positions"]) == policy.probes
            assert shown["hash"] == policy.key_hash(key.encode())
        for asked in (keys[0], "absent", ""):
            answer = bloom(question | {"asked": asked})["asked"]
            assert answer["may_match"] == policy.key_may_match(asked.encode(), data)
            hashed = policy.key_hash(asked.encode())
            assert list(answer["positions"]) == policy.probed_positions(hashed, data)
            assert answer["present"] == (asked in keys)


def test_any_size_may_be_picked() -> None:
    for keys, bits, probes in ((1, 2048, 30), (500, 64, 1), (33, 336, 7), (0, 640, 6)):
        found = bloom({"keys": [f"{n}" for n in range(keys)], "bits": bits, "probes": probes})
        data = bytes.fromhex(found["hex"])
        assert (len(data), data[-1]) == (bits // 8 + 1, probes)
        assert found["ones"] <= keys * probes


def test_a_key_counts_once() -> None:
    once = bloom({"keys": ["a", "b"], "bits": 64, "probes": 6})
    assert bloom({"keys": ["a", "b", "a"], "bits": 64, "probes": 6}) == once


def test_the_measured_rate_is_near_the_expected_one() -> None:
    found = passed({"keys": KEYS, "per_key": 10})
    assert found["asked"] == ASKED
    assert (found["bits"], found["probes"]) == (320, 6)
    assert 50 < found["passed"] < 250  # of 10,000 at 10 bits a key
    assert found == passed({"keys": KEYS, "bits": 320, "probes": 6})
    assert passed({"keys": [], "bits": 64, "probes": 6})["passed"] == 0


def test_other_filters_have_the_same_keys() -> None:
    found = others({"keys": KEYS, "per_key": 10, "asked": KEYS[0]})
    keys = [key.encode() for key in KEYS]
    data = Bloom64Policy(10).create_filter(keys)
    assert found["bloom64"]["hex"] == data[:-1].hex()
    assert found["bloom64"]["lookup"]["may_match"]
    assert found["added"] == 1000 - len(KEYS)
    fuse = found["fuse"]
    assert fuse["bytes"] == len(
        BinaryFusePolicy().create_filter([*keys, *(b"made-up key %d" % n for n in range(968))])
    )
    lookup = fuse["lookup"]
    assert lookup["xored"] == lookup["fingerprint"]
    near = {
        one["first"] + at: byte
        for one in lookup["near"]
        for at, byte in enumerate(bytes.fromhex(one["hex"]))
    }
    assert [near[slot] for slot in lookup["slots"]] == list(lookup["values"])
    for one in (found["bloom64"], fuse):
        assert 0.3 < one["passed"] / ASKED / one["rate"] < 3


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({}, "bits must be whole bytes"),
        ({"bits": 65, "probes": 6}, "bits must be whole bytes"),
        ({"bits": 4096, "probes": 6}, "from 64 to 2,048"),
        ({"bits": 64, "probes": 31}, "probes must be from 1 to 30"),
        ({"bits": 64, "probes": 6, "keys": [1]}, "a key must be a text"),
        ({"bits": 64, "probes": 6, "keys": ["x" * 1025]}, "a key of more than 1,024 bytes"),
        ({"bits": 64, "probes": 6, "keys": [str(n) for n in range(501)]}, "more than 500 keys"),
    ],
)
def test_wrong_questions(question: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        bloom(question)


def test_a_stranger_is_a_false_positive() -> None:
    question = {"keys": KEYS, "bits": 320, "probes": 6}
    found = stranger(question)
    asked = bloom(question | {"asked": found["key"]})["asked"]
    assert asked["may_match"]
    assert not asked["present"]
    assert 1 <= found["tried"] <= ASKED
    nobody = stranger({"keys": [], "bits": 64, "probes": 6})
    assert nobody == {"key": None, "tried": ASKED}
