"""A block of a table, divided into its parts with their positions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from lsmkv.env.base import RandomAccessFile
from lsmkv.errors import CorruptionError, UnsupportedCompressionError
from lsmkv.filter.bloom import MAX_PROBES, BloomFilterPolicy
from lsmkv.filter.bloom64 import Bloom64Policy
from lsmkv.filter.fuse import BinaryFusePolicy, FuseShape, shape_of
from lsmkv.format.keys import KIND_VALUE
from lsmkv.table.format import BLOCK_TRAILER_SIZE, BlockHandle, open_block
from lsmkv.tools.dump.records import BlockKind, Fault, InternalKey
from lsmkv.tools.text import count
from lsmkv.util.coding import decode_fixed32, decode_varint32
from lsmkv.util.compression import DEFAULT_MAX_BLOCK_BYTES, NO_COMPRESSION, codec_name, codec_of


class LoadedBlock(NamedTuple):
    """A block that was read, verified and decompressed."""

    handle: BlockHandle
    stored: bytes
    """The block as it is stored, with its trailer."""
    plain: bytes

    @property
    def compression(self) -> int:
        """The type byte."""
        return self.stored[-BLOCK_TRAILER_SIZE]

    @property
    def codec(self) -> str:
        """The name of the compression."""
        return stored_codec(self.compression, self.stored)


def stored_codec(compression: int, stored: bytes) -> str:
    """The compression of a block with this type byte, which stores these bytes."""
    if compression == NO_COMPRESSION:
        return "uncompressed"
    return codec_name(codec_of(compression, stored))


def load_block(file: RandomAccessFile, handle: BlockHandle) -> LoadedBlock | Fault:
    """Read, verify and decompress a block; a fault if that fails."""
    stored = read_stored(file, handle)
    return stored if isinstance(stored, Fault) else unpack(stored, handle)


def read_stored(file: RandomAccessFile, handle: BlockHandle) -> bytes | Fault:
    """A block's bytes with its trailer; a fault if they are not all in the file."""
    length = handle.size + BLOCK_TRAILER_SIZE
    if handle.offset + length > file.size:
        reason = f"a block of {count(handle.size, 'byte')} beyond the end of the file"
        return Fault("damage", handle.offset, reason)
    stored = file.read(handle.offset, length)
    return stored if len(stored) == length else Fault("damage", handle.offset, "block cut short")


def unpack(stored: bytes, handle: BlockHandle) -> LoadedBlock | Fault:
    """The block that these bytes store; a fault if it is damaged or of unknown compression."""
    try:
        return LoadedBlock(handle, stored, open_block(stored, DEFAULT_MAX_BLOCK_BYTES))
    except CorruptionError as error:
        return Fault("damage", handle.offset, error.reason)
    except UnsupportedCompressionError:
        kind = stored[-BLOCK_TRAILER_SIZE]
        return Fault("codec", handle.offset, f"a block of unknown compression type {kind}")


class EntrySpan(NamedTuple):
    """An entry of a block, and the positions of its parts."""

    offset: int
    shared: int
    unshared_at: int
    """Where the second length is."""
    size_at: int
    """Where the third length is."""
    key_at: int
    value_at: int
    end: int
    key: bytes
    """The whole key."""


def restart_points(plain: bytes) -> tuple[int, list[int]]:
    """``(where the array of restart points begins, the points)``; ``CorruptionError`` if none."""
    stated = decode_fixed32(plain, len(plain) - 4)
    if stated > (len(plain) - 4) // 4:
        points = count(stated, "restart point")
        raise CorruptionError(f"the block is too small for {points}", None, 0)
    array = len(plain) - 4 - 4 * stated
    return array, [decode_fixed32(plain, array + 4 * number) for number in range(stated)]


def entry_spans(plain: bytes, array: int) -> Iterator[EntrySpan]:
    """The entries before ``array``, one by one.

    ``CorruptionError`` after the last sound one, and where keys share more than the engine allows
    (see ``lsmkv/table/block.py``).
    """
    at = 0
    key = b""
    spent = 0
    while at < array:
        shared, unshared_at = decode_varint32(plain, at)
        unshared, size_at = decode_varint32(plain, unshared_at)
        size, key_at = decode_varint32(plain, size_at)
        value_at = key_at + unshared
        end = value_at + size
        if end > array:
            raise CorruptionError("an entry runs past the block", None, at)
        if shared > len(key):
            raise CorruptionError("an entry shares more than the key before it has", None, at)
        if shared > 0 and spent > DEFAULT_MAX_BLOCK_BYTES:
            raise CorruptionError("keys that share more than a block may hold", None, at)
        spent += shared
        key = key[:shared] + plain[key_at:value_at]
        yield EntrySpan(at, shared, unshared_at, size_at, key_at, value_at, end, key)
        at = end


