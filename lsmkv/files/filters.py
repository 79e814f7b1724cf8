"""The filters of a table: their bits or slots, their parameters, and what they answer."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.filter.bloom import MAX_PROBES, BloomFilterPolicy, leveldb_hash
from lsmkv.engine.filter.bloom64 import bloom64_positions
from lsmkv.engine.filter.fuse import FINGERPRINT_BITS, filter64_may_match, look_at_fuse, shape_of
from lsmkv.engine.filter.hash64 import xxh3_hash
from lsmkv.engine.filter.known import BLOOM64_NAME, BLOOM_NAME, FUSE_NAME, KNOWN_POLICIES, rate_of
from lsmkv.engine.filter.prefix import own_extractor, prefix_of
from lsmkv.engine.filter.rates import keys_from_fill, keys_from_fill64
from lsmkv.engine.table.filter_block import (
    BLOCK_FILTER_PREFIX,
    PREFIX_FILTER_PREFIX,
    TABLE_FILTER_PREFIX,
)
from lsmkv.engine.util.coding import decode_fixed32
from lsmkv.files.blocks import Block, BlockKind, BlockPlace
from lsmkv.files.keys import BlockHandle
from lsmkv.files.parts import Damage, Span

FilterKind = Literal["block", "table", "prefix"]
"""For the data blocks that begin in 2 KiB of the file; for the whole table; or of the prefixes of
the table's keys."""

BITS_OF_FUSE: Final = FINGERPRINT_BITS
"""Bits of a fingerprint, in a fuse filter."""


class FuseShape(NamedTuple):
    """The sizes of a fuse filter.

    >>> from lsmkv import BinaryFusePolicy
    >>> policy = BinaryFusePolicy()
    >>> data = policy.create_filter([b"key%d" % n for n in range(3000)])
    >>> shape = Filter(0, 0, 0, None, None, policy.name.encode(), data).fuse
    >>> shape, shape.slots == len(data) - 7
    (FuseShape(arity=4, segment_slots=64, segments=57, seed=0), True)
    """

    arity: int
    """Slots of a key: 3 or 4."""
    segment_slots: int
    """Slots, of a byte each, of a segment: a power of two."""
    segments: int
    """Segments in which a key's first slot may be; ``arity - 1`` more follow."""
    seed: int
    """Number of failed attempts to build the filter."""

    @property
    def slots(self) -> int:
        """Bytes of slots."""
        return (self.segments + self.arity - 1) * self.segment_slots


class Probe(NamedTuple):
    """A filter's answer for a key, and what it reads to give it.

    >>> Probe(False, (12,)).may_match
    False
    """

    may_match: bool
    """False if the key is certainly not among the filter's keys."""
    positions: tuple[int, ...]
    """The bits that are read, up to the first that is not set; empty for a fuse filter."""
    slots: tuple[int, ...] = ()
    """The slots that are read in a fuse filter."""
    values: tuple[int, ...] = ()
    """The values of these slots."""
    fingerprint: int | None = None
    """The key's fingerprint: if the xor of the values equals it, the answer is maybe."""


