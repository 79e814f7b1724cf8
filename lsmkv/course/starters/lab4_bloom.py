"""Lab 4: the Bloom filter.  ``lsmkv course show 4`` is the text, ``lsmkv course check 4`` checks.

Write the five functions.  Each can be checked as soon as it is written.
"""

from __future__ import annotations

from collections.abc import Sequence


def bloom_hash(key: bytes) -> int:
    """The 32-bit hash of a key, 0 to 2**32 - 1, with the seed 0xbc9f1d34."""
    raise NotImplementedError


def probes(bits_per_key: int) -> int:
    """k, the number of bits that stand for one key: 1 to 30."""
    raise NotImplementedError


def create_filter(keys: Sequence[bytes], bits_per_key: int) -> bytes:
    """The filter for some keys: an array of bits in whole bytes, then one byte that holds k."""
    raise NotImplementedError


def key_may_match(key: bytes, filter_data: bytes) -> bool:
    """Return True if a key may be among those of a filter.  False is certain, True is a guess."""
    raise NotImplementedError


def predicted_rate(bits_per_key: float, k: int) -> float:
    """The share of absent keys for which a filter says True in error, by the formula."""
    raise NotImplementedError
