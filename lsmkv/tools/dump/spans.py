"""Pure functions that divide a record or block into spans of bytes with their meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from lsmkv.errors import CorruptionError
from lsmkv.format.batch import HEADER_SIZE
from lsmkv.format.version_edit import MAX_LEVELS, VersionEdit
from lsmkv.tools.dump.blocks import (
    EntrySpan,
    LoadedBlock,
    entry_handle,
    filter_spans,
    fuse_in,
    has_bits,
    kind_word,
    ones,
    restart_points,
    spans_and_faults,
    split_key,
)
from lsmkv.tools.dump.records import BlockKind, Fault
from lsmkv.tools.text import count, shown
from lsmkv.util.coding import (
    decode_fixed32,
    decode_fixed64,
    decode_string,
    decode_varint32,
    decode_varint64,
)

_SHOWN = 64
"""The largest number of bytes of a key or value that are repeated as text."""


class Span(NamedTuple):
    """Bytes ``start`` to ``end`` (not included) of a buffer."""

    start: int
    end: int
    meaning: str


Spans = Iterator[Span | Fault]


def complete(size: int, spans: Spans, fault: Callable[[str, int], Fault]) -> Spans:
    """The spans, which are contiguous from 0, extended to cover all ``size`` bytes.

    If they end in a ``CorruptionError``, ``fault`` makes a fault of its reason and position, which
    comes next, and then the rest.  Empty spans are left out.
    """
    at = 0
    try:
        for span in spans:
            if isinstance(span, Fault):
                yield span
                continue
            at = span.end
            if span.start < span.end:
                yield span
    except CorruptionError as error:
        yield fault(error.reason, at if error.offset is None else error.offset)
    if at < size:
        yield Span(at, size, "bytes that cannot be divided")


def batch_spans(payload: bytes, is_hex: bool) -> Iterator[Span]:
    """The spans of a record of the write-ahead log."""
    if len(payload) < HEADER_SIZE:
        raise CorruptionError("a record too short for a batch", None, 0)
    sequence = decode_fixed64(payload, 0)
    stated = decode_fixed32(payload, 8)
    yield Span(0, 8, f"sequence {sequence}")
    yield Span(8, 12, f"operations: {stated}")
    at = HEADER_SIZE
    done = 0
    while at < len(payload):
        kind = payload[at]
        if kind > 1:
            raise CorruptionError(f"a batch operation of kind {kind}", None, at)
        yield Span(at, at + 1, f"{'put' if kind else 'delete'}, sequence {sequence + done}")
        at += 1
        for what in ("key", "value")[: kind + 1]:
            content, end = decode_string(payload, at)
            yield Span(at, end - len(content), f"{what} length {len(content)}")
            yield Span(end - len(content), end, f"{what} {_quoted(content, is_hex)}")
            at = end
        done += 1
    if done != stated:
        told = count(done, "operation")
        raise CorruptionError(f"a batch of {told} states {stated:,}", None, 8)


_NUMBERS = {2: "log number", 9: "previous log number", 3: "next file number", 4: "last sequence"}
_FIELDS = {1: "comparator", 5: "compact pointer", 6: "deleted file", 7: "new file"} | _NUMBERS


def edit_spans(payload: bytes, is_hex: bool) -> Iterator[Span]:
    """The spans of a record of the MANIFEST."""
    at = 0
    while at < len(payload):
        tag, end = decode_varint32(payload, at)
        if tag not in _FIELDS:
            raise CorruptionError(f"an unknown field, tag {tag}", None, at)
        yield Span(at, end, f"tag {tag}: {_FIELDS[tag]}")
        at = end
        for span in _field_spans(tag, payload, at, is_hex):
            yield span
            at = span.end
    VersionEdit.decode(payload, MAX_LEVELS)  # raises for impossible values, such as level 999


def _field_spans(tag: int, payload: bytes, at: int, is_hex: bool) -> Iterator[Span]:
    if tag in _NUMBERS:
        number, end = decode_varint64(payload, at)
        yield Span(at, end, str(number))
        return
    if tag == 1:
        name, end = decode_string(payload, at)
        yield Span(at, end - len(name), f"length {len(name)}")
        yield Span(end - len(name), end, f"name {_quoted(name, is_hex)}")
        return
    level, end = decode_varint32(payload, at)
    yield Span(at, end, f"level {level}")
    for what in {5: (), 6: ("number",), 7: ("number", "size")}[tag]:
        number, after = decode_varint64(payload, end)
        yield Span(end, after, f"{what} {number}")
        end = after
    for what in {5: ("key",), 6: (), 7: ("smallest key", "largest key")}[tag]:
        key, after = decode_string(payload, end)
        yield Span(end, after - len(key), f"{what}, length {len(key)}")
        yield from key_spans(key, after - len(key), 0, what, is_hex)
        end = after


def key_spans(key: bytes, at: int, shared: int, what: str, is_hex: bool) -> Iterator[Span]:
    """The spans of the bytes of an internal key after the first ``shared``, which are at ``at``."""
    parts = split_key(key)
    end = at + len(key) - shared
    if parts.sequence is None:
        yield Span(at, end, f"{what} {_quoted(key, is_hex)}, not an internal key")
        return
    user = parts.user_key
    tag_at = max(at, at + len(user) - shared)
    more = f" (shares {shared})" if shared else ""
    name = f"{what} {_quoted(user, is_hex)}"
    yield Span(at, tag_at, f"{name}{more}")
    whose = f" of {name}{more}" if tag_at == at else ""
    less = f", its last {count(end - tag_at, 'byte')}" if end - tag_at < 8 else ""
    version = f"sequence {parts.sequence}, {kind_word(parts.kind)}"
    yield Span(tag_at, end, f"tag{whose}: {version}{less}")


def block_spans(block: LoadedBlock, kind: BlockKind, is_hex: bool) -> Spans:
    """The spans of a ``data``, ``index`` or ``metaindex`` block; keys of the last are names."""
    plain = block.plain
    at = 0
    for entry in spans_and_faults(block, kind):
        if isinstance(entry, Fault):
            yield entry
            continue
        at = entry.end
        size = entry.end - entry.value_at
        unshared = entry.value_at - entry.key_at
        yield Span(entry.offset, entry.unshared_at, f"shared {entry.shared}")
        yield Span(entry.unshared_at, entry.size_at, f"unshared {unshared}")
        yield Span(entry.size_at, entry.key_at, f"value length {size}")
        if kind == "metaindex":
            name = f"name {_quoted(entry.key, is_hex)}"
            yield Span(entry.key_at, entry.value_at, name)
        else:
            what = "key" if kind == "data" else "separator"
            yield from key_spans(entry.key, entry.key_at, entry.shared, what, is_hex)
        if kind == "data":
            value = plain[entry.value_at : entry.end]
            yield Span(entry.value_at, entry.end, f"value {_quoted(value, is_hex)}")
        else:
            yield from _handle_value_spans(plain, entry)
    try:
        array, restarts = restart_points(plain)
    except CorruptionError:
        return  # reported with the entries
    if at < array:
        return
    for number, restart in enumerate(restarts):
        at = array + 4 * number
        yield Span(at, at + 4, f"restart point {number}: entry at {restart}")
    yield Span(len(plain) - 4, len(plain), f"restart points: {len(restarts)}")


def _handle_value_spans(plain: bytes, entry: EntrySpan) -> Iterator[Span]:
    if entry_handle(plain, entry) is None:
        yield Span(entry.value_at, entry.end, "no handle")
        return
    done = entry.value_at
    for span in handle_spans(plain, done, "block"):
        yield span
        done = span.end
    yield Span(done, entry.end, "bytes after the handle")


def handle_spans(data: bytes, at: int, what: str) -> Iterator[Span]:
    """The spans of a handle."""
    offset, middle = decode_varint64(data, at)
    size, end = decode_varint64(data, middle)
    yield Span(at, middle, f"{what}: offset {offset}")
    yield Span(middle, end, f"{what}: size {size}")


def filter_block_spans(plain: bytes, policy: bytes) -> Iterator[Span]:
    """The spans of a filter block in LevelDB's layout."""
    spans = filter_spans(plain)
    base = 1 << spans.base_lg
    first = spans.bounds[0][0] if spans.bounds else spans.array
    yield Span(0, first, "bytes before the first filter")
    for number, (start, end) in enumerate(spans.bounds):
        what = f"filter {number}, for blocks at {number * base} to {(number + 1) * base - 1}"
        yield from one_filter_spans(plain[start:end], start, what, policy)
    for number, (start, _) in enumerate(spans.bounds):
        at = spans.array + 4 * number
        yield Span(at, at + 4, f"filter {number} starts at {start}")
    tail = len(plain) - 5
    yield Span(tail, tail + 4, f"the filters end, and their offsets start, at {spans.array}")
    yield Span(tail + 4, tail + 5, f"one filter for each 2^{spans.base_lg} bytes of the file")


