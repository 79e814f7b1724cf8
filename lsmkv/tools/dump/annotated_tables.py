"""The bytes of a table, each with its meaning.

The footer points to the index and the metaindex, and these point to all other blocks.  Blocks are
annotated in the order of the file; bytes that no handle points to are marked as such.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lsmkv.env.base import RandomAccessFile
from lsmkv.errors import CorruptionError
from lsmkv.table.format import BLOCK_TRAILER_SIZE, FOOTER_SIZE, BlockHandle
from lsmkv.tools.dump.blocks import LoadedBlock, read_stored, stored_codec, unpack
from lsmkv.tools.dump.records import BlockKind, Fault, Handle, Piece
from lsmkv.tools.dump.spans import (
    Span,
    Spans,
    block_spans,
    complete,
    filter_block_spans,
    footer_spans,
    one_filter_spans,
)
from lsmkv.tools.dump.tables import meta_kind, read_footer, read_handles
from lsmkv.tools.text import count
from lsmkv.util.checksum import masked_crc32c

_STRETCH = 65536
"""Bytes without a meaning are read in stretches of this size."""


class Place(NamedTuple):
    """Where a block is, and what it is."""

    offset: int
    size: int
    kind: BlockKind
    policy: bytes


def annotate_table(file: RandomAccessFile, is_hex: bool) -> Iterator[Piece | Fault]:
    """The pieces of a table.  The index and one block are in memory at a time."""
    at = 0
    end = max(0, file.size - FOOTER_SIZE)
    try:
        footer = read_footer(file)
    except CorruptionError as error:
        yield Fault("damage", end, f"{error.reason}; nothing can be found without it")
        yield from _unknown(file, 0, file.size)
        return
    for place in block_places(file, footer.index, footer.metaindex):
        if place.offset < at:
            yield Fault("damage", place.offset, f"a {place.kind} block inside another one")
        elif place.offset + place.size + BLOCK_TRAILER_SIZE > end:
            length = count(place.size, "byte")
            reason = f"a {place.kind} block of {length} beyond the end of the file"
            yield Fault("damage", place.offset, reason)
        else:
            yield from _unknown(file, at, place.offset)
            yield from annotate_block(file, place, is_hex)
            at = place.offset + place.size + BLOCK_TRAILER_SIZE
    yield from _unknown(file, at, end)
    data = file.read(end, FOOTER_SIZE)
    for span in footer_spans(data):
        if span.start < span.end:
            yield Piece(end + span.start, data[span.start : span.end], span.meaning)


def block_places(file: RandomAccessFile, index: BlockHandle, metaindex: BlockHandle) -> list[Place]:
    """All blocks, by offset."""
    places: set[Place] = set()
    places.add(Place(index.offset, index.size, "index", b""))
    places.add(Place(metaindex.offset, metaindex.size, "metaindex", b""))
    for record in read_handles(file, index, "index"):
        if isinstance(record, Handle):
            places.add(Place(record.handle.offset, record.handle.size, "data", b""))
    for record in read_handles(file, metaindex, "metaindex"):
        if isinstance(record, Handle) and isinstance(record.key, bytes):
            kind, policy = meta_kind(record.key)
            places.add(Place(record.handle.offset, record.handle.size, kind, policy))
    return sorted(places)


def _unknown(file: RandomAccessFile, start: int, end: int) -> Iterator[Piece]:
    for at in range(start, end, _STRETCH):
        data = file.read(at, min(_STRETCH, end - at))
        if data:
            yield Piece(at, data, "bytes that no handle points to")


def annotate_block(file: RandomAccessFile, place: Place, is_hex: bool) -> Iterator[Piece | Fault]:
    """The pieces of one block and its trailer; those of a compressed block have ``block`` set."""
    handle = BlockHandle(place.offset, place.size)
    stored = read_stored(file, handle)
    if isinstance(stored, Fault):
        yield stored
        yield from _unknown(file, place.offset, place.offset + place.size + BLOCK_TRAILER_SIZE)
        return
    block = unpack(stored, handle)
    content = stored[: place.size]
    if isinstance(block, Fault):
        yield block
        if content:
            yield Piece(place.offset, content, f"{place.kind} block that cannot be read")
    elif block.compression == 0:
        yield from _pieces(block, place, is_hex, place.offset, -1)
    else:
        length = count(len(block.plain), "byte")
        meaning = f"{place.kind} block, {block.codec}: {length} once decompressed:"
        yield Piece(place.offset, content, meaning)
        yield from _pieces(block, place, is_hex, 0, place.offset)
    yield from _trailer(stored, place)


def _pieces(
    block: LoadedBlock, place: Place, is_hex: bool, base: int, inside: int
) -> Iterator[Piece | Fault]:
    """The pieces of the plain block, whose first byte has offset ``base``."""

    def fault(reason: str, at: int) -> Fault:
        return Fault("damage", place.offset, f"{reason}, at byte {at} of the block")

    for span in complete(len(block.plain), _spans(block, place, is_hex), fault):
        if isinstance(span, Fault):
            yield span
        else:
            data = block.plain[span.start : span.end]
            yield Piece(base + span.start, data, span.meaning, inside)


def _spans(block: LoadedBlock, place: Place, is_hex: bool) -> Spans:
    match place.kind:
        case "filter":
            return filter_block_spans(block.plain, place.policy)
        case "full filter":
            return one_filter_spans(block.plain, 0, "filter for the whole table", place.policy)
        case "prefix filter":
            return one_filter_spans(block.plain, 0, "filter of prefixes", place.policy)
        case "meta":
            return iter([Span(0, len(block.plain), "meta block of an unknown kind")])
        case "data" | "index" | "metaindex":
            return block_spans(block, place.kind, is_hex)


def _trailer(stored: bytes, place: Place) -> Iterator[Piece]:
    at = place.offset + place.size
    kind = stored[place.size]
    body = stored[: place.size + 1]
    is_right = masked_crc32c(body).to_bytes(4, "little") == stored[place.size + 1 :]
    ends = f"end of the {place.kind} block"
    yield Piece(at, stored[place.size : place.size + 1], f"{ends}: {stored_codec(kind, stored)}")
    yield Piece(at + 1, stored[place.size + 1 :], f"checksum{'' if is_right else ', wrong'}")
