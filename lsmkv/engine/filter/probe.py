"""Asks a filter whether it may hold a key: one interface for the filters of every policy.

A table chooses the probe of its filters when it is opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsmkv.engine.filter.bloom import bloom_may_match, is_bloom, leveldb_hash
from lsmkv.engine.filter.fuse import filter64_may_match, is_filter64
from lsmkv.engine.filter.key_hashes import KeyHashes
from lsmkv.engine.filter.policy import (
    LEVELDB_HASH,
    XXH3_HASH,
    FilterPolicy,
    HashedFilterPolicy,
    hash_kind,
    key_hasher,
)

if TYPE_CHECKING:
    from mypy_extensions import i64


class FilterProbe:
    """Asks the filters of one policy, by the key.  Any thread may use it."""

    def __init__(self, policy: FilterPolicy) -> None:
        self._policy = policy

    def may_match(self, hashes: KeyHashes, data: bytes, start: i64, stop: i64) -> bool:
        """False only if the filter ``data[start:stop]`` was made without this key.

        A filter of no bytes was made without any.  Raises what the policy does.
        """
        return start < stop and self._policy.key_may_match(hashes.key, data[start:stop])

    def count_denied(self, keys: list[bytes], data: bytes, start: i64, stop: i64) -> int:
        """Return the number of these keys that the filter ``data[start:stop]`` denies."""
        denied = 0
        for key in keys:
            if not self.may_match(KeyHashes(key), data, start, stop):
                denied += 1
        return denied


class HashProbe(FilterProbe):
    """Asks filters of a policy that uses the key's hash."""

    def __init__(self, policy: HashedFilterPolicy) -> None:
        super().__init__(policy)
        self._hasher = policy
        self._kind: i64 = hash_kind(policy)

    def may_match(self, hashes: KeyHashes, data: bytes, start: i64, stop: i64) -> bool:
        """As in the base class."""
        if start == stop:
            return False
        if self._kind == LEVELDB_HASH:
            key_hash = hashes.leveldb()
        elif self._kind == XXH3_HASH:
            key_hash = hashes.xxh3()
        else:
            key_hash = hashes.other(self._hasher)
        return self._hasher.hash_may_match(key_hash, data[start:stop])


class BloomProbe(FilterProbe):
    """Asks LevelDB's Bloom filters where they lie, without a copy."""

    def may_match(self, hashes: KeyHashes, data: bytes, start: i64, stop: i64) -> bool:
        """As in the base class.  At most k bits are read."""
        return bloom_may_match(hashes.leveldb(), data, start, stop)

    def count_denied(self, keys: list[bytes], data: bytes, start: i64, stop: i64) -> int:
        """As in the base class."""
        denied = 0
        for key in keys:
            if not bloom_may_match(leveldb_hash(key), data, start, stop):
                denied += 1
        return denied


class Filter64Probe(FilterProbe):
    """Asks lsmkv's filters of 64-bit hashes where they lie, without a copy."""

    def may_match(self, hashes: KeyHashes, data: bytes, start: i64, stop: i64) -> bool:
        """As in the base class."""
        return filter64_may_match(hashes.xxh3(), data, start, stop)


def probe_for(policy: FilterPolicy) -> FilterProbe:
    """The probe of the filters that a policy has made."""
    if is_bloom(policy):
        return BloomProbe(policy)
    if is_filter64(policy):
        return Filter64Probe(policy)
    hasher = key_hasher(policy)
    return FilterProbe(policy) if hasher is None else HashProbe(hasher)
