"""The bytes of a log, a MANIFEST and CURRENT, each with its meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from lsmkv import files
from lsmkv.files import FileSource, Fragment, Log, Manifest
from lsmkv.tools.dump.logs import read_current
from lsmkv.tools.dump.records import Current, Fault, FaultKind, Piece, fault_of
from lsmkv.tools.dump.spans import Span, batch_spans, complete, edit_spans

_STRETCH: Final = 32768
"""Bytes without a meaning are shown in stretches of this size."""
_TYPES: Final = {"full": 1, "first": 2, "middle": 3, "last": 4}
_HEADER_SIZE: Final = 7

RecordSpans = Callable[[bytes, bool], Iterator[Span]]


def annotate_log(source: FileSource, is_hex: bool) -> Iterator[Piece | Fault]:
    """The pieces of a write-ahead log.  One record is in memory at a time."""
    return _annotate(Log(source), is_hex, batch_spans)


def annotate_manifest(source: FileSource, is_hex: bool) -> Iterator[Piece | Fault]:
    """The pieces of a MANIFEST."""
    return _annotate(Manifest(source), is_hex, edit_spans)


def annotate_current(source: FileSource) -> Iterator[Piece | Fault]:
    """The pieces of CURRENT: a name and a newline, or its invalid bytes."""
    file = files.Current(source)
    for record in read_current(file):
        if isinstance(record, Current):
            name = record.manifest
            yield Piece(0, name.encode(), f"the MANIFEST in force: '{name}'")
            yield Piece(len(name), b"\n", "newline")
            return
        yield record
    for at in range(0, file.size, _STRETCH):
        yield Piece(at, file.read(at, at + _STRETCH), "no name of a MANIFEST")


def _annotate(log: Log, is_hex: bool, spans: RecordSpans) -> Iterator[Piece | Fault]:
    waiting: list[Fragment] = []  # fragments of a record since its FIRST one, and fillers
    ended = False
    for part in log.fragments():
        begins = part.kind in ("full", "first")
        if ended:
            yield from _rest(part)
        elif part.is_good and not begins and not waiting:
            yield Fault("damage", part.offset, "a fragment without its beginning")
            yield from _rest(part)
        else:
            if waiting and (begins or part.damage is not None or part.kind == "room"):
                kind: FaultKind = "torn" if part.kind == "room" else "damage"
                if part.damage is not None:
                    kind = part.damage.kind
                yield Fault(kind, waiting[0].offset, "a record without its end")
                for one in waiting:
                    yield from _rest(one)
                waiting = []
            if part.damage is not None:
                yield fault_of(part.damage)
                yield from _rest(part)
                ended = part.ends_log
            elif part.kind == "room" or (part.kind == "filler" and not waiting):
                yield from _rest(part)
            else:
                waiting.append(part)
                if part.kind in ("full", "last"):
                    yield from _record(waiting, is_hex, spans)
                    waiting = []
    if waiting:
        yield Fault("torn", waiting[0].offset, "a record without its end")
        for one in waiting:
            yield from _rest(one)


def _record(parts: list[Fragment], is_hex: bool, spans: RecordSpans) -> Iterator[Piece | Fault]:
    """The pieces of a complete record, headers and content, in the order of the file."""
    payload = b"".join([part.data for part in parts])
    offset = parts[0].offset

    def fault(reason: str, at: int) -> Fault:
        return Fault("damage", offset, f"{reason}, at byte {at} of the record")

    meanings = complete(len(payload), spans(payload, is_hex), fault)
    span = next(meanings, None)
    start = 0  # where the current fragment begins in the payload
    for part in parts:
        if part.kind == "filler":
            yield from _rest(part)
            continue
        yield from _header(part)
        end = start + len(part.data)
        base = part.offset + _HEADER_SIZE - start
        while span is not None and (isinstance(span, Fault) or span.start < end):
            if isinstance(span, Fault):
                yield span
            else:
                first = max(span.start, start)
                more = " (goes on)" if span.start < start else ""
                data = payload[first : min(span.end, end)]
                yield Piece(base + first, data, span.meaning + more)
                if span.end > end:
                    break
            span = next(meanings, None)
        start = end
    if isinstance(span, Fault):
        yield span


def _rest(part: Fragment) -> Iterator[Piece]:
    """The pieces of a part that is in no record, or in one that is incomplete."""
    if part.kind == "bad":
        yield Piece(part.offset, part.stored, "no fragment of a record")
    elif part.kind == "room":
        yield Piece(part.offset, part.stored, "zeros: room for more records")
    elif part.kind == "filler":
        yield Piece(part.offset, part.stored, "the block's end: no room for a header")
    else:
        yield from _header(part)
        if part.data:
            at = part.offset + _HEADER_SIZE
            yield Piece(at, part.data, "part of an incomplete record")


def _header(part: Fragment) -> Iterator[Piece]:
    at, header = part.offset, part.stored
    kind = _TYPES[part.kind]
    yield Piece(at, header[:4], "checksum of type and data")
    yield Piece(at + 4, header[4:6], f"length {part.length}")
    yield Piece(at + 6, header[6:_HEADER_SIZE], f"type {kind}: {part.kind.upper()}")
