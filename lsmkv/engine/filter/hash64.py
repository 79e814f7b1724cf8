"""The hash of the filters that LevelDB does not know: XXH3, cut to 62 bits.

LevelDB's own hash has 32 bits, and similar keys get similar hashes: 8 in 100 absent sequential keys
(``%016d``) pass a filter of 10 bits a key.  XXH3 (source: ``xxHash``, ``doc/xxhash_spec.md``) has
no such weakness, no seed here, and gives the same number on every platform.  Its two highest bits
are dropped, so a hash is never negative and fits a machine integer.  It is passed as one number.
Filters use its two halves of 31 bits, whose products also fit.

Measured, 16 bytes: 31 ns compiled, 147 ns in pure Python; a hash written in lsmkv itself would take
6 and 1,425.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from librt.strings import read_i64_be
from librt.vecs import append, vec
from mypy_extensions import i64
from xxhash import xxh3_64_digest

HALF_BITS: Final = 31
HALF_MASK: Final = 0x7FFFFFFF
_MASK: Final = 0x3FFFFFFFFFFFFFFF


def xxh3_hash(key: bytes) -> i64:
    """The hash of a key: XXH3's 64 bits without the two highest.  O(len(key)).

    >>> hex(xxh3_hash(b"hello"))
    '0x1555e8555c62dcfd'
    """
    return read_i64_be(xxh3_64_digest(key), 0) & _MASK


def append_hashes(hashes: vec[i64], keys: list[bytes], last: bytes | None = None) -> vec[i64]:
    """``hashes`` with those of ``keys``; a key equal to the one before it is left out.

    ``last`` is the key before the first.
    """
    for key in keys:
        if key != last:
            hashes = append(hashes, xxh3_hash(key))
            last = key
    return hashes


def packed(hashes: Sequence[int]) -> vec[i64]:
    """Hashes as machine integers; ``ValueError`` for one that :func:`xxh3_hash` never returns."""
    result = vec[i64](capacity=len(hashes))
    for one in hashes:
        if not 0 <= one <= 0x3FFFFFFFFFFFFFFF:
            raise ValueError(f"not a hash of 62 bits: {one}")
        result = append(result, one)
    return result
