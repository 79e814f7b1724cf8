"""The bytes of a log, a MANIFEST and CURRENT, each with its meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from lsmkv.env.base import RandomAccessFile
from lsmkv.format.log import BLOCK_SIZE, FIRST, FULL, HEADER_SIZE, LAST, may_be_torn
from lsmkv.tools.dump.logs import read_current
from lsmkv.tools.dump.records import Current, Fault, FaultKind, Piece
from lsmkv.tools.dump.spans import Span, batch_spans, complete, edit_spans
from lsmkv.util.checksum import masked_crc32c

_RUNS_PAST = "a fragment runs past its block"
_TYPES = {1: "FULL", 2: "FIRST", 3: "MIDDLE", 4: "LAST"}

RecordSpans = Callable[[bytes, bool], Iterator[Span]]


class _Fragment(NamedTuple):
    offset: int
    header: bytes
    data: bytes

    @property
    def kind(self) -> int:
        return self.header[6]


class _Filler(NamedTuple):
    """The last bytes of a block, too few for a header."""

    offset: int
    data: bytes


class _Bad(NamedTuple):
    """Bytes that are not a fragment."""

    offset: int
    data: bytes
    kind: FaultKind
    reason: str
    is_end: bool
    """Whether all that follows belongs to the same record, which was copied in part."""


class _Room(NamedTuple):
    """Zeros behind the last record of a write-ahead log."""

    offset: int
    data: bytes


_Part = _Fragment | _Filler | _Bad | _Room


def annotate_log(file: RandomAccessFile, is_hex: bool) -> Iterator[Piece | Fault]:
    """The pieces of a write-ahead log.  One record is in memory at a time."""
    return _annotate(file, is_hex, batch_spans, _room_from(file))


def annotate_manifest(file: RandomAccessFile, is_hex: bool) -> Iterator[Piece | Fault]:
    """The pieces of a MANIFEST."""
    return _annotate(file, is_hex, edit_spans, file.size)


def annotate_current(file: RandomAccessFile) -> Iterator[Piece | Fault]:
    """The pieces of CURRENT: a name and a newline, or the bytes that it has instead."""
    for record in read_current(file):
        if isinstance(record, Current):
            name = record.manifest
            yield Piece(0, name.encode(), f"the MANIFEST in force: '{name}'")
            yield Piece(len(name), b"\n", "newline")
            return
        yield record
    for at in range(0, file.size, BLOCK_SIZE):
        data = file.read(at, min(BLOCK_SIZE, file.size - at))
        yield Piece(at, data, "no name of a MANIFEST")


def _annotate(
    file: RandomAccessFile, is_hex: bool, spans: RecordSpans, room_from: int
) -> Iterator[Piece | Fault]:
    waiting: list[_Fragment | _Filler] = []  # fragments of a record since its FIRST one
    ended = False
    for part in _parts(file, room_from):
        if ended:
            yield from _rest(part)
            continue
        if isinstance(part, _Fragment) and part.kind not in (FULL, FIRST) and not waiting:
            yield Fault("damage", part.offset, "a fragment without its beginning")
            yield from _orphans([part])
            continue
        begins = isinstance(part, _Fragment) and part.kind in (FULL, FIRST)
        if waiting and (begins or isinstance(part, _Bad)):
            kind = part.kind if isinstance(part, _Bad) else "damage"
            yield Fault(kind, waiting[0].offset, "a record without its end")
            yield from _orphans(waiting)
            waiting = []
        if isinstance(part, _Bad):
            yield Fault(part.kind, part.offset, part.reason)
            yield from _rest(part)
            ended = part.is_end
        elif isinstance(part, _Room):
            if waiting:
                yield Fault("torn", waiting[0].offset, "a record without its end")
                yield from _orphans(waiting)
                waiting = []
            yield from _rest(part)
        elif isinstance(part, _Filler) and not waiting:
            yield _filler(part)
        else:
            waiting.append(part)
            if isinstance(part, _Fragment) and part.kind in (FULL, LAST):
                yield from _record(waiting, is_hex, spans)
                waiting = []
    if waiting:
        yield Fault("torn", waiting[0].offset, "a record without its end")
        yield from _orphans(waiting)


def _room_from(file: RandomAccessFile) -> int:
    """Where the last byte ends that is not zero: zeros alone follow."""
    for base in range((file.size - 1) // BLOCK_SIZE * BLOCK_SIZE, -1, -BLOCK_SIZE):
        block = file.read(base, BLOCK_SIZE).rstrip(b"\0")
        if block:
            return base + len(block)
    return 0


def _parts(file: RandomAccessFile, room_from: int) -> Iterator[_Part]:
    """The parts of the whole file, divided as :class:`lsmkv.format.log.LogReader` divides it.

    Where no fragment begins, the bytes from ``room_from`` on are room.
    """
    for base in range(0, file.size, BLOCK_SIZE):
        block = file.read(base, min(BLOCK_SIZE, file.size - base))
        at = 0
        while len(block) - at >= HEADER_SIZE:
            if base + at >= room_from:
                break
            reason = _fault_at(block, at)
            if reason:
                zeros = not block[at:].strip(b"\0")
                end = len(block) if zeros else _next_fragment(block, at + 1)
                alone = end == len(block)
                torn = may_be_torn(file, base, block, at, alone)
                cut_off = reason == _RUNS_PAST and len(block) < BLOCK_SIZE
                kind: FaultKind = "torn" if torn or cut_off or zeros else "damage"
                if zeros:
                    reason = "zeros to the end of the block"
                yield _Bad(base + at, block[at:end], kind, reason, torn and alone)
            else:
                data_at = at + HEADER_SIZE
                end = data_at + _data_length(block, at)
                yield _Fragment(base + at, block[at:data_at], block[data_at:end])
            at = end
        rest = block[at:]
        if rest and base + at >= room_from:
            yield _Room(base + at, rest)
        elif rest and len(block) == BLOCK_SIZE and not rest.strip(b"\0"):
            yield _Filler(base + at, rest)
        elif rest:
            yield _Bad(base + at, rest, "torn", "bytes too few for a header", False)


def _data_length(block: bytes, at: int) -> int:
    return int.from_bytes(block[at + 4 : at + 6], "little")


def _fault_at(block: bytes, at: int) -> str:
    """Why no sound fragment starts at ``at``; empty if one does."""
    kind = block[at + 6]
    if not FULL <= kind <= LAST:
        return f"a fragment of type {kind}"
    end = at + HEADER_SIZE + _data_length(block, at)
    if end > len(block):
        return _RUNS_PAST
    if masked_crc32c(block[at + 6 : end]) != int.from_bytes(block[at : at + 4], "little"):
        return "fragment checksum mismatch"
    return ""


def _next_fragment(block: bytes, at: int) -> int:
    """Where the next sound fragment starts; the block's end if there is none."""
    for start in range(at, len(block) - HEADER_SIZE + 1):
        if not _fault_at(block, start):
            return start
    return len(block)