class Filter(NamedTuple):
    """One filter, as its policy made it.

    In a Bloom filter, LevelDB's or one with a 64-bit hash, the last byte is the number of probes,
    and all bytes before it are bits, the lowest of each byte first.  A fuse filter has slots and a
    trailer of seven bytes.  The bytes of any other policy have no known layout.

    Raises nothing, and costs O(bytes) at most.

    >>> from lsmkv import BloomFilterPolicy
    >>> policy = BloomFilterPolicy(10)
    >>> data = policy.create_filter([b"hello", b"world"])
    >>> one = Filter(0, 0, 0, 0, 2047, policy.name.encode(), data)
    >>> one.kind, one.is_bloom, one.bits, one.probes, one.ones, one.fuse
    ('block', True, 64, 6, 10, None)
    >>> one.covers(1000), one.covers(3000)
    (True, False)
    >>> one.probe(b"hello").may_match, one.probe(b"x")
    (True, Probe(may_match=False, positions=(12,), slots=(), values=(), fingerprint=None))
    >>> hex(one.hash(b"hello")), one.policy_name, one.is_leveldbs
    ('0xf795964e', 'leveldb.BuiltinBloomFilter2', True)
    >>> round(one.expected_rate, 3), one.estimated_keys, one.knows_members, one.member(b"key")
    (0.004, 2, True, b'key')
    """

    block: int
    """The offset of its block in the file."""
    offset: int
    """The offset in the block."""
    number: int
    """Its number in the block, from 0."""
    first: int | None
    """The smallest offset in the file of the data blocks that it covers; None if it covers all."""
    last: int | None
    """The largest offset of those blocks; None if it covers all."""
    policy: bytes
    """The name of the policy that made it."""
    data: bytes
    """The policy's bytes; empty if the filter has no keys."""
    extractor: bytes = b""
    """For a filter of prefixes, the name of the prefix extractor."""

    @property
    def kind(self) -> FilterKind:
        """The extent that it covers: a block, a table, or the prefixes of a table's keys."""
        if self.extractor:
            return "prefix"
        return "table" if self.first is None else "block"

    @property
    def policy_name(self) -> str:
        """The policy's name as text."""
        return self.policy.decode("utf-8", "replace")

    @property
    def is_leveldbs(self) -> bool:
        """True if it is one of LevelDB's Bloom filters."""
        return self.policy_name == BLOOM_NAME

    def covers(self, offset: int) -> bool:
        """Return True if it covers the data block at an offset of the file."""
        if self.first is None or self.last is None:
            return True
        return self.first <= offset <= self.last

    @property
    def fuse(self) -> FuseShape | None:
        """The sizes of a fuse filter; None for any other."""
        shape = shape_of(self.data) if self.policy_name == FUSE_NAME else None
        if shape is None:
            return None
        return FuseShape(shape.arity, 1 << shape.segment_bits, shape.segments, self.data[-2])

    @property
    def is_bloom(self) -> bool:
        """True if it consists of bits and a number of probes, at most 30."""
        names = (BLOOM_NAME, BLOOM64_NAME, FUSE_NAME)  # a small fuse filter is a Bloom filter
        return self.policy_name in names and len(self.data) >= 2 and self.data[-1] <= MAX_PROBES

    @property
    def bits(self) -> int | None:
        """The number of bits; None unless it :attr:`is_bloom`."""
        return 8 * (len(self.data) - 1) if self.is_bloom else None

    @property
    def probes(self) -> int | None:
        """The bits that a key sets; None unless it :attr:`is_bloom`."""
        return self.data[-1] if self.is_bloom else None

    @property
    def ones(self) -> int | None:
        """The number of bits that are set; None unless it :attr:`is_bloom`."""
        return int.from_bytes(self.data[:-1], "little").bit_count() if self.is_bloom else None

    @property
    def expected_rate(self) -> float | None:
        """The share of absent keys that it is expected to let pass; None if that is unknown."""
        return rate_of(self.policy_name, self.data)

    @property
    def estimated_keys(self) -> int | None:
        """The approximate number of keys that would set as many bits; None if that is unknown."""
        bits, probes, ones = self.bits, self.probes, self.ones
        if not bits or not probes or ones is None or ones == bits:
            return None
        of_fill = keys_from_fill if self.is_leveldbs else keys_from_fill64
        return round(of_fill(ones / bits, bits, probes))

    def hash(self, key: bytes) -> int | None:
        """The hash with which the filter is asked for a key; None for the filter of an unknown
        policy."""
        if self.is_leveldbs:
            return leveldb_hash(key)
        return xxh3_hash(key) if self.policy_name in (BLOOM64_NAME, FUSE_NAME) else None

    def probe(self, key: bytes) -> Probe | None:
        """The answer for a key, or for a prefix; None for the filter of an unknown policy."""
        hashed = self.hash(key)
        if hashed is None:
            return None
        data = self.data
        if self.is_leveldbs:
            policy = BloomFilterPolicy()
            positions = tuple(policy.probed_positions(hashed, data))
            return Probe(policy.hash_may_match(hashed, data), positions)
        look = look_at_fuse(hashed, data) if self.policy_name == FUSE_NAME else None
        if look is not None:
            matches = functools.reduce(operator.xor, look.values, 0) == look.fingerprint
            return Probe(matches, (), look.slots, look.values, look.fingerprint)
        if not self.is_bloom:
            return None
        positions = tuple(bloom64_positions(hashed, data))
        return Probe(filter64_may_match(hashed, data, 0, len(data)), positions)

    @property
    def knows_members(self) -> bool:
        """True if :meth:`member` has an answer: not for the filter of a custom prefix extractor,
        which only its program has."""
        return not self.extractor or own_extractor(self._extractor_name) is not None

    def member(self, user_key: bytes) -> bytes | None:
        """The part of a user key that the filter holds: the key, or its prefix; None for a key
        without a prefix, and for an unknown extractor."""
        if not self.extractor:
            return user_key
        extractor = own_extractor(self._extractor_name)
        return None if extractor is None else prefix_of(extractor, user_key)

    @property
    def _extractor_name(self) -> str:
        return self.extractor.decode("utf-8", "replace")


