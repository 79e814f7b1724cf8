"""The hashes of a key, each taken at most once."""

from __future__ import annotations

from lsmkv.engine.filter.bloom import leveldb_hash
from lsmkv.engine.filter.hash64 import xxh3_hash
from lsmkv.engine.filter.key_hashes import KeyHashes


class Counting:
    """A policy whose hash is a number of its own, and which counts the calls."""

    name = "test.Counting"

    def __init__(self, number: int) -> None:
        self.number = number
        self.hashed: list[bytes] = []

    def create_filter(self, keys: object, /) -> bytes:
        return b""

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        return True

    def key_hash(self, key: bytes, /) -> int:
        self.hashed.append(key)
        return self.number

    def hash_may_match(self, key_hash: int, filter_data: bytes, /) -> bool:
        return True


def test_each_hash_is_the_keys() -> None:
    for key in (b"", b"k", b"key" * 100):
        hashes = KeyHashes(key)
        for _ in range(2):
            assert hashes.key == key
            assert hashes.leveldb() == leveldb_hash(key)
            assert hashes.xxh3() == xxh3_hash(key)


def test_a_policys_own_hash_is_taken_once() -> None:
    first, second = Counting(0), Counting((1 << 62) - 1)
    hashes = KeyHashes(b"k")
    assert [hashes.other(first) for _ in range(3)] == [0, 0, 0]
    assert first.hashed == [b"k"]
    assert hashes.other(second) == (1 << 62) - 1
    assert second.hashed == [b"k"]


def test_the_hashes_of_one_key_are_not_those_of_the_next() -> None:
    """Though the second object may take the memory of the first."""
    policy = Counting(7)
    for key in (b"a", b"b"):
        hashes = KeyHashes(key)
        assert hashes.leveldb() == leveldb_hash(key)
        assert hashes.xxh3() == xxh3_hash(key)
        assert hashes.other(policy) == 7
        del hashes
    assert policy.hashed == [b"a", b"b"]