def spans_and_faults(block: LoadedBlock, kind: BlockKind) -> Iterator[EntrySpan | Fault]:
    """The entries of a block, each after its faults, and last the faults of restart points.

    The first entry that runs out of bounds is a fault, and the last item.
    """
    at = block.handle.offset
    whole: set[int] = set()
    try:
        array, restarts = restart_points(block.plain)
        for span in entry_spans(block.plain, array):
            if span.shared == 0:
                whole.add(span.offset)
            reason = _fault_in(block.plain, span, kind)
            if reason:
                yield Fault("damage", at, f"{reason}, at byte {span.offset} of the block")
            yield span
    except CorruptionError as error:
        yield Fault("damage", at, f"{error.reason}, at byte {error.offset} of the block")
        return
    if array == 0:
        whole.add(0)  # a block without entries has one restart point nevertheless
    for restart in restarts:
        if restart not in whole:
            yield Fault("damage", at, f"a restart point at {restart}, where there is no whole key")


def _fault_in(plain: bytes, span: EntrySpan, kind: BlockKind) -> str:
    if kind != "metaindex" and split_key(span.key).sequence is None:
        return "a key that is not an internal key"
    if kind != "data" and entry_handle(plain, span) is None:
        return "an entry that holds no handle"
    return ""


def entry_handle(plain: bytes, span: EntrySpan) -> BlockHandle | None:
    """The handle in an entry of the index or the metaindex; None if there is none."""
    try:
        return BlockHandle.decode(plain[span.value_at : span.end])[0]
    except CorruptionError:
        return None


def split_key(key: bytes) -> InternalKey:
    """The parts of a table's key, if it is an internal key."""
    if len(key) < 8 or key[-8] > KIND_VALUE:
        return InternalKey(key, None, None)
    return InternalKey(key[:-8], int.from_bytes(key[-7:], "little"), key[-8])


def kind_word(kind: int | None) -> str:
    """The word for a version's kind in LevelDB's dump."""
    return {0: "del", 1: "val"}.get(-1 if kind is None else kind, str(kind))


def is_bloom(policy: bytes) -> bool:
    """Whether a policy's name is that of Bloom filters: bits and a number of probes."""
    return policy == BloomFilterPolicy().name.encode()


def has_bits(policy: bytes, data: bytes) -> bool:
    """Whether a filter consists of bits and a number of probes: LevelDB's, or one of a 64-bit hash
    that is no fuse filter."""
    names = (BloomFilterPolicy().name, Bloom64Policy().name, BinaryFusePolicy().name)
    return policy.decode("latin-1") in names and len(data) >= 2 and data[-1] <= MAX_PROBES


def fuse_in(policy: bytes, data: bytes) -> FuseShape | None:
    """The sizes of a fuse filter; None if it is another filter."""
    return shape_of(data) if policy == BinaryFusePolicy().name.encode() else None


def ones(data: bytes) -> int:
    """The number of bits set in a Bloom filter, without its last byte, the probes."""
    return int.from_bytes(data[:-1], "little").bit_count()


class FilterSpans(NamedTuple):
    """The bounds of each filter in a filter block of LevelDB's layout."""

    array: int
    """Where the offsets begin."""
    bounds: list[tuple[int, int]]
    base_lg: int


def filter_spans(plain: bytes) -> FilterSpans:
    """The filters of a filter block; ``CorruptionError`` if it holds none."""
    tail = len(plain) - 5
    if tail < 0:
        raise CorruptionError("filter block cut short", None, 0)
    array = decode_fixed32(plain, tail)
    if array > tail or (tail - array) % 4 != 0:
        raise CorruptionError("filter offsets beyond the filter block", None, tail)
    starts = [decode_fixed32(plain, at) for at in range(array, tail + 4, 4)]
    bounds = list(itertools.pairwise(starts))
    if any(first > last for first, last in bounds):
        raise CorruptionError("filter offsets that fall", None, array)
    return FilterSpans(array, bounds, plain[-1])
