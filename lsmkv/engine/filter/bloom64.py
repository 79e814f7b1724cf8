"""Filters of 64-bit hashes: LevelDB's Bloom filter with a better hash and better probes.

The layout is LevelDB's: bits packed low first, then one byte that holds k.  The hash is XXH3
(``hash64.py``), so keys that look alike do not share bits.  With m bits, the halves a (high)
and b (low) of the hash give the k probes::

    position = a * m >> 31
    a = (a * 1103515245 + b) mod 2^31          for the next probe

A probe costs two multiplications and no division.  LevelDB's probes are an arithmetic progression,
which often repeats bits in a filter of a few hundred; these probes are not (compare Dillinger &
Manolios, "Bloom Filters in Probabilistic Verification", FMCAD 2004).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from librt.strings import BytesWriter
from librt.vecs import vec
from mypy_extensions import i64

from lsmkv.engine.filter.bloom import MAX_PROBES, MIN_BITS, checked_bits
from lsmkv.engine.filter.hash64 import HALF_BITS, HALF_MASK, append_hashes, packed, xxh3_hash
from lsmkv.engine.util.threads import pause
from lsmkv.engine.util.value import Value

if TYPE_CHECKING:
    from mypy_extensions import u8

MAX_FILTER_BITS: Final = 1 << 31
"""Positions have 31 bits; a filter of more bits would leave the others unused."""


_STEP: Final = 1103515245
_BITS: Final = bytes(1 << bit for bit in range(8))
PAUSE_EVERY: Final = 1 << 13
"""Keys after which a builder lets other threads run and signals be handled."""


class Bloom64Policy(Value):
    """``lsmkv.Bloom64``: a Bloom filter of 64-bit hashes; LevelDB reads such tables unfiltered.

    ``bits_per_key`` may be a fraction; k = round(bits_per_key * ln 2), limited to 1..30.
    At 10 bits a key, 8 in 1,000 absent keys pass, whatever the keys look like.  Consecutive
    versions of one key count once.

    >>> policy = Bloom64Policy(10)
    >>> data = policy.create_filter([b"hello", b"world"])
    >>> policy.key_may_match(b"hello", data), policy.key_may_match(b"x", data)
    (True, False)

    Cost: a hash of the key, O(its length), and at most k bits for each filter asked.  Raises
    ``TypeError`` or ``ValueError`` if ``bits_per_key`` is invalid.
    """

    name: str = "lsmkv.Bloom64"
    hash_name: str = "xxh3"
    preferred_layout: str = "table"

    def __init__(self, bits_per_key: int | float = 10) -> None:
        self.bits_per_key: int | float = checked_bits(bits_per_key)
        self.probes: int = best_probes(bits_per_key)

    def _arguments(self) -> tuple[Any, ...]:
        return (self.bits_per_key,)

    def __repr__(self) -> str:
        return f"Bloom64Policy({self.bits_per_key:g})"

    def with_bits(self, bits_per_key: int | float) -> Bloom64Policy:
        """The policy with another number of bits; this policy can read its filters.

        >>> Bloom64Policy(10).with_bits(12.5)
        Bloom64Policy(12.5)
        """
        return Bloom64Policy(bits_per_key)

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        """The filter for ``keys``: ``max(64, n * bits_per_key)`` bits in whole bytes, and k."""
        return build_bloom64(append_hashes(vec[i64](), list(keys)), self.bits_per_key)

    def create_filter_from_hashes(self, hashes: Sequence[int], /) -> bytes:
        """As :meth:`create_filter`, for keys of these hashes; ``ValueError`` for an invalid hash.

        >>> policy = Bloom64Policy(10)
        >>> policy.create_filter_from_hashes([policy.key_hash(b"hello")]).hex()
        '000824890000800007'
        """
        return build_bloom64(packed(hashes), self.bits_per_key)

    def key_hash(self, key: bytes, /) -> int:
        """The hash that :meth:`hash_may_match` takes, 62 bits.

        >>> hex(Bloom64Policy(10).key_hash(b"hello"))
        '0x1555e8555c62dcfd'
        """
        return xxh3_hash(key)

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        """Return True if ``key`` may be among the keys of the filter; *False* is certain."""
        return bloom64_may_match(xxh3_hash(key), filter_data, 0, len(filter_data))

    def hash_may_match(self, key_hash: int, filter_data: bytes, /) -> bool:
        """As :meth:`key_may_match`, with the key's hash.  It reads at most k bits.

        A filter of fewer than two bytes matches nothing, and a k above 30 matches everything.

        >>> policy = Bloom64Policy(10)
        >>> known = policy.key_hash(b"hello")
        >>> [policy.hash_may_match(known, policy.create_filter([k])) for k in (b"hello", b"x")]
        [True, False]
        """
        return bloom64_may_match(key_hash, filter_data, 0, len(filter_data))

    def probed_positions(self, key_hash: int, filter_data: bytes) -> list[int]:
        """The bits that :meth:`hash_may_match` probes, up to the first that is not set.

        >>> policy = Bloom64Policy(10)
        >>> policy.probed_positions(policy.key_hash(b"hello"), policy.create_filter([b"hello"]))
        [21, 55, 27, 18, 31, 11, 24]
        """
        return bloom64_positions(key_hash, filter_data)


def best_probes(bits_per_key: float) -> int:
    """The number of probes with the fewest false positives, limited to 1..30.

    >>> best_probes(10), best_probes(1), best_probes(100)
    (7, 1, 30)
    """
    return max(1, min(MAX_PROBES, round(bits_per_key * math.log(2))))


def build_bloom64(hashes: vec[i64], bits_per_key: float) -> bytes:
    """The filter for keys of these hashes.  O(keys * probes)."""
    keys: int = len(hashes)
    count: i64 = keys
    probes: i64 = best_probes(bits_per_key)
    wanted: i64 = int(min(keys * bits_per_key, MAX_FILTER_BITS - 8))
    wanted = max(wanted, MIN_BITS)
    size: i64 = (wanted + 7) // 8
    bits: i64 = size * 8
    array = BytesWriter()
    array.write(bytes(size))
    done: i64 = 0
    while done < count:
        if done & (PAUSE_EVERY - 1) == 0 and done > 0:
            pause(0)
        h: i64 = hashes[done]
        done += 1
        a: i64 = h >> HALF_BITS
        b: i64 = h & HALF_MASK
        left: i64 = probes
        while left > 0:
            position: i64 = a * bits >> HALF_BITS
            bit: u8 = _BITS[position & 7]
            at: i64 = position >> 3
            array[at] = array[at] | bit
            a = a * _STEP + b & HALF_MASK
            left -= 1
    array.append(best_probes(bits_per_key))
    return array.getvalue()


def bloom64_may_match(key_hash: i64, data: bytes, start: i64, stop: i64) -> bool:
    """:meth:`Bloom64Policy.hash_may_match` of the filter ``data[start:stop]``, in its place."""
    size: i64 = stop - start - 1
    if size < 1:
        return False
    probes: i64 = data[start + size]
    if probes > MAX_PROBES:
        return True
    bits: i64 = size * 8
    if bits > MAX_FILTER_BITS:
        return True
    a: i64 = key_hash >> HALF_BITS
    b: i64 = key_hash & HALF_MASK
    while probes > 0:
        position: i64 = a * bits >> HALF_BITS
        byte: i64 = data[start + (position >> 3)]
        if byte >> (position & 7) & 1 == 0:
            return False
        a = a * _STEP + b & HALF_MASK
        probes -= 1
    return True


def bloom64_positions(key_hash: int, filter_data: bytes) -> list[int]:
    """The bits that a lookup probes, up to the first that is not set; empty if it reads none."""
    bits = (len(filter_data) - 1) * 8
    if bits <= 0 or filter_data[-1] > MAX_PROBES:
        return []
    positions: list[int] = []
    a = key_hash >> HALF_BITS
    b = key_hash & HALF_MASK
    for _ in range(filter_data[-1]):
        position = a * bits >> HALF_BITS
        positions.append(position)
        if not filter_data[position // 8] >> position % 8 & 1:
            break
        a = a * _STEP + b & HALF_MASK
    return positions
