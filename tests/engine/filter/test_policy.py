"""lsmkv.engine.filter.policy: which policies may be asked by hash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import lsmkv
from lsmkv.engine.filter.bloom import BloomFilterPolicy
from lsmkv.engine.filter.bloom64 import Bloom64Policy
from lsmkv.engine.filter.fuse import BinaryFusePolicy
from lsmkv.engine.filter.policy import (
    LEVELDB_HASH,
    NO_HASH,
    OTHER_HASH,
    XXH3_HASH,
    FilterPolicy,
    hash_kind,
    key_hasher,
)


class Exact:
    """A user's policy that has no hash: all keys, each with its length."""

    name = "test.Exact"

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        return b"".join(bytes([len(key)]) + key for key in keys)

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        return bytes([len(key)]) + key in filter_data


class HalfHashed(Exact):
    def key_hash(self, key: bytes, /) -> int:
        return len(key)


def test_the_bloom_filter_may_be_asked_by_hash() -> None:
    policy: FilterPolicy = BloomFilterPolicy(10)
    hasher = key_hasher(policy)
    assert hasher is policy
    data = policy.create_filter([b"a"])
    assert hasher.hash_may_match(hasher.key_hash(b"a"), data)


def test_another_policy_may_not() -> None:
    exact: FilterPolicy = Exact()
    assert key_hasher(exact) is None
    assert key_hasher(HalfHashed()) is None


class Hashed(HalfHashed):
    def hash_may_match(self, key_hash: int, filter_data: bytes, /) -> bool:
        return True


class HashedByXXH3(Hashed):
    hash_name = "xxh3"


class Misnamed(Exact):
    hash_name = "xxh3"


def test_a_policy_states_which_hash_it_takes() -> None:
    assert hash_kind(BloomFilterPolicy(10)) == LEVELDB_HASH
    assert hash_kind(Bloom64Policy(10)) == hash_kind(BinaryFusePolicy()) == XXH3_HASH
    assert hash_kind(Hashed()) == OTHER_HASH
    assert hash_kind(HashedByXXH3()) == XXH3_HASH
    assert hash_kind(Exact()) == NO_HASH
    assert hash_kind(Misnamed()) == NO_HASH  # it cannot be asked by hash


def salted(base: Any) -> Any:
    """A policy derived from one of lsmkv's, which takes a hash of the key and a salt."""

    class Salted(base):  # type: ignore[misc]
        name = "test.Salted"

        def create_filter(self, keys: Sequence[bytes], /) -> Any:
            return super().create_filter([b"salt" + key for key in keys])

        def key_hash(self, key: bytes, /) -> Any:
            return super().key_hash(b"salt" + key)

        def key_may_match(self, key: bytes, filter_data: bytes, /) -> Any:
            return super().key_may_match(b"salt" + key, filter_data)

    return Salted()


@pytest.mark.skipif(lsmkv.COMPILED, reason="nothing derives from a compiled class")
@pytest.mark.parametrize("layout", ["block", "table"])
@pytest.mark.parametrize("base", [BloomFilterPolicy, Bloom64Policy, BinaryFusePolicy])
def test_a_derived_policy_is_asked_itself(base: Any, layout: Any) -> None:
    """Neither its hash nor its filters are those of the policy that it derives from."""
    if base is BinaryFusePolicy and layout == "block":
        layout = "both"
    policy = salted(base)
    assert hash_kind(policy) == OTHER_HASH
    keys = [b"%04d" % n for n in range(1500)]
    options = {"filter_policy": policy, "filter_layout": layout, "prefix_extractor": 2}
    with lsmkv.DB(":memory:", **options) as db:
        for key in keys:
            db.put(key, key)
        db.flush()
        assert [db.get(key) for key in keys] == keys
        assert len(list(db.iterator(prefix=b"01"))) == 100
        assert [db.get(key + b"x") for key in keys] == [None] * len(keys)
        assert db.stats().filter_negatives > 1300
        assert db.verify() == []
