"""Records as JSON: one object each, on its own line.

``file`` and ``record`` (the record's type) come first.  Keys, values and other bytes of the user
are strings, either escaped as in the text form, for ``lsmkv.tools.text.unescape``, or in
hexadecimal.  The bytes of filters and of annotated pieces are always hexadecimal.
"""

from __future__ import annotations

import json
from typing import Any, assert_never

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
from lsmkv.tools.text import escape, printable, shown

Fields = dict[str, Any]


class JsonForm:
    """Prints records as JSON objects."""

    def __init__(self, is_hex: bool, keys_only: bool) -> None:
        self._is_hex = is_hex
        self._keys_only = keys_only
        self._file = ""
        self._batch = 0  # the offset of the current one

    def lines(self, record: Record) -> list[str]:
        """The line of a record, in a list."""
        if isinstance(record, Heading):
            self._file = printable(record.name)
        is_batch = isinstance(record, LogRecord)
        name = "batch" if is_batch else type(record).__name__.lower()
        fields = {"file": self._file, "record": name} | self._fields(record)
        return [json.dumps(fields, ensure_ascii=False)]

    def _fields(self, record: Record) -> Fields:
        match record:
            case Entry():
                return (
                    {"block": record.block, "offset": record.offset, "restart": record.restart}
                    | self._key(record.key)
                    | self._value(record.value)
                )
            case Operation():
                fields: Fields = {"offset": self._batch, "sequence": record.sequence}
                fields["kind"] = "del" if record.value is None else "put"
                fields["key"] = self._shown(record.key)
                return fields | self._value(record.value)
            case Piece():
                fields = {} if record.block < 0 else {"block": record.block}
                fields |= {"offset": record.offset, "size": len(record.data)}
                return fields | {"bytes": record.data.hex(), "meaning": record.meaning}
            case Edit():
                return {"offset": record.offset, "end": record.end} | self._edit(record)
            case Handle():
                key = record.key
                return (
                    {"block": record.block, "offset": record.offset, "restart": record.restart}
                    | ({"key": self._shown(key)} if isinstance(key, bytes) else self._key(key))
                    | {"handle": _handle(record.handle)}
                )
            case Block():
                place = record.place
                return {
                    "kind": place.kind,
                    "name": escape(place.name),
                    "offset": place.offset,
                    "size": place.size,
                    "compression": record.codec,
                    "plain_size": len(record.plain),
                    "restarts": restarts_of(record),
                }
            case Filter():
                return _filter(record)
            case Footer():
                return {
                    "offset": record.offset,
                    "metaindex": _handle(record.metaindex),
                    "index": _handle(record.index),
                }
            case Heading():
                return {"kind": record.kind, "size": record.size}
            case Fault():
                return record._asdict() | {"reason": printable(record.reason)}
            case LogRecord():
                self._batch = record.offset
                fields = {"offset": record.offset, "end": record.end}
                fields["sequence"] = record.batch.sequence
                return fields | {"operations": record.batch.count}
            case Current():
                return record._asdict()
            case _:
                assert_never(record)

    def _key(self, key: InternalKey) -> Fields:
        return {
            "key": self._shown(key.user_key),
            "sequence": key.sequence,
            "kind": None if key.kind is None else kind_word(key.kind),
        }

    def _value(self, value: bytes | None) -> Fields:
        return {} if value is None or self._keys_only else {"value": self._shown(value)}

    def _edit(self, edit: Edit) -> Fields:
        fields: Fields = {}
        if edit.comparator is not None:
            fields["comparator"] = escape(edit.comparator.encode())
        for name in ("log_number", "prev_log_number", "next_file_number", "last_sequence"):
            number = getattr(edit, name)
            if number is not None:
                fields[name] = number
        fields["compact_pointers"] = [
            {"level": level} | self._key(key) for level, key in edit.compact_pointers
        ]
        fields["deleted_files"] = [
            {"level": level, "number": number} for level, number in edit.deleted_files
        ]
        fields["new_files"] = [
            {
                "level": level,
                "number": file.number,
                "size": file.size,
                "smallest": self._key(file.smallest),
                "largest": self._key(file.largest),
            }
            for level, file in edit.new_files
        ]
        return fields

    def _shown(self, data: bytes) -> str:
        return shown(data, self._is_hex)


def _handle(handle: BlockHandle) -> Fields:
    return {"offset": handle.offset, "size": handle.size}


def _filter(record: Filter) -> Fields:
    fields: Fields = {
        "block": record.block,
        "offset": record.offset,
        "number": record.number,
        "first": record.first,
        "last": record.last,
        "policy": escape(record.policy),
    }
    if record.extractor:
        fields["extractor"] = escape(record.extractor)
    fuse = record.fuse
    if fuse is not None:
        fields |= {
            "arity": fuse.arity,
            "segments": fuse.segments,
            "segment_slots": fuse.segment_slots,
            "seed": fuse.seed,
        }
    if record.bits is not None:
        fields |= {"bits": record.bits, "set": record.ones, "probes": record.probes}
    return fields | {"bytes": record.data.hex()}