class FilterLayout(NamedTuple):
    """The layout of a block of LevelDB's filters.

    >>> len(parse_filter_block(bytes.fromhex("00000000 0b")).bounds)
    0
    """

    array: int
    """Start of the array of the filters' offsets in the block."""
    bounds: tuple[Span, ...]
    """The filters, by number: filter *i* is for the data blocks that begin in the *i*-th
    ``2**base_lg`` bytes of the file."""
    base_lg: int


def parse_filter_block(plain: bytes) -> FilterLayout:
    """The division of a block of LevelDB's filters: filters, ``fixed32`` where each of them starts,
    ``fixed32`` where these offsets begin, and a byte for the base, 11.

    Raises :class:`~lsmkv.CorruptionError` with the position in the block.  O(filters).

    >>> parse_filter_block(bytes.fromhex("aabb 00000000 01000000 02000000 0b"))
    FilterLayout(array=2, bounds=(Span(start=0, end=1), Span(start=1, end=2)), base_lg=11)
    """
    tail = len(plain) - 5
    if tail < 0:
        raise CorruptionError("filter block cut short", None, 0)
    array = decode_fixed32(plain, tail)
    if array > tail or (tail - array) % 4 != 0:
        raise CorruptionError("filter offsets beyond the filter block", None, tail)
    starts = [decode_fixed32(plain, at) for at in range(array, tail + 4, 4)]
    bounds = tuple(Span(start, end) for start, end in itertools.pairwise(starts))
    if any(start > end for start, end in bounds):
        raise CorruptionError("filter offsets out of order", None, array)
    return FilterLayout(array, bounds, plain[-1])


def meta_place(handle: BlockHandle, name: bytes) -> BlockPlace:
    """The place of a block that the metaindex names: the name states what it is."""
    offset, size = handle
    kinds: list[tuple[bytes, BlockKind]] = [
        (BLOCK_FILTER_PREFIX, "filter"),
        (TABLE_FILTER_PREFIX, "full filter"),
    ]
    for prefix, kind in kinds:
        if name.startswith(prefix):
            return BlockPlace(offset, size, kind, name, name[len(prefix) :])
    for policy in KNOWN_POLICIES:  # names may have dots, so the policy's name has to be a known one
        known = policy.name.encode()
        prefix = PREFIX_FILTER_PREFIX + known + b"."
        if name.startswith(prefix):
            return BlockPlace(offset, size, "prefix filter", name, known, name[len(prefix) :])
    return BlockPlace(offset, size, "meta", name)


def filters_in(block: Block) -> Iterator[Filter | Damage]:
    """The filters of one block of any kind, including those without keys; or its damage.

    Raises nothing.  Costs the bytes of the filters.

    >>> from lsmkv.files import parse_block
    >>> block = parse_block(bytes.fromhex("aabb 00000000 01000000 02000000 0b"), "filter")
    >>> [(one.number, one.first, one.last, one.data.hex()) for one in filters_in(block)]
    [(0, 0, 2047, 'aa'), (1, 2048, 4095, 'bb')]
    """
    damage = block.damage
    if damage is not None:
        yield damage
        return
    place = block.place
    at, policy, plain = place.offset, place.policy, block.plain
    if place.kind in ("full filter", "prefix filter"):
        yield Filter(at, 0, 0, None, None, policy, plain, place.extractor)
    elif place.kind == "filter":
        try:
            layout = parse_filter_block(plain)
        except CorruptionError as error:
            size = place.end - place.offset
            yield Damage("damage", at, size, error.reason, error.offset)
            return
        for number, (start, end) in enumerate(layout.bounds):
            first = number << layout.base_lg
            last = (number + 1 << layout.base_lg) - 1
            yield Filter(at, start, number, first, last, policy, plain[start:end])
