"""Lab 9: flush and MANIFEST.  ``lsmkv course show 9`` is the text, ``lsmkv course check 9`` checks.

Write the six functions.  Each can be checked as soon as it is written.  Varints and strings are the
engine's; ``from lab1_keys import ...`` takes your own instead.  Records are framed by your own
``frame``: ``from lab2_log import frame``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lsmkv.course.given import (  # noqa: F401 - for you to use
    BLOCK_SIZE,
    Directory,
    WritableFile,
    decode_string,
    decode_varint32,
    decode_varint64,
    encode_string,
    encode_varint,
)

COMPARATOR, LOG_NUMBER, NEXT_FILE_NUMBER, LAST_SEQUENCE = 1, 2, 3, 4
COMPACT_POINTER, DELETED_FILE, NEW_FILE, PREV_LOG_NUMBER = 5, 6, 7, 9
LEVELS = 7

Field = tuple[Any, ...]
"""A field of an edit: its tag, then its content, such as ``(DELETED_FILE, level, number)``."""
File = tuple[int, int, bytes, bytes]
"""A table: its number, its size in bytes, its smallest and its largest internal key."""
Levels = list[list[File]]
"""The tables of each level.  Level 0 has the highest number first, the others the smallest key."""


def encode_edit(fields: Sequence[Field]) -> bytes:
    """The record of an edit: its fields, in the given order."""
    raise NotImplementedError


def decode_edit(record: bytes) -> list[Field]:
    """The fields of a record; ``ValueError`` if it is invalid."""
    raise NotImplementedError


def apply_edit(levels: Levels, fields: Sequence[Field]) -> Levels:
    """The levels after an edit.  The given levels do not change: readers may be using them."""
    raise NotImplementedError


def replay_edits(records: Sequence[bytes]) -> tuple[dict[int, Any], Levels]:
    """The state after the records of a MANIFEST: the last value of each of the tags 1, 2, 3, 4 and
    9, and the levels.

    ``ValueError`` if no record has a log number, a next file number or a last sequence.
    """
    raise NotImplementedError


def set_current(directory: Directory, number: int) -> None:
    """Make CURRENT name the MANIFEST with this number, which is durable, and make CURRENT
    durable."""
    raise NotImplementedError


def flush(
    directory: Directory,
    manifest: WritableFile,
    table_name: str,
    table: bytes,
    edit: bytes,
    old_log: str,
) -> None:
    """Flush a memtable: write its table, append the edit that names the table to the MANIFEST, and
    remove the log that held the writes.
    """
    raise NotImplementedError
