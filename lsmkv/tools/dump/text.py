"""Prints records as lines of text.

Where LevelDB's ``leveldbutil dump`` prints a line, it is the same line, except that bytes are
escaped in another way.  Lines that LevelDB does not print begin with ``===`` (a file), ``---`` (a
block), two spaces (its content other than entries) or ``!!!`` (a fault).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from lsmkv.files import Block, BlockHandle, Edit, Filter, Footer, InternalKey, LogRecord, Operation
from lsmkv.tools.dump.records import (
    Current,
    Entry,
    Fault,
    Handle,
    Heading,
    Piece,
    Record,
    kind_word,
    restarts_of,
)
from lsmkv.tools.text import count, escape, printable, shown

_ROW = 8
"""Bytes of an annotated piece or of a filter on a line."""


class TextForm:
    """Prints each record as one or a few lines."""

    def __init__(self, is_hex: bool, keys_only: bool, headings: bool) -> None:
        """With ``headings``, a line with its name begins each file."""
        self._is_hex = is_hex
        self._headings = headings
        self._keys_only = keys_only
        self._width = 1  # digits of the largest offset in the current file

    def lines(self, record: Record) -> Iterator[str]:
        """The lines of a record."""
        match record:
            case Entry():
                yield self._entry(record)
            case Operation():
                yield self._operation(record)
            case Piece():
                yield from self._piece(record)
            case LogRecord():
                yield f"--- offset {record.offset}; sequence {record.batch.sequence}"
            case Edit():
                yield f"--- offset {record.offset}; VersionEdit {{"
                yield from self._edit(record)
                yield "}"
            case Handle():
                yield f"  {self._handle_key(record.key)} => {_at(record.handle)}"
            case Block():
                yield self._block(record)
            case Filter():
                yield from self._filter(record)
            case Footer():
                where = f"metaindex at {_at(record.metaindex)}; index at {_at(record.index)}"
                yield f"--- offset {record.offset}; footer; {where}"
            case Current():
                yield f"--- offset 0; {printable(record.manifest)}"
            case Heading():
                self._width = len(str(record.size))
                if self._headings:
                    size = count(record.size, "byte")
                    yield f"=== {printable(record.name)}: {record.kind}, {size}"
            case Fault():
                where = "" if record.offset is None else f"offset {record.offset}; "
                yield f"!!! {where}{record.kind}: {printable(record.reason)}"
            case _:
                assert_never(record)

    def _operation(self, record: Operation) -> str:
        key = self._quoted(record.key)
        if record.value is None:
            return f"  del {key}"
        return f"  put {key}" if self._keys_only else f"  put {key} {self._quoted(record.value)}"

    def _entry(self, record: Entry) -> str:
        value = "" if self._keys_only else f" => {self._quoted(record.value)}"
        key = record.key
        if key.sequence is None:
            return f"badkey {self._quoted(key.user_key)}{value}"
        return f"{self._quoted(key.user_key)} @ {key.sequence} : {kind_word(key.kind)}{value}"

    def _edit(self, edit: Edit) -> Iterator[str]:
        if edit.comparator is not None:
            yield f"  Comparator: {escape(edit.comparator.encode())}"
        for name, number in (
            ("LogNumber", edit.log_number),
            ("PrevLogNumber", edit.prev_log_number),
            ("NextFile", edit.next_file_number),
            ("LastSeq", edit.last_sequence),
        ):
            if number is not None:
                yield f"  {name}: {number}"
        for level, key in edit.compact_pointers:
            yield f"  CompactPointer: {level} {self._bound(key)}"
        for level, number in edit.deleted_files:
            yield f"  DeleteFile: {level} {number}"
        for level, file in edit.new_files:
            yield (
                f"  AddFile: {level} {file.number} {file.size}"
                f" {self._bound(file.smallest)} .. {self._bound(file.largest)}"
            )

    def _bound(self, key: InternalKey) -> str:
        """An internal key in a MANIFEST, with its kind as a number, as LevelDB prints it."""
        return f"{self._quoted(key.user_key)} @ {key.sequence} : {key.kind}"

    def _block(self, record: Block) -> str:
        place, plain_size, restarts = record.place, len(record.plain), restarts_of(record)
        name = f" '{escape(place.name)}'" if place.name else ""
        line = f"--- offset {place.offset}; {place.kind} block{name}"
        line += f"; size {place.size}, {record.codec}"
        if plain_size != place.size:
            line += f" from {plain_size}"
        if restarts is not None:
            line += f"; restart points: {' '.join(map(str, restarts))}"
        return line

    def _handle_key(self, key: InternalKey | bytes) -> str:
        if isinstance(key, bytes):
            return self._quoted(key)
        if key.sequence is None:
            return f"badkey {self._quoted(key.user_key)}"
        return f"{self._quoted(key.user_key)} @ {key.sequence} : {kind_word(key.kind)}"

    def _filter(self, record: Filter) -> Iterator[str]:
        covers = f", blocks at {record.first} to {record.last}"
        start = f"  filter {record.number}{covers if record.first is not None else ''}"
        if not record.data:
            yield f"{start}: empty"
            return
        if record.extractor:
            start = f"  filter of prefixes, {shown(record.extractor, False)}"
        fuse = record.fuse
        if fuse is not None:
            segments = f"{fuse.segments:,} + {fuse.arity - 1} segments of {fuse.segment_slots:,}"
            yield f"{start}: fuse, {fuse.arity} slots a key, {segments}, seed {fuse.seed}"
            width = len(str(fuse.slots))
            for at in range(0, fuse.slots, 2 * _ROW):
                row = record.data[at : min(at + 2 * _ROW, fuse.slots)]
                yield f"    {at:>{width}}  {row.hex(' ')}"
            return
        if record.bits is None:
            yield f"{start}: {record.data.hex()}"
            return
        probes = count(record.data[-1], "probe")
        yield f"{start}: {count(record.bits, 'bit')}, {record.ones:,} set, {probes}"
        for at in range(0, len(record.data) - 1, _ROW):
            row = record.data[at : min(at + _ROW, len(record.data) - 1)]
            yield f"    {8 * at:>{len(str(record.bits))}}  {' '.join(map(_bits, row))}"

    def _piece(self, record: Piece) -> Iterator[str]:
        indent = "" if record.block < 0 else "    "
        meaning = record.meaning
        for at in range(0, len(record.data), _ROW):
            row = record.data[at : at + _ROW].hex(" ")
            line = f"{indent}{record.offset + at:>{self._width}}  {row:<{3 * _ROW - 1}}  {meaning}"
            yield line.rstrip()
            meaning = ""

    def _quoted(self, data: bytes) -> str:
        return f"'{shown(data, self._is_hex)}'"


def _at(handle: BlockHandle) -> str:
    return f"offset {handle.offset}, size {handle.size}"


def _bits(byte: int) -> str:
    """A byte's bits, the lowest first."""
    return f"{byte:08b}"[::-1]
