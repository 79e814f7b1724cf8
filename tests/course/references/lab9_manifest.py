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
    edit_of,
    encoded,
    levels_of,
    replayed,
    version_of,
)
from lsmkv.env.base import Directory, WritableFile
from lsmkv.errors import CorruptionError
from lsmkv.format.filenames import set_current
from lsmkv.format.log import LogWriter
from lsmkv.format.version_edit import VersionEdit

__all__ = [
    "apply_edit",
    "decode_edit",
    "encode_edit",
    "flush",
    "replay_edits",
    "set_current",
]

encode_edit = encoded


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
    return levels_of(version_of(levels).apply(edit_of(fields)))


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
    LogWriter(manifest, manifest.size()).add_record(edit)
    manifest.sync()
    directory.remove(old_log)
