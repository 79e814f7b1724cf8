"""Binary fuse filters: 9 to 10 bits a key in large tables, and 4 in 1,000 absent keys pass.

Source: Graf & Lemire, "Binary Fuse Filters: Fast and Smaller Than Xor Filters", ACM JEA 27, 2022.
Each key has a fingerprint of 8 bits and three or four slots of one byte, in neighboring segments
of the filter.  The filter is filled so that the xor of a key's slots is the key's fingerprint.  For
an absent key, that holds with probability 1/256.  A filter is built from all its keys at once, so
there is one for a whole table.

The bytes (``docs/reference/format.md``)::

    slots                 (segments + arity - 1) << segment_bits bytes
    fixed32               the number of segments in which a key's first slot may be
    one byte              segment_bits: a segment has 2^segment_bits slots
    one byte              the seed: how many attempts at filling the slots failed before
    one byte              128 + arity

With fewer than :data:`FEWEST_KEYS` keys, or where no seed works, it is a ``Bloom64`` filter,
whose last byte is at most 30.  So one reader, :func:`filter64_may_match`, reads both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from librt.strings import BytesWriter
from librt.vecs import append, vec
from mypy_extensions import i64

from lsmkv.engine.filter.bloom import MAX_PROBES, checked_bits
from lsmkv.engine.filter.bloom64 import (
    PAUSE_EVERY,
    Bloom64Policy,
    bloom64_may_match,
    bloom64_positions,
    build_bloom64,
)
from lsmkv.engine.filter.hash64 import HALF_BITS, HALF_MASK, append_hashes, packed, xxh3_hash
from lsmkv.engine.filter.policy import FilterPolicy
from lsmkv.engine.util.coding import decode_fixed32, encode_fixed32
from lsmkv.engine.util.threads import pause
from lsmkv.engine.util.value import Value

if TYPE_CHECKING:
    from mypy_extensions import u8

FEWEST_KEYS: Final = 1000
"""Below this many keys a fuse filter takes about as many bits as a Bloom filter of its rate."""
FINGERPRINT_BITS: Final = 8
"""A fingerprint has this many bits, so an absent key passes with probability 2^-8."""
FUSE_MARK: Final = 128
"""The last byte of a fuse filter is this, plus the number of slots of a key."""

_TRAILER: Final = 7
_MOST_SLOTS: Final = 1 << 31  # a first slot is found with 31 bits of the hash; products fit 64 bits
_BITS_OF_THREE: Final = 9.85
_BYTES: Final = bytes(range(256))
_MOST_SEEDS: Final = 64
_FINGERPRINT: Final = 0x2C1B3C6D
_SEED_A: Final = 0x2D358DCD
_SEED_B: Final = 0x4B33A62F


class FuseShape(NamedTuple):
    """The sizes of a fuse filter."""

    arity: int
    """Slots of a key: 3 or 4."""
    segment_bits: int
    segments: int
    """Segments in which a first slot may be; the others follow, ``arity - 1`` more."""

    @property
    def slots(self) -> int:
        """Bytes of slots."""
        return (self.segments + self.arity - 1) << self.segment_bits


def fuse_shape(keys: int) -> FuseShape:
    """The sizes for that many keys: three slots a key if that takes at most 9.85 bits, else four.

    Three are faster to read, four take less space.  The segment's size and the share of slots that
    stay empty are the paper's, found by experiment.

    >>> fuse_shape(10_000)
    FuseShape(arity=4, segment_bits=8, segments=45)
    >>> fuse_shape(100_000)
    FuseShape(arity=3, segment_bits=11, segments=56)
    """
    logarithm = math.log(max(keys, 2))
    three = _shape(
        keys,
        3,
        math.floor(logarithm / math.log(3.33) + 2.25),
        max(1.125, 0.875 + 0.25 * math.log(1_000_000) / logarithm),
    )
    if 8 * three.slots <= _BITS_OF_THREE * keys:
        return three
    return _shape(
        keys,
        4,
        math.floor(logarithm / math.log(2.91) - 0.5),
        max(1.075, 0.77 + 0.305 * math.log(600_000) / logarithm),
    )


def _shape(keys: int, arity: int, segment_bits: int, factor: float) -> FuseShape:
    """Room for ``keys * factor`` slots, in whole segments."""
    # The segments' offsets are taken from 31 bits of the hash.
    bits = max(1, min(segment_bits, HALF_BITS // (arity - 1)))
    segments = math.ceil(keys * factor / (1 << bits)) - (arity - 1)
    return FuseShape(arity, bits, max(1, segments))


class BinaryFusePolicy(Value):
    """``lsmkv.BinaryFuse8``: a binary fuse filter for each table; LevelDB reads them unfiltered.

    With 10,000 keys or more it takes 9 to 10 bits a key; with fewer keys it takes up to 11.4.  It
    lets 1 in 256 absent keys pass, half as many as a Bloom filter of the same size.  Tables of
    fewer than 1,000 keys get a Bloom filter of ``bloom_bits_per_key`` bits a key
    (:class:`~lsmkv.Bloom64Policy`) under the same name.

    >>> policy = BinaryFusePolicy()
    >>> data = policy.create_filter([b"key%d" % n for n in range(3000)])
    >>> policy.key_may_match(b"key1", data), policy.key_may_match(b"absent", data), data[-1]
    (True, False, 132)

    Cost: a hash of the key, O(its length), and three or four bytes for each filter asked; to build,
    some 40 bytes of memory a key.  Raises ``TypeError`` or ``ValueError`` if
    ``bloom_bits_per_key`` is invalid.
    """

    name: str = "lsmkv.BinaryFuse8"
    hash_name: str = "xxh3"
    preferred_layout: str = "table"

    def __init__(self, bloom_bits_per_key: int | float = 10) -> None:
        self.bloom_bits_per_key: int | float = checked_bits(bloom_bits_per_key)

    def _arguments(self) -> tuple[Any, ...]:
        return (self.bloom_bits_per_key,)

    def __repr__(self) -> str:
        bits = self.bloom_bits_per_key
        return "BinaryFusePolicy()" if bits == 10 else f"BinaryFusePolicy({bits:g})"

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        """The filter for ``keys``.  The bytes are the same for the same keys."""
        return build_fuse(append_hashes(vec[i64](), list(keys)), self.bloom_bits_per_key)

    def create_filter_from_hashes(self, hashes: Sequence[int], /) -> bytes:
        """As :meth:`create_filter`, for keys of these hashes; ``ValueError`` for an invalid hash.

        >>> policy = BinaryFusePolicy()
        >>> hashes = [policy.key_hash(b"key%d" % n) for n in range(3000)]
        >>> len(policy.create_filter_from_hashes(hashes))
        3847
        """
        return build_fuse(packed(hashes), self.bloom_bits_per_key)

    def key_hash(self, key: bytes, /) -> int:
        """The hash that :meth:`hash_may_match` takes, 62 bits.

        >>> hex(BinaryFusePolicy().key_hash(b"hello"))
        '0x1555e8555c62dcfd'
        """
        return xxh3_hash(key)

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        """Return True if ``key`` may be among the keys of the filter; *False* is certain."""
        return filter64_may_match(xxh3_hash(key), filter_data, 0, len(filter_data))

    def hash_may_match(self, key_hash: int, filter_data: bytes, /) -> bool:
        """As :meth:`key_may_match`, with the key's hash.

        A filter of fewer than two bytes matches nothing.  One of a future encoding, or with
        inconsistent sizes, matches everything.

        >>> policy = BinaryFusePolicy()
        >>> data = policy.create_filter([b"key%d" % n for n in range(3000)])
        >>> [policy.hash_may_match(policy.key_hash(k), data) for k in (b"key1", b"absent")]
        [True, False]
        """
        return filter64_may_match(key_hash, filter_data, 0, len(filter_data))

    def probed_positions(self, key_hash: int, filter_data: bytes) -> list[int]:
        """The first bits of the slots that :meth:`hash_may_match` reads; of a Bloom filter, the
        bits that it probes.

        >>> policy = BinaryFusePolicy()
        >>> data = policy.create_filter([b"key%d" % n for n in range(3000)])
        >>> [bit // 8 for bit in policy.probed_positions(policy.key_hash(b"key7"), data)]
        [2212, 2260, 2326, 2379]
        """
        return filter64_positions(key_hash, filter_data)


def is_filter64(policy: FilterPolicy | None) -> bool:
    """Return True if :func:`filter64_may_match` gives the policy's answers: not for a subclass,
    which may answer differently."""
    return type(policy) is BinaryFusePolicy or type(policy) is Bloom64Policy


def build_fuse(hashes: vec[i64], bloom_bits_per_key: float) -> bytes:
    """The filter for keys of these hashes.  O(keys), with some 40 bytes of memory for each."""
    count = len(hashes)
    if count >= FEWEST_KEYS:
        shape = fuse_shape(count)
        for seed in range(_MOST_SEEDS):
            if seed == 1:
                # Equal hashes, of versions of a key that did not follow each other, never fit.
                hashes = _distinct(hashes)
            built = _try_fuse(hashes, shape, seed)
            if built is not None:
                return built
    return build_bloom64(hashes, bloom_bits_per_key)


def _distinct(hashes: vec[i64]) -> vec[i64]:
    result = vec[i64](capacity=len(hashes))
    for one in sorted(set(hashes)):
        result = append(result, one)
    return result


def _seeded(h: i64, seed: i64) -> i64:
    """The hash used with this seed: a different one for each seed, and the hash itself for 0."""
    a: i64 = h >> HALF_BITS
    b: i64 = h & HALF_MASK
    a = (a ^ b >> 9) * (_SEED_A + 2 * seed) & HALF_MASK
    a ^= a >> 15
    b = (b ^ a >> 7) * (_SEED_B + 2 * seed) & HALF_MASK
    b ^= b >> 15
    return a << HALF_BITS | b


def _try_fuse(hashes: vec[i64], shape: FuseShape, seed_number: int) -> bytes | None:
    """The filter with this seed, or None if the slots cannot be filled.

    A slot that only one key has can be filled last, for that key.  Without that key, another slot
    may have only one key left, and so on.  If that reaches all keys, their slots are filled in the
    opposite order.
    """
    arity: i64 = shape.arity
    bits: i64 = shape.segment_bits
    span: i64 = shape.segments << shape.segment_bits
    slots: i64 = shape.slots
    seed: i64 = seed_number
    mask: i64 = (1 << bits) - 1
    length: i64 = 1 << bits
    count: i64 = len(hashes)

    # ``users`` holds for each slot the number of its keys, shifted by two, xored with which of a
    # key's slots it is; ``mixed`` holds the xor of the keys' hashes.
    users = vec[i64]([0] * shape.slots)
    mixed = vec[i64]([0] * shape.slots)
    done: i64 = 0
    while done < count:
        if done & (PAUSE_EVERY - 1) == 0 and done > 0:
            pause(0)
        h: i64 = hashes[done]
        done += 1
        if seed > 0:
            h = _seeded(h, seed)
        slot: i64 = (h >> HALF_BITS) * span >> HALF_BITS
        which: i64 = 0
        while True:
            users[slot] = users[slot] + 4 ^ which
            mixed[slot] ^= h
            which += 1
            if which == arity:
                break
            slot = (slot & ~mask) + length + ((h & HALF_MASK) >> (HALF_BITS - which * bits) & mask)

    ready = vec[i64]([0] * shape.slots)  # a slot is added at most once
    waiting: i64 = 0
    slot = 0
    while slot < slots:
        if users[slot] >> 2 == 1:
            ready[waiting] = slot
            waiting += 1
        slot += 1
    order = vec[i64]([0] * len(hashes))  # hashes
    chosen = vec[i64]([0] * len(hashes))  # the slot that is filled for each
    placed: i64 = 0
    while waiting > 0:
        waiting -= 1
        alone = ready[waiting]
        if users[alone] >> 2 != 1:
            continue
        if placed & (PAUSE_EVERY - 1) == 0:
            pause(0)
        h = mixed[alone]
        order[placed] = h
        chosen[placed] = alone
        placed += 1
        slot = (h >> HALF_BITS) * span >> HALF_BITS
        which = 0
        while True:
            users[slot] = users[slot] - 4 ^ which
            mixed[slot] ^= h
            if users[slot] >> 2 == 1:
                ready[waiting] = slot
                waiting += 1
            which += 1
            if which == arity:
                break
            slot = (slot & ~mask) + length + ((h & HALF_MASK) >> (HALF_BITS - which * bits) & mask)
    if placed < count:
        return None

    filled = BytesWriter()
    filled.write(bytes(shape.slots))
    while placed > 0:
        placed -= 1
        if placed & (PAUSE_EVERY - 1) == 0:
            pause(0)
        h = order[placed]
        slot = (h >> HALF_BITS) * span >> HALF_BITS
        value: u8 = _BYTES[_fingerprint(h)]
        which = 0
        while True:
            value = value ^ filled[slot]
            which += 1
            if which == arity:
                break
            slot = (slot & ~mask) + length + ((h & HALF_MASK) >> (HALF_BITS - which * bits) & mask)
        filled[chosen[placed]] = value
    filled.write(encode_fixed32(shape.segments))
    filled.append(shape.segment_bits)
    filled.append(seed_number)
    filled.append(FUSE_MARK + shape.arity)
    return filled.getvalue()


def _fingerprint(h: i64) -> i64:
    """The byte that a key's slots must give, from bits of the hash that do not choose the slots."""
    return ((h >> HALF_BITS) ^ (h & HALF_MASK)) * _FINGERPRINT >> 16 & 0xFF


def filter64_may_match(key_hash: i64, data: bytes, start: i64, stop: i64) -> bool:
    """True if a key may be in the fuse or Bloom filter ``data[start:stop]``, without a copy."""
    size: i64 = stop - start
    if size < 2:
        return False
    last: i64 = data[stop - 1]
    if last <= MAX_PROBES:
        return bloom64_may_match(key_hash, data, start, stop)
    arity: i64 = last - FUSE_MARK
    if arity < 3 or arity > 4 or size < _TRAILER:
        return True
    segments: i64 = decode_fixed32(data, stop - 7)
    bits: i64 = data[stop - 3]
    seed: i64 = data[stop - 2]
    if not _fits(arity, bits, segments, size - _TRAILER):
        return True
    h: i64 = key_hash
    if seed > 0:
        h = _seeded(h, seed)
    low: i64 = h & HALF_MASK
    length: i64 = 1 << bits
    mask: i64 = length - 1
    slot: i64 = start + ((h >> HALF_BITS) * (segments << bits) >> HALF_BITS)
    segment: i64 = slot - (slot - start & mask) + length
    one: i64 = data[slot]
    two: i64 = data[segment + (low >> (HALF_BITS - bits))]
    segment += length
    three: i64 = data[segment + (low >> (HALF_BITS - 2 * bits) & mask)]
    value: i64 = one ^ two ^ three
    if arity == 4:
        segment += length
        four: i64 = data[segment + (low >> (HALF_BITS - 3 * bits) & mask)]
        value ^= four
    return value == _fingerprint(h)


def _fits(arity: i64, bits: i64, segments: i64, slots: i64) -> bool:
    """True if these sizes, which may be damaged, are those of a fuse filter of that many slots."""
    return (
        slots <= _MOST_SLOTS
        and segments >= 1
        and (arity - 1) * bits <= HALF_BITS  # so that no shift is too wide
        and (segments + arity - 1) << bits == slots
    )


def filter64_positions(key_hash: int, filter_data: bytes) -> list[int]:
    """In a Bloom filter, the bits that a lookup uses; in a fuse filter, the first bits of the slots
    that it reads; empty if it reads none."""
    size = len(filter_data)
    if size < 2 or filter_data[-1] <= MAX_PROBES:
        return bloom64_positions(key_hash, filter_data)
    shape = shape_of(filter_data)
    if shape is None:
        return []
    seed = filter_data[-2]
    h = _seeded(key_hash, seed) if seed > 0 else key_hash
    mask = (1 << shape.segment_bits) - 1
    slot = (h >> HALF_BITS) * (shape.segments << shape.segment_bits) >> HALF_BITS
    slots = [slot]
    for which in range(1, shape.arity):
        offset = (h & HALF_MASK) >> (HALF_BITS - which * shape.segment_bits) & mask
        slot = (slot & ~mask) + mask + 1 + offset
        slots.append(slot)
    return [8 * slot for slot in slots]


def shape_of(filter_data: bytes) -> FuseShape | None:
    """The sizes that a fuse filter states; None if it is another filter, or they are inconsistent.

    >>> shape_of(BinaryFusePolicy().create_filter([b"key%d" % n for n in range(3000)]))
    FuseShape(arity=4, segment_bits=6, segments=57)
    """
    size = len(filter_data)
    if size < _TRAILER or filter_data[-1] - FUSE_MARK not in (3, 4):
        return None
    shape = FuseShape(
        filter_data[-1] - FUSE_MARK, filter_data[-3], decode_fixed32(filter_data, size - 7)
    )
    fits = _fits(shape.arity, shape.segment_bits, shape.segments, size - _TRAILER)
    return shape if fits else None


class FuseLook(NamedTuple):
    """The bytes that a lookup reads in a fuse filter."""

    slots: tuple[int, ...]
    """The key's slots: bytes of the filter."""
    values: tuple[int, ...]
    """The contents of these slots."""
    fingerprint: int
    """The key's fingerprint: if the xor of the values equals it, the key may be in the table."""


def look_at_fuse(key_hash: int, filter_data: bytes) -> FuseLook | None:
    """Return the bytes that a lookup reads in a fuse filter; None if it is another filter.

    >>> policy = BinaryFusePolicy()
    >>> data = policy.create_filter([b"key%d" % n for n in range(3000)])
    >>> look = look_at_fuse(policy.key_hash(b"key7"), data)
    >>> value = 0
    >>> for one in look.values:
    ...     value ^= one
    >>> value == look.fingerprint
    True
    """
    if shape_of(filter_data) is None:
        return None
    slots = tuple(bit // 8 for bit in filter64_positions(key_hash, filter_data))
    seed = filter_data[-2]
    counted = _seeded(key_hash, seed) if seed > 0 else key_hash
    return FuseLook(slots, tuple(filter_data[slot] for slot in slots), _fingerprint(counted))
