"""Lab 9, by the engine's own modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lsmkv.course.labs.edits import (
    COMPACT_POINTER,
    COMPARATOR,
    DELETED_FILE,
    LAST_SEQUENCE,
    LOG_NUMBER,
    NEW_FILE,
    NEXT_FILE_NUMBER,
    PREV_LOG_NUMBER,
    Field,
    Levels,
    replayed,
)
from lsmkv.engine.db.tree.version import Version
from lsmkv.engine.env.base import Directory, WritableFile
from lsmkv.engine.format.filenames import set_current
from lsmkv.engine.format.keys import InternalKeyComparator
from lsmkv.engine.format.log import BLOCK_SIZE, frame
from lsmkv.engine.format.version_edit import FileMetaData, VersionEdit
from lsmkv.engine.util.comparator import BYTEWISE
from lsmkv.errors import CorruptionError

__all__ = [
    "apply_edit",
    "decode_edit",
    "encode_edit",
    "flush",
    "replay_edits",
    "set_current",
]


def edit_of(fields: Sequence[Field]) -> VersionEdit:
    """The engine's edit with these fields."""
    edit = VersionEdit()
    for tag, *content in fields:
        if tag == COMPARATOR:
            edit.comparator = content[0].decode()
        elif tag == LOG_NUMBER:
            edit.log_number = content[0]
        elif tag == PREV_LOG_NUMBER:
            edit.prev_log_number = content[0]
        elif tag == NEXT_FILE_NUMBER:
            edit.next_file_number = content[0]
        elif tag == LAST_SEQUENCE:
            edit.last_sequence = content[0]
        elif tag == COMPACT_POINTER:
            edit.compact_pointers.append((content[0], content[1]))
        elif tag == DELETED_FILE:
            edit.delete_file(content[0], content[1])
        else:
            edit.add_file(content[0], FileMetaData(*content[1:]))
    return edit


def version_of(levels: Levels) -> Version:
    """The engine's version with these levels."""
    files = [[FileMetaData(*one) for one in files] for files in levels]
    return Version(InternalKeyComparator(BYTEWISE), files)


def encode_edit(fields: Sequence[Field]) -> bytes:
    return b"".join(edit_of([field]).encode() for field in fields)


def decode_edit(record: bytes) -> list[Field]:
    edit = VersionEdit.decode(record)
    counters = (
        (COMPARATOR, None if edit.comparator is None else edit.comparator.encode()),
        (LOG_NUMBER, edit.log_number),
        (PREV_LOG_NUMBER, edit.prev_log_number),
        (NEXT_FILE_NUMBER, edit.next_file_number),
        (LAST_SEQUENCE, edit.last_sequence),
    )
    fields: list[Field] = [field for field in counters if field[1] is not None]
    fields += [(COMPACT_POINTER, *pointer) for pointer in edit.compact_pointers]
    fields += [(DELETED_FILE, *deleted) for deleted in sorted(edit.deleted_files)]
    for level, file in edit.new_files:
        fields.append((NEW_FILE, level, file.number, file.size, file.smallest, file.largest))
    return fields


def apply_edit(levels: Levels, fields: Sequence[Field]) -> Levels:
    version = version_of(levels).apply(edit_of(fields))
    return [
        [(one.number, one.size, one.smallest, one.largest) for one in files]
        for files in version.levels
    ]


def replay_edits(records: Sequence[bytes]) -> tuple[dict[int, Any], Levels]:
    counters, levels = replayed(records)
    if not {LOG_NUMBER, NEXT_FILE_NUMBER, LAST_SEQUENCE} <= counters.keys():
        raise CorruptionError("the MANIFEST lacks a counter")
    return counters, levels


def flush(
    directory: Directory,
    manifest: WritableFile,
    table_name: str,
    table: bytes,
    edit: bytes,
    old_log: str,
) -> None:
    with directory.create(table_name) as file:
        file.append(table)
        file.sync()
    directory.sync()
    manifest.append(frame(edit, manifest.size() % BLOCK_SIZE))
    manifest.sync()
    directory.remove(old_log)
