"""The bytes of a table, each with its meaning.

The footer points to the index and the metaindex, and these point to all other blocks.  Blocks are
annotated in the order of the file; bytes that no handle points to are marked as such.
"""

from __future__ import annotations

from collections.abc import Iterator

from lsmkv.engine.errors import CorruptionError
from lsmkv.files import FOOTER_SIZE, Block, BlockPlace, FileSource, Table
from lsmkv.tools.dump.records import Fault, Piece, fault_of
from lsmkv.tools.dump.spans import (
    Span,
    Spans,
    block_spans,
    complete,
    filter_block_spans,
    footer_spans,
    one_filter_spans,
)
from lsmkv.tools.text import count

_STRETCH = 65536
"""Bytes without a meaning are read in stretches of this size."""


def annotate_table(source: FileSource, is_hex: bool) -> Iterator[Piece | Fault]:
    """The pieces of a table.  The index and one block are in memory at a time."""
    table = Table(source)
    at = 0
    end = max(0, table.size - FOOTER_SIZE)
    try:
        places = table.places()
    except CorruptionError as error:
        yield Fault("damage", end, f"{error.reason}; nothing can be found without it")
        yield from _unknown(table, 0, table.size)
        return
    for place in places:
        if place.offset < at:
            yield Fault("damage", place.offset, f"a {place.kind} block inside another one")
        elif place.end > end:
            length = count(place.size, "byte")
            reason = f"a {place.kind} block of {length} beyond the end of the file"
            yield Fault("damage", place.offset, reason)
        else:
            yield from _unknown(table, at, place.offset)
            yield from annotate_block(table, place, is_hex)
            at = place.end
    yield from _unknown(table, at, end)
    yield from annotate_footer(table)


def annotate_footer(table: Table) -> Iterator[Piece]:
    """The pieces of a table's footer; :class:`CorruptionError` if it has none."""
    at = max(0, table.size - FOOTER_SIZE)
    data = table.read(at, table.size)
    for span in footer_spans(data):
        if span.start < span.end:
            yield Piece(at + span.start, data[span.start : span.end], span.meaning)


def _unknown(table: Table, start: int, end: int) -> Iterator[Piece]:
    for at in range(start, end, _STRETCH):
        data = table.read(at, min(at + _STRETCH, end))
        if data:
            yield Piece(at, data, "bytes that no handle points to")


def annotate_block(table: Table, place: BlockPlace, is_hex: bool) -> Iterator[Piece | Fault]:
    """The pieces of one block and its trailer; those of a compressed block have ``block`` set."""
    block = table.block(place)
    damage = block.damage
    if damage is not None:
        yield fault_of(damage)
    if not block.is_whole:
        yield from _unknown(table, place.offset, place.end)
        return
    content = block.stored[: place.size]
    if damage is not None:
        if content:
            yield Piece(place.offset, content, f"{place.kind} block that cannot be read")
    elif block.trailer.codec == 0:
        yield from _pieces(block, is_hex, place.offset, -1)
    else:
        length = count(len(block.plain), "byte")
        meaning = f"{place.kind} block, {block.codec}: {length} once decompressed:"
        yield Piece(place.offset, content, meaning)
        yield from _pieces(block, is_hex, 0, place.offset)
    yield from _trailer(block)


def _pieces(block: Block, is_hex: bool, base: int, inside: int) -> Iterator[Piece | Fault]:
    """The pieces of the plain block, whose first byte has offset ``base``."""
    plain = block.plain

    def fault(reason: str, at: int) -> Fault:
        return Fault("damage", block.place.offset, f"{reason}, at byte {at} of the block")

    for span in complete(len(plain), _spans(block, is_hex), fault):
        if isinstance(span, Fault):
            yield span
        else:
            yield Piece(base + span.start, plain[span.start : span.end], span.meaning, inside)


def _spans(block: Block, is_hex: bool) -> Spans:
    plain, policy = block.plain, block.place.policy
    match block.place.kind:
        case "filter":
            return filter_block_spans(plain, policy)
        case "full filter":
            return one_filter_spans(plain, 0, "filter for the whole table", policy)
        case "prefix filter":
            return one_filter_spans(plain, 0, "filter of prefixes", policy)
        case "meta":
            return iter([Span(0, len(plain), "meta block of an unknown kind")])
        case "data" | "index" | "metaindex":
            return block_spans(block, block.place.kind, is_hex)


def _trailer(block: Block) -> Iterator[Piece]:
    place, stored = block.place, block.stored
    at = place.offset + place.size
    meaning = f"end of the {place.kind} block: {block.codec}"
    yield Piece(at, stored[place.size : place.size + 1], meaning)
    wrong = "" if block.trailer.is_good else ", wrong"
    yield Piece(at + 1, stored[place.size + 1 :], f"checksum{wrong}")
