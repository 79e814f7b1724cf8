"""Lab 4, by the engine's own module."""

from __future__ import annotations

from collections.abc import Sequence

from lsmkv.engine.filter.bloom import BloomFilterPolicy, predicted_rate
from lsmkv.engine.filter.bloom import leveldb_hash as bloom_hash

__all__ = ["bloom_hash", "create_filter", "key_may_match", "predicted_rate", "probes"]


def probes(bits_per_key: int) -> int:
    return BloomFilterPolicy(bits_per_key).probes


def create_filter(keys: Sequence[bytes], bits_per_key: int) -> bytes:
    return BloomFilterPolicy(bits_per_key).create_filter(keys)


def key_may_match(key: bytes, filter_data: bytes) -> bool:
    return BloomFilterPolicy().key_may_match(key, filter_data)