def one_filter_spans(data: bytes, at: int, what: str, policy: bytes) -> Iterator[Span]:
    """The spans of one filter, which is at ``at``."""
    end = at + len(data)
    fuse = fuse_in(policy, data)
    if fuse is not None:
        slots = f"{what}: fuse, {fuse.slots:,} slots of a byte, {fuse.arity} for each key"
        yield Span(at, at + fuse.slots, slots)
        length = 1 << fuse.segment_bits
        first = f"first slots lie in {fuse.segments:,} segments, and {fuse.arity - 1} more follow"
        yield Span(end - 7, end - 3, first)
        yield Span(end - 3, end - 2, f"a segment has 2^{fuse.segment_bits} = {length:,} slots")
        yield Span(end - 2, end - 1, f"seed: {count(data[-2], 'attempt')} failed before")
        yield Span(end - 1, end, f"fuse filter with {fuse.arity} slots for each key")
        return
    if not has_bits(policy, data):
        yield Span(at, end, f"{what}: as its policy made it")
        return
    bits = 8 * (len(data) - 1)
    yield Span(at, end - 1, f"{what}: {count(bits, 'bit')}, {ones(data):,} set")
    yield Span(end - 1, end, f"probes: {data[-1]}")


def footer_spans(data: bytes) -> Iterator[Span]:
    """The spans of a footer, the 48 bytes at a table's end."""
    metaindex = list(handle_spans(data, 0, "metaindex"))
    index = list(handle_spans(data, metaindex[-1].end, "index"))
    yield from metaindex
    yield from index
    yield Span(index[-1].end, 40, "padding")
    yield Span(40, 48, "magic number")


def _quoted(data: bytes, is_hex: bool) -> str:
    """The beginning of some bytes, in quotes; the line has all of them in hexadecimal."""
    more = "" if len(data) <= _SHOWN else f"... of {count(len(data), 'byte')}"
    return f"'{shown(data[:_SHOWN], is_hex)}'{more}"
