"""Inspects an open table for ``explain``, ``check`` and ingest, without changing counters or
caches.

Any thread may call it; no lock is needed.
"""

from __future__ import annotations

from typing import NamedTuple

from lsmkv.engine.counters import ReadCounters
from lsmkv.engine.env.base import RandomAccessFile
from lsmkv.engine.errors import CorruptionError, UnsupportedCompressionError
from lsmkv.engine.filter.key_hashes import KeyHashes
from lsmkv.engine.filter.policy import FilterPolicy
from lsmkv.engine.format.keys import MAX_SEQUENCE, user_key_of
from lsmkv.engine.table.block import Block
from lsmkv.engine.table.filter_block import count_denied
from lsmkv.engine.table.format import (
    BLOCK_TRAILER_SIZE,
    FOOTER_SIZE,
    BlockHandle,
    Footer,
    read_block,
)
from lsmkv.engine.table.reader import Table
from lsmkv.engine.util.compression import (
    DEFAULT_MAX_BLOCK_BYTES,
    NO_COMPRESSION,
    codec_name,
    codec_of,
)

_BLOCKS_LOOKED_AT = 4  # a block is stored uncompressed where that saves too little


class FilterLook(NamedTuple):
    """One filter, and its answer for a key."""

    layout: str
    policy: FilterPolicy
    data: bytes
    may_match: bool


class BlockLook(NamedTuple):
    """One data block: its place in the file, how it is stored, and its entries."""

    offset: int
    stored_size: int
    """Bytes in the file, trailer included."""
    cached: bool
    codec: str
    """Its compression."""
    plain_size: int
    entries: tuple[list[bytes], list[bytes]]
    """Internal keys, and values: two lists of one length."""


class TableLook(NamedTuple):
    """The parts of a table that a lookup reads."""

    index_key: bytes | None
    filters: list[FilterLook]
    block: BlockLook | None
    """The block where the key would be, whatever the filters say; None past the last one."""


def look(table: Table, user_key: bytes) -> TableLook:
    """The parts of a table that a lookup of ``user_key`` reads.

    The block is read even where a filter says no.
    """
    hashes = KeyHashes(user_key)
    index = table.index
    number = index.block_for(table.comparator.order.of(user_key), MAX_SEQUENCE)
    if number == len(index):
        return TableLook(None, [], None)
    handle = index.handle(number)
    filters: list[FilterLook] = []
    for reader in table.filters.readers:
        data = reader.filter_for(handle.offset)
        if data is not None:
            may_match = reader.may_match(handle.offset, hashes)
            filters.append(FilterLook(reader.layout, reader.policy, data, may_match))
            if not may_match:
                break
    cached, block = table.look_at_block(number)
    codec = codec_at(table.file, handle)
    try:
        entries = block.entries()
    except CorruptionError as error:
        raise table.damaged(error, number) from None
    found = BlockLook(
        offset=handle.offset,
        stored_size=handle.size + BLOCK_TRAILER_SIZE,
        cached=cached,
        codec=codec_name(codec),
        plain_size=len(block),
        entries=entries,
    )
    return TableLook(index.keys[number], filters, found)


def codec_at(file: RandomAccessFile, handle: BlockHandle) -> int:
    """The codec of one block: a read of its type byte, and for type 2 also of its first byte."""
    end = handle.offset + handle.size
    kind = file.read(end, 1) if end < file.size else b""
    if not kind:
        return NO_COMPRESSION
    return codec_of(kind[0], file.read(handle.offset, 1) if kind[0] == 2 else b"")


def codec_in(file: RandomAccessFile) -> int:
    """The codec that a table, which may be damaged, was written with.

    It is the codec of the index or, if the index is stored uncompressed, of one of the first data
    blocks.  The result is no compression if all of these are uncompressed, or cannot be read.  Two
    reads, of 48 bytes and of one, and a few more where the index is not compressed.
    """
    try:
        footer = Footer.decode(file.read(max(0, file.size - FOOTER_SIZE), FOOTER_SIZE))
        codec = codec_at(file, footer.index)
        if codec == NO_COMPRESSION:
            index = Block(read_block(file, footer.index, DEFAULT_MAX_BLOCK_BYTES))
            for value in index.entries()[1][:_BLOCKS_LOOKED_AT]:
                codec = codec_at(file, BlockHandle.decode(value)[0])
                if codec != NO_COMPRESSION:
                    break
    except (CorruptionError, UnsupportedCompressionError):
        return NO_COMPRESSION
    return codec


def first_and_last_key(table: Table) -> tuple[bytes, bytes] | None:
    """The first internal key and the last one; None for a table without entries.  Two reads."""
    first = _edge_key(table, range(table.num_blocks), 0)
    if first is None:
        return None
    last = _edge_key(table, range(table.num_blocks - 1, -1, -1), -1)
    return first, last or first


def _edge_key(table: Table, numbers: range, at: int) -> bytes | None:
    """The key at index ``at`` of the first of these blocks that has entries."""
    for number in numbers:
        try:
            keys, _ = table.read(number, ReadCounters()).entries()
        except CorruptionError as error:
            raise error if error.path else table.damaged(error, number) from None
        if keys:
            return keys[at]
    return None


def check_metadata(table: Table) -> None:
    """Read footer, index and filters again: the table holds them in memory, and so would not show
    later damage.
    """
    Table(table.options, table.file)


def check(table: Table) -> tuple[bytes, bytes]:
    """Read every block and assert the invariants; first and last key.  O(size of the file).

    Keys strictly ascend, each index key lies at or after the last key of its block and before the
    first key of the next, restart points are entries of their block, and filters admit every
    key.  Raises :class:`CorruptionError`.
    """
    compare = table.comparator.compare
    counters = ReadCounters()
    index = table.index
    first = b""
    last: bytes | None = None
    for number in range(len(index)):
        # Not from the block cache: the file is checked.
        block = table.read(number, counters)
        try:
            keys, _ = block.entries()
            block.check()
            user_keys = [user_key_of(key) for key in keys]
        except CorruptionError as error:
            raise table.damaged(error, number) from None
        offset = index.offsets[number]
        if not keys:
            raise CorruptionError("an empty data block", table.path, offset)
        if number > 0 and compare(keys[0], index.keys[number - 1]) <= 0:
            raise CorruptionError("a block starts before its index key", table.path, offset)
        for key in keys:
            if last is not None and compare(last, key) >= 0:
                raise CorruptionError("keys out of order", table.path, offset)
            last = key
        if number == 0:
            first = keys[0]
        if last is not None and compare(last, index.keys[number]) > 0:
            raise CorruptionError("a block runs past its index key", table.path, offset)
        for reader in table.filters.readers:
            if count_denied([reader], offset, user_keys) > 0:
                reason = "a filter denies a key of its block"
                which = f"filter per {reader.layout}, {reader.policy.name}"
                raise CorruptionError(f"{reason} ({which})", table.path, offset)
        prefixes = table.prefix_filter
        if prefixes is not None and prefixes.count_denied(user_keys) > 0:
            reason = "the prefix filter denies a key's prefix"
            which = f"{prefixes.policy.name}, {prefixes.extractor.name}"
            raise CorruptionError(f"{reason} ({which})", table.path, offset)
    return first, last or b""
