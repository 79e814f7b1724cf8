"""Asking a filter: the answer is the policy's own, wherever the filter lies."""

from __future__ import annotations

import pytest
from policies import FirstByte

from lsmkv.engine.filter.bloom import BloomFilterPolicy
from lsmkv.engine.filter.bloom64 import Bloom64Policy
from lsmkv.engine.filter.fuse import BinaryFusePolicy
from lsmkv.engine.filter.key_hashes import KeyHashes
from lsmkv.engine.filter.policy import FilterPolicy
from lsmkv.engine.filter.probe import probe_for

KEYS = [b"key%d" % number for number in range(1000)]
ABSENT = [b"absent%d" % number for number in range(1000)]


class ByHash(FirstByte):
    """The same, by a hash of its own; it keeps what it was asked."""

    name = "test.ByHash"

    def __init__(self) -> None:
        self.asked: list[tuple[int, bytes]] = []

    def key_hash(self, key: bytes, /) -> int:
        return key[0]

    def hash_may_match(self, key_hash: int, filter_data: bytes, /) -> bool:
        self.asked.append((key_hash, filter_data))
        return key_hash in filter_data


class ByXXH3(ByHash):
    """By one of the two hashes that policies share."""

    name = "test.ByXXH3"
    hash_name = "xxh3"

    def key_hash(self, key: bytes, /) -> int:
        raise AssertionError("a Get takes this hash itself")

    def hash_may_match(self, key_hash: int, filter_data: bytes, /) -> bool:
        self.asked.append((key_hash, filter_data))
        return True


class ByLevelDBHash(ByXXH3):
    name = "test.ByLevelDBHash"
    hash_name = "leveldb"


POLICIES: list[FilterPolicy] = [
    BloomFilterPolicy(10),
    Bloom64Policy(10),
    BinaryFusePolicy(),
    FirstByte(),
    ByHash(),
]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_the_answer_is_the_policys(policy: FilterPolicy) -> None:
    data = policy.create_filter(KEYS)
    probe = probe_for(policy)
    for key in [*KEYS, *ABSENT]:
        hashes = KeyHashes(key)
        answer = probe.may_match(hashes, data, 0, len(data))
        assert answer == policy.key_may_match(key, data)
        assert probe.may_match(hashes, b"\xff" * 3 + data + b"\x07" * 9, 3, 3 + len(data)) == answer


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_a_filter_of_no_bytes_was_made_of_no_keys(policy: FilterPolicy) -> None:
    for place in (0, 2):
        assert not probe_for(policy).may_match(KeyHashes(b"key1"), b"...", place, place)


def test_a_policy_with_a_hash_is_asked_by_it() -> None:
    policy = ByHash()
    hashes = KeyHashes(b"kind")
    assert probe_for(policy).may_match(hashes, b"-k-", 1, 2)
    assert not probe_for(policy).may_match(hashes, b"-x-", 1, 2)
    assert policy.asked == [(ord("k"), b"k"), (ord("k"), b"x")]


def test_a_policy_that_shares_a_hash_does_not_take_it_again() -> None:
    hashes = KeyHashes(b"kind")
    for policy, expected in ((ByXXH3(), hashes.xxh3()), (ByLevelDBHash(), hashes.leveldb())):
        assert probe_for(policy).may_match(hashes, b"data", 0, 4)
        assert policy.asked == [(expected, b"data")]