def _record(
    parts: list[_Fragment | _Filler], is_hex: bool, spans: RecordSpans
) -> Iterator[Piece | Fault]:
    """The pieces of a complete record, headers and content, in the order of the file."""
    payload = b"".join([part.data for part in parts if isinstance(part, _Fragment)])
    offset = parts[0].offset

    def fault(reason: str, at: int) -> Fault:
        return Fault("damage", offset, f"{reason}, at byte {at} of the record")

    told = complete(len(payload), spans(payload, is_hex), fault)
    span = next(told, None)
    start = 0  # where the current fragment begins in the payload
    for part in parts:
        if isinstance(part, _Filler):
            yield _filler(part)
            continue
        yield from _header(part)
        end = start + len(part.data)
        base = part.offset + HEADER_SIZE - start
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
            span = next(told, None)
        start = end
    if isinstance(span, Fault):
        yield span


def _orphans(parts: list[_Fragment | _Filler]) -> Iterator[Piece]:
    """The pieces of sound fragments whose record is incomplete."""
    for part in parts:
        if isinstance(part, _Filler):
            yield _filler(part)
            continue
        yield from _header(part)
        if part.data:
            yield Piece(part.offset + HEADER_SIZE, part.data, "part of an incomplete record")


def _rest(part: _Part) -> Iterator[Piece]:
    """The pieces of a part that is in no record."""
    if isinstance(part, _Bad):
        yield Piece(part.offset, part.data, "no fragment of a record")
    elif isinstance(part, _Room):
        yield Piece(part.offset, part.data, "zeros: room for more records")
    else:
        yield from _orphans([part])


def _header(fragment: _Fragment) -> Iterator[Piece]:
    header = fragment.header
    yield Piece(fragment.offset, header[:4], "checksum of type and data")
    yield Piece(fragment.offset + 4, header[4:6], f"length {len(fragment.data)}")
    yield Piece(fragment.offset + 6, header[6:], f"type {fragment.kind}: {_TYPES[fragment.kind]}")


def _filler(filler: _Filler) -> Piece:
    return Piece(filler.offset, filler.data, "the block's end: no room for a header")
