"""Pure functions that divide a record or block into spans of bytes with their meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from lsmkv.engine.errors import CorruptionError
from lsmkv.files import (
    EDIT_TAGS,
    Batch,
    Block,
    BlockKind,
    Damage,
    Entry,
    Filter,
    edit_fields,
    handle_fields,
    parse_filter_block,
    parse_footer,
    parse_key,
)
from lsmkv.tools.dump.records import Fault, fault_of, kind_word
from lsmkv.tools.text import count, shown

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
    sequence = 0
    for name, start, end, value in Batch(payload).fields():
        if name == "sequence":
            assert isinstance(value, int)
            sequence = value
            meaning = f"sequence {sequence}"
        elif name == "count":
            meaning = f"operations: {value!r}"
        elif name == "kind":
            meaning = f"{'put' if value else 'delete'}, sequence {sequence}"
            sequence += 1
        else:
            meaning = f"{name} {value if isinstance(value, int) else _quoted(value, is_hex)}"
        yield Span(start, end, meaning)


def edit_spans(payload: bytes, is_hex: bool) -> Iterator[Span]:
    """The spans of a record of the MANIFEST."""
    for name, start, end, value in edit_fields(payload):
        if name == "tag":
            assert isinstance(value, int)
            yield Span(start, end, f"tag {value}: {EDIT_TAGS[value]}")
        elif name == "comparator length":
            yield Span(start, end, f"length {value!r}")
        elif name.endswith(" length"):
            yield Span(start, end, f"{name.replace(' length', ', length')} {value!r}")
        elif isinstance(value, int):
            yield Span(start, end, str(value) if name in EDIT_TAGS.values() else f"{name} {value}")
        elif name == "comparator":
            yield Span(start, end, f"name {_quoted(value, is_hex)}")
        else:
            yield from key_spans(value, start, 0, name, is_hex)


def key_spans(key: bytes, at: int, shared: int, what: str, is_hex: bool) -> Iterator[Span]:
    """The spans of the bytes of an internal key after the first ``shared``, which are at ``at``."""
    parts = parse_key(key)
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


def block_spans(block: Block, kind: BlockKind, is_hex: bool) -> Spans:
    """The spans of a ``data``, ``index`` or ``metaindex`` block; keys of the last are names."""
    at = 0
    for entry in block.walk():
        if isinstance(entry, Damage):
            yield fault_of(entry)
            continue
        at = entry.end
        spans = entry.spans
        yield Span(*spans.shared, f"shared {entry.shared}")
        yield Span(*spans.unshared, f"unshared {entry.value_at - entry.key_at}")
        yield Span(*spans.value_length, f"value length {len(entry.value)}")
        if kind == "metaindex":
            yield Span(*spans.key_delta, f"name {_quoted(entry.key, is_hex)}")
        else:
            what = "key" if kind == "data" else "separator"
            yield from key_spans(entry.key, entry.key_at, entry.shared, what, is_hex)
        if kind == "data":
            yield Span(*spans.value, f"value {_quoted(entry.value, is_hex)}")
        else:
            yield from _handle_value_spans(entry)
    try:
        array, restarts = block.entries_end, block.restart_points()
    except CorruptionError:
        return  # reported with the entries
    if at < array:
        return
    for number, restart in enumerate(restarts):
        at = array + 4 * number
        yield Span(at, at + 4, f"restart point {number}: entry at {restart}")
    end = len(block.plain)
    yield Span(end - 4, end, f"restart points: {len(restarts)}")


def _handle_value_spans(entry: Entry) -> Iterator[Span]:
    at = entry.value_at
    if entry.handle is None:
        yield Span(at, entry.end, "no handle")
        return
    done = at
    for field in handle_fields(entry.value):
        done = at + field.end
        yield Span(at + field.start, done, f"block: {field.name} {field.value!r}")
    yield Span(done, entry.end, "bytes after the handle")


def filter_block_spans(plain: bytes, policy: bytes) -> Iterator[Span]:
    """The spans of a filter block in LevelDB's layout."""
    layout = parse_filter_block(plain)
    base = 1 << layout.base_lg
    first = layout.bounds[0].start if layout.bounds else layout.array
    yield Span(0, first, "bytes before the first filter")
    for number, (start, end) in enumerate(layout.bounds):
        what = f"filter {number}, for blocks at {number * base} to {(number + 1) * base - 1}"
        yield from one_filter_spans(plain[start:end], start, what, policy)
    for number, (start, _) in enumerate(layout.bounds):
        at = layout.array + 4 * number
        yield Span(at, at + 4, f"filter {number} starts at {start}")
    tail = len(plain) - 5
    yield Span(tail, tail + 4, f"the filters end, and their offsets start, at {layout.array}")
    yield Span(tail + 4, tail + 5, f"one filter for each 2^{layout.base_lg} bytes of the file")


def one_filter_spans(data: bytes, at: int, what: str, policy: bytes) -> Iterator[Span]:
    """The spans of one filter, which is at ``at``."""
    end = at + len(data)
    one = Filter(0, at, 0, None, None, policy, data)
    fuse = one.fuse
    if fuse is not None:
        slots = f"{what}: fuse, {fuse.slots:,} slots of a byte, {fuse.arity} for each key"
        yield Span(at, at + fuse.slots, slots)
        length = fuse.segment_slots
        first = f"first slots lie in {fuse.segments:,} segments, and {fuse.arity - 1} more follow"
        yield Span(end - 7, end - 3, first)
        segment = f"a segment has 2^{length.bit_length() - 1} = {length:,} slots"
        yield Span(end - 3, end - 2, segment)
        yield Span(end - 2, end - 1, f"seed: {count(fuse.seed, 'attempt')} failed before")
        yield Span(end - 1, end, f"fuse filter with {fuse.arity} slots for each key")
        return
    if one.bits is None:
        yield Span(at, end, f"{what}: as its policy made it")
        return
    yield Span(at, end - 1, f"{what}: {count(one.bits, 'bit')}, {one.ones:,} set")
    yield Span(end - 1, end, f"probes: {one.probes}")


def footer_spans(data: bytes) -> Iterator[Span]:
    """The spans of a footer, the 48 bytes at a table's end."""
    for name, start, end, value in parse_footer(data).fields:
        if name in ("padding", "magic"):
            yield Span(start, end, "padding" if name == "padding" else "magic number")
        else:
            yield Span(start, end, f"{name.replace(' ', ': ')} {value!r}")


def _quoted(data: bytes, is_hex: bool) -> str:
    """The beginning of some bytes, in quotes; the line has all of them in hexadecimal."""
    more = "" if len(data) <= _SHOWN else f"... of {count(len(data), 'byte')}"
    return f"'{shown(data[:_SHOWN], is_hex)}'{more}"
