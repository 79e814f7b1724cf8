"""A block of a table, taken apart with the position of everything in it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from lsmkv.env.base import RandomAccessFile
from lsmkv.errors import CorruptionError, UnsupportedCompressionError
from lsmkv.filter.bloom import BloomFilterPolicy
from lsmkv.format.keys import KIND_VALUE
from lsmkv.table.format import BLOCK_TRAILER_SIZE, BlockHandle, open_block
from lsmkv.tools.dump.records import BlockKind, Fault, InternalKey
from lsmkv.util.coding import decode_fixed32, decode_varint32
from lsmkv.util.compression import DEFAULT_MAX_BLOCK_BYTES

COMPRESSIONS = {0: "uncompressed", 1: "snappy", 2: "zstd", 4: "deflate"}
_ZLIB = b"\x78"


class LoadedBlock(NamedTuple):
    """A block read, verified and decompressed."""

    handle: BlockHandle
    stored: bytes
    """With its trailer."""
    plain: bytes

    @property
    def compression(self) -> int:
        """The type byte."""
        return self.stored[-BLOCK_TRAILER_SIZE]

    @property
    def codec(self) -> str:
        """The type byte, in a word."""
        return codec_name(self.compression, self.stored)


def codec_name(compression: int, stored: bytes) -> str:
    """What a type byte says; type 2 is also zlib, told by the first byte stored."""
    if compression == 2 and stored[:1] == _ZLIB:
        return "zlib"
    return COMPRESSIONS.get(compression, f"compression type {compression}")


def load_block(file: RandomAccessFile, handle: BlockHandle) -> LoadedBlock | Fault:
    """Read a block, verify and decompress it, or say why that cannot be."""
    stored = read_stored(file, handle)
    return stored if isinstance(stored, Fault) else unpack(stored, handle)


def read_stored(file: RandomAccessFile, handle: BlockHandle) -> bytes | Fault:
    """A block's bytes, trailer included, if they are all in the file."""
    length = handle.size + BLOCK_TRAILER_SIZE
    if handle.offset + length > file.size:
        reason = f"a block of {handle.size:,} bytes beyond the end of the file"
        return Fault("damage", handle.offset, reason)
    stored = file.read(handle.offset, length)
    return stored if len(stored) == length else Fault("damage", handle.offset, "block cut short")


def unpack(stored: bytes, handle: BlockHandle) -> LoadedBlock | Fault:
    """A block out of its bytes."""
    try:
        return LoadedBlock(handle, stored, open_block(stored, DEFAULT_MAX_BLOCK_BYTES))
    except CorruptionError as error:
        return Fault("damage", handle.offset, error.reason)
    except UnsupportedCompressionError:
        kind = stored[-BLOCK_TRAILER_SIZE]
        return Fault("codec", handle.offset, f"a block of compression type {kind}, unknown here")


class EntrySpan(NamedTuple):
    """An entry of a block, and where its parts lie."""

    offset: int
    shared: int
    unshared_at: int
    """Where the second length stands."""
    size_at: int
    """Where the third length stands."""
    key_at: int
    value_at: int
    end: int
    key: bytes
    """The whole key."""


def restart_points(plain: bytes) -> tuple[int, list[int]]:
    """``(where the array of restart points begins, the points)``; ``CorruptionError`` if none."""
    count = decode_fixed32(plain, len(plain) - 4)
    if count > (len(plain) - 4) // 4:
        raise CorruptionError(f"{count} restart points do not fit the block", None, 0)
    array = len(plain) - 4 - 4 * count
    return array, [decode_fixed32(plain, array + 4 * number) for number in range(count)]


def entry_spans(plain: bytes, array: int) -> Iterator[EntrySpan]:
    """The entries that stand before ``array``, one by one.

    ``CorruptionError`` after the last good one; so, too, where keys share more than the engine
    lets a block hold (see ``lsmkv/table/block.py``).
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
    """The entries of a block, each after what is wrong with it; last, bad restart points.

    Entries end at the first one that runs out of bounds.
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
            yield Fault("damage", at, f"a restart point at {restart}, where no whole key stands")


def _fault_in(plain: bytes, span: EntrySpan, kind: BlockKind) -> str:
    if kind != "metaindex" and split_key(span.key).sequence is None:
        return "a key that is no internal key"
    if kind != "data" and entry_handle(plain, span) is None:
        return "an entry that holds no handle"
    return ""


def entry_handle(plain: bytes, span: EntrySpan) -> BlockHandle | None:
    """The handle that an entry of the index or the metaindex holds, if it does."""
    try:
        return BlockHandle.decode(plain[span.value_at : span.end])[0]
    except CorruptionError:
        return None


def split_key(key: bytes) -> InternalKey:
    """A table's key, taken apart if it is an internal one."""
    if len(key) < 8 or key[-8] > KIND_VALUE:
        return InternalKey(key, None, None)
    return InternalKey(key[:-8], int.from_bytes(key[-7:], "little"), key[-8])


def kind_word(kind: int | None) -> str:
    """A version's kind, as LevelDB's dump says it."""
    return {0: "del", 1: "val"}.get(-1 if kind is None else kind, str(kind))


def is_bloom(policy: bytes) -> bool:
    """Whether filters under this policy's name are bits and a number of probes."""
    return policy == BloomFilterPolicy().name.encode()


def ones(data: bytes) -> int:
    """How many bits of a Bloom filter are set; its last byte, the probes, does not count."""
    return int.from_bytes(data[:-1], "little").bit_count()


class FilterSpans(NamedTuple):
    """A filter block of LevelDB's layout: where each filter begins and ends."""

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
