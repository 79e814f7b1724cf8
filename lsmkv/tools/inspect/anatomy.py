"""A table in the order of its file: its blocks to scale, down to entries and raw bytes.

The meaning of the bytes is that of ``lsmkv dump --annotate``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from lsmkv.env.base import RandomAccessFile
from lsmkv.errors import CorruptionError, ForeignFormatError
from lsmkv.format.filenames import FileType
from lsmkv.table.format import BLOCK_TRAILER_SIZE, FOOTER_SIZE, BlockHandle
from lsmkv.tools.dump.annotated_tables import Place, annotate_block, block_places
from lsmkv.tools.dump.blocks import (
    LoadedBlock,
    entry_handle,
    load_block,
    restart_points,
    spans_and_faults,
    split_key,
)
from lsmkv.tools.dump.records import Fault, Handle, Piece
from lsmkv.tools.dump.spans import footer_spans
from lsmkv.tools.dump.tables import read_footer, read_handles
from lsmkv.tools.inspect.damage import effect
from lsmkv.tools.inspect.filters import facts_of, filters_in
from lsmkv.tools.inspect.plain import NotThereError, Plain, grouped, shown_bytes
from lsmkv.tools.inspect.source import Source
from lsmkv.tools.text import shown

CHECKED_BYTES = 64 << 20
"""A table larger than this is drawn without checking its blocks."""
WINDOW = 300
"""Entries, or pieces of bytes, that one answer has at most."""
_HEX_SHOWN = 64


def table(source: Source, name: str) -> Plain:
    """The parts of a table, in the order of its file, with the damage that was found in them.

    Reads the whole table unless it is larger than :data:`CHECKED_BYTES`.
    """
    with source.open_file(name, FileType.TABLE) as file:
        problems: list[Plain] = []
        parts: list[Plain] = []
        checked = file.size <= CHECKED_BYTES
        places = _places(file, problems)
        keys = _separators(file) if places else {}
        at = 0
        for place in places:
            end = place.offset + place.size + BLOCK_TRAILER_SIZE
            if place.offset < at or end > file.size - FOOTER_SIZE:
                reason = f"a {place.kind} block that lies where none can"
                problems.append(_problem(place.kind, place.offset, reason))
                continue
            if place.offset > at:
                parts.append(_part("unknown", at, place.offset - at))
            parts.append(_block_part(source, file, place, keys, checked, problems))
            at = end
        footer = max(0, file.size - FOOTER_SIZE) if places else file.size
        if footer > at:
            parts.append(_part("unknown", at, footer - at))
        if places:
            parts.append(_part("footer", footer, file.size - footer))
        return {
            "name": name,
            "size": file.size,
            "checked": checked,
            "parts": parts,
            "problems": problems,
        }


def block(source: Source, name: str, offset: int, first: int = 0) -> Plain:
    """One part of a table: its entries and its bytes, :data:`WINDOW` of each from ``first`` on.

    ``NotThereError`` if no part of the table begins at ``offset``.
    """
    with source.open_file(name, FileType.TABLE) as file:
        if offset == file.size - FOOTER_SIZE:
            return _footer(file, name)
        place = next((one for one in _places(file, []) if one.offset == offset), None)
        if place is None:
            raise NotThereError(f"{name} has no block at {offset:,}")
        facts: Plain = {"name": name, "offset": offset, "kind": place.kind, "size": place.size}
        loaded = load_block(file, BlockHandle(place.offset, place.size))
        if isinstance(loaded, LoadedBlock):
            facts |= {"codec": loaded.codec, "plain_size": len(loaded.plain)}
            facts |= _content(source, loaded, place, first)
        if place.kind in ("filter", "full filter", "prefix filter"):
            filters = filters_in(file, place.offset)
            facts["filters"] = [facts_of(one) for one in filters[first : first + WINDOW]]
            facts["more_filters"] = len(filters) > first + WINDOW
        pieces = annotate_block(file, place, False)
        window = list(itertools.islice(_pieces(pieces), first, first + WINDOW + 1))
        return facts | {
            "first": first,
            "pieces": window[:WINDOW],
            "more_pieces": len(window) > WINDOW,
        }


def can_be_opened(source: Source, name: str) -> bool:
    """Whether a table is there, with a footer and a sound index.  Its other blocks are not read."""
    try:
        with source.open_file(name, FileType.TABLE) as file:
            index = load_block(file, read_footer(file).index)
    except (CorruptionError, ForeignFormatError, NotThereError, OSError):
        return False
    return isinstance(index, LoadedBlock)


def _places(file: RandomAccessFile, problems: list[Plain]) -> list[Place]:
    try:
        footer = read_footer(file)
    except (CorruptionError, ForeignFormatError) as error:
        reason = error.reason if isinstance(error, CorruptionError) else str(error)
        told = f"{reason}; nothing can be found without a footer"
        problems.append(_problem("footer", max(0, file.size - FOOTER_SIZE), told))
        return []
    for kind, handle in (("index", footer.index), ("metaindex", footer.metaindex)):
        for record in read_handles(file, handle, "index" if kind == "index" else "metaindex"):
            if isinstance(record, Fault):
                problems.append(_problem(kind, handle.offset, record.reason))
    return block_places(file, footer.index, footer.metaindex)


def _separators(file: RandomAccessFile) -> dict[int, bytes]:
    """The index's user key for each data block, by the block's offset."""
    records = read_handles(file, read_footer(file).index, "index")
    return {
        record.handle.offset: record.key.user_key
        for record in records
        if isinstance(record, Handle) and not isinstance(record.key, bytes)
    }


def _problem(kind: str, offset: int, reason: str) -> Plain:
    return {"kind": kind, "offset": offset, "reason": grouped(reason), "effect": effect(kind)}


def _part(kind: str, offset: int, size: int) -> Plain:
    return {"kind": kind, "offset": offset, "size": size}


def _block_part(
    source: Source,
    file: RandomAccessFile,
    place: Place,
    keys: dict[int, bytes],
    checked: bool,
    problems: list[Plain],
) -> Plain:
    part = _part(place.kind, place.offset, place.size + BLOCK_TRAILER_SIZE)
    if place.kind == "data" and place.offset in keys:
        part["up_to"] = source.shown_key(keys[place.offset])
    if checked:
        found = load_block(file, BlockHandle(place.offset, place.size))
        if isinstance(found, Fault):
            part["problem"] = grouped(found.reason)
            if place.kind not in ("index", "metaindex"):  # theirs is told with their entries
                problems.append(_problem(place.kind, place.offset, found.reason))
        else:
            part["plain_size"] = len(found.plain)
    return part


def _content(source: Source, loaded: LoadedBlock, place: Place, first: int) -> Plain:
    """The entries of a block that has any, and its restart points."""
    if place.kind not in ("data", "index", "metaindex"):
        return {"entries": [], "more_entries": False, "restarts": []}
    try:
        restarts = restart_points(loaded.plain)[1]
    except CorruptionError:
        restarts = []  # the pieces tell what is wrong
    at_restart = set(restarts)
    entries: list[Plain] = []
    spans = spans_and_faults(loaded, place.kind)
    window = list(itertools.islice(spans, first, first + WINDOW + 1))
    for span in window[:WINDOW]:
        if isinstance(span, Fault):
            entries.append({"problem": grouped(span.reason)})
            continue
        key = split_key(span.key)
        name = place.kind == "metaindex"
        entry: Plain = {
            "offset": span.offset,
            "restart": span.offset in at_restart,
            "shared": span.shared,
            "key": shown_bytes(span.key) if name else source.shown_key(key.user_key),
        }
        if place.kind == "data":
            entry |= {"sequence": key.sequence, "deletion": key.kind == 0}
            entry["value"] = shown_bytes(loaded.plain[span.value_at : span.end])
        else:
            handle = entry_handle(loaded.plain, span)
            if handle is not None:
                entry["handle"] = {"offset": handle.offset, "size": handle.size}
        entries.append(entry)
    return {"entries": entries, "more_entries": len(window) > WINDOW, "restarts": restarts[:WINDOW]}


def _pieces(pieces: Iterator[Piece | Fault]) -> Iterator[Plain]:
    for piece in pieces:
        if isinstance(piece, Fault):
            yield {"problem": grouped(piece.reason), "offset": piece.offset}
        else:
            yield shown_piece(piece)


def shown_piece(piece: Piece) -> Plain:
    """Some bytes of a file with their meaning; ``inside`` those that a compressed block holds."""
    return {
        "offset": piece.offset,
        "bytes": len(piece.data),
        "hex": shown(piece.data[:_HEX_SHOWN], True),
        "meaning": grouped(piece.meaning),
        "inside": piece.block >= 0,
    }


def _footer(file: RandomAccessFile, name: str) -> Plain:
    at = file.size - FOOTER_SIZE
    data = file.read(at, FOOTER_SIZE)
    facts: Plain = {"name": name, "offset": at, "kind": "footer", "size": FOOTER_SIZE}
    pieces: list[Plain] = []
    try:
        for span in footer_spans(data):
            if span.start < span.end:
                piece = Piece(at + span.start, data[span.start : span.end], span.meaning)
                pieces.append(shown_piece(piece))
    except CorruptionError as error:
        pieces.append({"problem": error.reason, "offset": at})
    return facts | {"entries": [], "restarts": [], "pieces": pieces, "first": 0}
