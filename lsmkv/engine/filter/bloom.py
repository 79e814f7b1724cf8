"""The Bloom filter of LevelDB, bit for bit (source: LevelDB, ``util/bloom.cc``, ``util/hash.cc``).

A filter of m bits for n keys with k probes answers *no* with certainty and *maybe* with an error.
The maths is derived in ``docs/reference/filters.md``; in short (Bloom, CACM 13(7), 1970):

* best number of probes: ``k = m/n ln 2``
* false-positive rate of a large filter: ``p = (1 - e^(-kn/m))^k``; of a small one: ``rates.py``
* bits wanted for a rate: ``m = -n ln p / (ln 2)^2``

The k probes come from one 32-bit hash by double hashing: h, h + d, h + 2d, ... modulo m, with d the
hash rotated right by 17 bits (Kirsch & Mitzenmacher, ESA 2006).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from librt.strings import BytesWriter, read_i64_le

from lsmkv.engine.filter.policy import FilterPolicy
from lsmkv.engine.filter.rates import expected_rate, keys_from_fill
from lsmkv.engine.util.value import Value

if TYPE_CHECKING:
    from mypy_extensions import i64, u8

BLOOM_SEED: Final = 0xBC9F1D34
MAX_PROBES: Final = 30
"""A last byte above this is not a number of probes: it marks another encoding."""
MIN_BITS: Final = 64
"""A filter has at least this many bits, since a tiny one would have a high error."""
_BEST_RATE = 2.0**-32
_BITS: Final = bytes(1 << bit for bit in range(8))


def leveldb_hash(data: bytes, seed: int = BLOOM_SEED) -> int:
    """LevelDB's 32-bit hash, close to Murmur's.

    Little-endian words of four bytes are each added, multiplied and folded; one to three bytes
    that remain are added and multiplied once more.  O(len(data)).

    >>> hex(leveldb_hash(b"", 0xBC9F1D34))
    '0xbc9f1d34'
    """
    m: i64 = 0xC6A4A793
    n: i64 = len(data)
    h: i64 = (seed ^ (n * m)) & 0xFFFFFFFF
    at: i64 = 0
    while at + 8 <= n:
        two: i64 = read_i64_le(data, at)
        h = (h + two & 0xFFFFFFFF) * m & 0xFFFFFFFF
        h ^= h >> 16
        h = (h + (two >> 32) & 0xFFFFFFFF) * m & 0xFFFFFFFF
        h ^= h >> 16
        at += 8
    if at + 4 <= n:
        b0: i64 = data[at]  # each a machine integer before it is shifted
        b1: i64 = data[at + 1]
        b2: i64 = data[at + 2]
        b3: i64 = data[at + 3]
        h = (h + (b0 | b1 << 8 | b2 << 16 | b3 << 24) & 0xFFFFFFFF) * m & 0xFFFFFFFF
        h ^= h >> 16
        at += 4
    rest: i64 = n - at
    if rest > 0:
        if rest == 3:
            h += data[at + 2] << 16
        if rest >= 2:
            h += data[at + 1] << 8
        h = ((h + data[at]) & 0xFFFFFFFF) * m & 0xFFFFFFFF
        h ^= h >> 24
    return h


class BloomFilterPolicy(Value):
    """``leveldb.BuiltinBloomFilter2``: bits packed low first, then one byte that holds k.

    ``bits_per_key`` may be a fraction; k = int(bits_per_key * 0.69), limited to 1..30.
    A filter is rounded up to whole bytes and to at least 64 bits, since a tiny filter would have a
    high error.  At 10 bits a key, about 1 in 100 absent keys passes if keys look random.

    >>> policy = BloomFilterPolicy(10)
    >>> bits = policy.create_filter([b"hello", b"world"])
    >>> bits.hex()
    '114000414410401006'
    >>> policy.key_may_match(b"hello", bits), policy.key_may_match(b"x", bits)
    (True, False)

    Cost: a hash of the key, O(its length), and at most k bits for each filter asked.  Raises
    ``TypeError`` or ``ValueError`` if ``bits_per_key`` is invalid.
    """

    name: str = "leveldb.BuiltinBloomFilter2"
    hash_name: str = "leveldb"
    preferred_layout: str = "block"

    def __init__(self, bits_per_key: int | float = 10) -> None:
        # A union, here and in similar places: compiled, a float would turn 10 into 10.0.
        self.bits_per_key: int | float = checked_bits(bits_per_key)
        self.probes: int = max(1, min(MAX_PROBES, int(bits_per_key * 0.69)))

    @classmethod
    def for_false_positive_rate(cls, rate: float) -> BloomFilterPolicy:
        """The smallest policy whose predicted false-positive rate is at most ``rate``.

        The prediction is for large filters; filters of a few dozen keys have a higher rate.
        Raises ``ValueError`` below 2**-32, the rate at which two keys share their 32-bit hash.

        >>> BloomFilterPolicy.for_false_positive_rate(0.01).bits_per_key
        10
        """
        bits = math.ceil(bits_per_key_for_rate(rate))
        if rate < _BEST_RATE:
            raise ValueError(f"a filter of 32-bit hashes cannot promise a rate of {rate}")
        while predicted_rate(bits, cls(bits).probes) > rate:
            bits += 1  # whole probes fall short of the ideal number
        return cls(bits)

    def _arguments(self) -> tuple[Any, ...]:
        return (self.bits_per_key,)

    def __repr__(self) -> str:
        return f"BloomFilterPolicy({self.bits_per_key:g})"

    def with_bits(self, bits_per_key: int | float) -> BloomFilterPolicy:
        """The policy with another number of bits; this policy and LevelDB can read its filters.

        >>> BloomFilterPolicy(10).with_bits(12.5).probes
        8
        """
        return BloomFilterPolicy(bits_per_key)

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        """The filter for ``keys``: ``max(64, n * bits_per_key)`` bits in whole bytes, and k."""
        bits: i64 = int(len(keys) * self.bits_per_key)
        bits = max(bits, MIN_BITS)
        size: i64 = (bits + 7) // 8
        bits = size * 8
        probes: i64 = self.probes
        array = BytesWriter()
        array.write(bytes(size))
        for key in keys:
            h: i64 = leveldb_hash(key)
            delta: i64 = ((h >> 17) | (h << 15)) & 0xFFFFFFFF
            left: i64 = probes
            while left > 0:
                position: i64 = h % bits
                bit: u8 = _BITS[position & 7]
                at: i64 = position >> 3
                array[at] = array[at] | bit
                h = (h + delta) & 0xFFFFFFFF
                left -= 1
        array.append(self.probes)
        return array.getvalue()

    def key_hash(self, key: bytes, /) -> int:
        """The hash that :meth:`hash_may_match` takes.

        >>> hex(BloomFilterPolicy(10).key_hash(b"hello"))
        '0xf795964e'
        """
        return leveldb_hash(key)

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        """Return True if ``key`` may be among the keys of the filter; *False* is certain."""
        return self.hash_may_match(leveldb_hash(key), filter_data)

    def hash_may_match(self, key_hash: int, filter_data: bytes, /) -> bool:
        """As :meth:`key_may_match`, with the key's hash.  It reads at most k bits.

        A filter of fewer than two bytes matches nothing.  One with a k above 30 matches everything:
        such values are reserved for future encodings.

        >>> policy = BloomFilterPolicy(10)
        >>> known = policy.key_hash(b"hello")
        >>> [policy.hash_may_match(known, policy.create_filter([k])) for k in (b"hello", b"x")]
        [True, False]
        """
        return bloom_may_match(key_hash, filter_data, 0, len(filter_data))

    def probed_positions(self, key_hash: int, filter_data: bytes) -> list[int]:
        """The bits that :meth:`hash_may_match` probes, up to the first that is not set.

        Empty for a filter that cannot be probed: too short, or with a k above 30.

        >>> policy = BloomFilterPolicy(10)
        >>> policy.probed_positions(policy.key_hash(b"x"), policy.create_filter([b"hello"]))
        [12]
        """
        bits = (len(filter_data) - 1) * 8
        if bits <= 0 or filter_data[-1] > MAX_PROBES:
            return []
        positions: list[int] = []
        h = key_hash
        delta = ((h >> 17) | (h << 15)) & 0xFFFFFFFF
        for _ in range(filter_data[-1]):
            position = h % bits
            positions.append(position)
            if not filter_data[position // 8] >> position % 8 & 1:
                break
            h = (h + delta) & 0xFFFFFFFF
        return positions


def bloom_may_match(key_hash: i64, data: bytes, start: i64, stop: i64) -> bool:
    """:meth:`BloomFilterPolicy.hash_may_match` of the filter ``data[start:stop]``, in its place."""
    size: i64 = stop - start - 1
    if size < 1:
        return False
    probes: i64 = data[start + size]
    if probes > MAX_PROBES:
        return True
    bits: i64 = size * 8
    delta: i64 = ((key_hash >> 17) | (key_hash << 15)) & 0xFFFFFFFF
    h: i64 = key_hash
    # Two at a time: about half of the bits are set, so the branch is unpredictable.  A wrong
    # prediction costs more than one unneeded probe.
    while probes > 1:
        first: i64 = h % bits
        h = h + delta & 0xFFFFFFFF
        second: i64 = h % bits
        h = h + delta & 0xFFFFFFFF
        one: i64 = data[start + (first >> 3)]
        two: i64 = data[start + (second >> 3)]
        if one >> (first & 7) & two >> (second & 7) & 1 == 0:
            return False
        probes -= 2
    if probes == 0:
        return True
    last: i64 = h % bits
    byte: i64 = data[start + (last >> 3)]
    return byte >> (last & 7) & 1 != 0


def checked_bits(bits_per_key: int | float) -> int | float:
    """``bits_per_key``, if it is valid; else raises ``TypeError`` or ``ValueError``.

    >>> checked_bits(0)
    Traceback (most recent call last):
    ValueError: bits_per_key must be at least 1, not 0
    """
    if isinstance(bits_per_key, bool) or not isinstance(bits_per_key, (int, float)):
        raise TypeError(f"bits_per_key must be a number, not {type(bits_per_key).__name__}")
    if not 1 <= bits_per_key < math.inf:
        raise ValueError(f"bits_per_key must be at least 1, not {bits_per_key}")
    return bits_per_key


def is_bloom(policy: FilterPolicy) -> bool:
    """True if the policy is the Bloom policy itself, for which ``bloom_may_match`` answers."""
    return type(policy) is BloomFilterPolicy


def new_bloom_filter_policy(bits_per_key: int) -> BloomFilterPolicy:
    """LevelDB's ``NewBloomFilterPolicy``; errors and costs are those of :class:`BloomFilterPolicy`.

    >>> new_bloom_filter_policy(10).probes
    6
    """
    return BloomFilterPolicy(bits_per_key)


def optimal_probes(bits_per_key: float) -> float:
    """The k with the lowest false-positive rate: ``m/n ln 2``.

    >>> round(optimal_probes(10), 2)
    6.93
    """
    return bits_per_key * math.log(2)


def predicted_rate(bits_per_key: float, probes: float) -> float:
    """The textbook false-positive rate ``(1 - e^(-kn/m))^k``: that of a large filter.

    For one of a few dozen keys it is higher: :func:`~lsmkv.engine.filter.rates.expected_rate`.

    >>> round(predicted_rate(10, 6), 5)
    0.00844
    """
    if bits_per_key <= 0:
        raise ValueError("bits_per_key must be positive")
    return float((1.0 - math.exp(-probes / bits_per_key)) ** probes)


def bits_per_key_for_rate(rate: float) -> float:
    """Bits a key needed for a false-positive rate, with the best k: ``-ln p / (ln 2)^2``.

    >>> round(bits_per_key_for_rate(0.01), 2)
    9.59
    """
    if not 0.0 < rate < 1.0:
        raise ValueError(f"a false-positive rate must be between 0 and 1, not {rate}")
    return -math.log(rate) / math.log(2) ** 2


def fill_rate(filter_data: bytes) -> float:
    """The share of ones among a filter's bits, without the probe count; 0 for an empty one."""
    bits = (len(filter_data) - 1) * 8
    if bits <= 0:
        return 0.0
    return int.from_bytes(filter_data[:-1], "little").bit_count() / bits


def rate_from_fill(filter_data: bytes) -> float:
    """The false-positive rate to expect of one of LevelDB's filters, from its own bits.

    In a large filter it is (ones/m)^k; in a small one it is higher, since probes repeat: see
    :func:`~lsmkv.engine.filter.rates.expected_rate`.
    """
    if len(filter_data) < 2:
        return 0.0
    probes = filter_data[-1]
    fill = fill_rate(filter_data)
    if not 0 < probes <= MAX_PROBES or fill >= 1.0:
        return 1.0
    bits = 8 * (len(filter_data) - 1)
    return expected_rate(keys_from_fill(fill, bits, probes), bits, probes)
