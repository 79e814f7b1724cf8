"""VersionEdit: one record of the MANIFEST, a change to the set of tables.

The record is a sequence of fields, each a varint32 tag and its content (source: LevelDB,
``db/version_edit.cc``):

===  ================  ===========================================================
tag  field             content
===  ================  ===========================================================
1    comparator        string: its name
2    log number        varint64: older logs are obsolete
9    previous log      varint64: 0 since 2011, and an older log's number before
3    next file number  varint64
4    last sequence     varint64
5    compact pointer   varint32 level, string internal key: where the next compaction begins
6    deleted file      varint32 level, varint64 number
7    new file          varint32 level, varint64 number, varint64 size, string smallest internal
                       key, string largest internal key
===  ================  ===========================================================

Other tags are refused, as in LevelDB, so no field may ever be added.  LevelDB's levels end at 6.
goleveldb's do not: its records are the same except for their levels.
"""

from __future__ import annotations

from typing import Final

from lsmkv.engine.counters import NUM_LEVELS
from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.format.keys import unpack
from lsmkv.engine.util.cache_entry import CacheEntry
from lsmkv.engine.util.coding import (
    decode_string,
    decode_varint32,
    decode_varint64,
    encode_string,
    encode_varint,
)

_COMPARATOR = 1
_LOG_NUMBER = 2
_NEXT_FILE_NUMBER = 3
_LAST_SEQUENCE = 4
_COMPACT_POINTER = 5
_DELETED_FILE = 6
_NEW_FILE = 7
_PREV_LOG_NUMBER = 9
_TAGS = frozenset((*range(_COMPARATOR, _NEW_FILE + 1), _PREV_LOG_NUMBER))

MAX_LEVELS: Final = 256
"""More levels than any goleveldb store has; a higher level is damage."""

_BYTES_A_SEEK_SAVES = 16384
_LEAST_SEEKS = 100


class FileMetaData:
    """A table as the MANIFEST knows it.  ``smallest`` and ``largest`` are internal keys."""

    __slots__ = ("allowed_seeks", "largest", "number", "opened", "size", "smallest")

    def __init__(self, number: int, size: int, smallest: bytes, largest: bytes) -> None:
        self.number = number
        self.size = size
        self.smallest = smallest
        self.largest = largest
        # One seek costs about as much as compacting 16 KiB (LevelDB's estimate), so after this many
        # reads without a result it is cheaper to compact the file.
        self.allowed_seeks = max(_LEAST_SEEKS, size // _BYTES_A_SEEK_SAVES)
        self.opened: CacheEntry | None = None
        """The table cache's entry for the open table, which may have been evicted since."""

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FileMetaData)
            and self.number == other.number
            and self.size == other.size
            and self.smallest == other.smallest
            and self.largest == other.largest
        )

    def __hash__(self) -> int:
        return hash(self.number)

    def __repr__(self) -> str:
        return f"FileMetaData({self.number}, {self.size}, {self.smallest!r}, {self.largest!r})"


class VersionEdit:
    """A change to the version; fields that are None are not in the record.

    >>> edit = VersionEdit()
    >>> edit.log_number = 3
    >>> edit.delete_file(0, 7)
    >>> edit.encode().hex()
    '0203060007'
    """

    def __init__(self) -> None:
        self.comparator: str | None = None
        self.log_number: int | None = None
        self.prev_log_number: int | None = None
        self.next_file_number: int | None = None
        self.last_sequence: int | None = None
        self.compact_pointers: list[tuple[int, bytes]] = []
        self.deleted_files: set[tuple[int, int]] = set()
        """The level and number of each."""
        self.new_files: list[tuple[int, FileMetaData]] = []

    def add_file(self, level: int, file: FileMetaData) -> None:
        """Add the file, which is finished and durable, to ``level``."""
        self.new_files.append((level, file))

    def delete_file(self, level: int, number: int) -> None:
        """Remove the file from ``level``."""
        self.deleted_files.add((level, number))

    def encode(self) -> bytes:
        """The record, its fields in LevelDB's order."""
        parts: list[bytes] = []
        if self.comparator is not None:
            parts += [encode_varint(_COMPARATOR), encode_string(self.comparator.encode())]
        for tag, number in (
            (_LOG_NUMBER, self.log_number),
            (_PREV_LOG_NUMBER, self.prev_log_number),
            (_NEXT_FILE_NUMBER, self.next_file_number),
            (_LAST_SEQUENCE, self.last_sequence),
        ):
            if number is not None:
                parts += [encode_varint(tag), encode_varint(number)]
        for level, key in self.compact_pointers:
            parts += [encode_varint(_COMPACT_POINTER), encode_varint(level), encode_string(key)]
        for level, number in sorted(self.deleted_files):
            parts += [encode_varint(_DELETED_FILE), encode_varint(level), encode_varint(number)]
        for level, file in self.new_files:
            parts += [
                encode_varint(_NEW_FILE),
                encode_varint(level),
                encode_varint(file.number),
                encode_varint(file.size),
                encode_string(file.smallest),
                encode_string(file.largest),
            ]
        return b"".join(parts)

    @staticmethod
    def decode(record: bytes, levels: int = NUM_LEVELS) -> VersionEdit:
        """The edit in a record, whose levels are below ``levels``.

        Raises :class:`CorruptionError`, with the offset inside it.
        """
        edit = VersionEdit()
        at = 0
        while at < len(record):
            at = edit._decode_field(record, at, levels)
        return edit

    def _decode_field(self, record: bytes, start: int, levels: int) -> int:
        """Read the field at ``start``, and return the position after it."""
        tag, at = decode_varint32(record, start)
        if tag == _COMPARATOR:
            name, at = decode_string(record, at)
            try:
                self.comparator = name.decode("utf-8")
            except UnicodeDecodeError:
                raise CorruptionError("a comparator name that is not UTF-8", None, start) from None
        elif tag == _LOG_NUMBER:
            self.log_number, at = decode_varint64(record, at)
        elif tag == _PREV_LOG_NUMBER:
            self.prev_log_number, at = decode_varint64(record, at)
        elif tag == _NEXT_FILE_NUMBER:
            self.next_file_number, at = decode_varint64(record, at)
        elif tag == _LAST_SEQUENCE:
            self.last_sequence, at = decode_varint64(record, at)
        elif tag == _COMPACT_POINTER:
            level, at = _decode_level(record, at, levels)
            key, at = _decode_internal_key(record, at)
            self.compact_pointers.append((level, key))
        elif tag == _DELETED_FILE:
            level, at = _decode_level(record, at, levels)
            number, at = decode_varint64(record, at)
            self.deleted_files.add((level, number))
        elif tag == _NEW_FILE:
            level, at = _decode_level(record, at, levels)
            number, at = decode_varint64(record, at)
            size, at = decode_varint64(record, at)
            smallest, at = _decode_internal_key(record, at)
            largest, at = _decode_internal_key(record, at)
            self.new_files.append((level, FileMetaData(number, size, smallest, largest)))
        else:
            raise CorruptionError(f"an unknown field, tag {tag}", None, start)
        return at


def unknown_tag(record: bytes, error: CorruptionError) -> int:
    """The tag unknown to LevelDB because of which a record was refused; 0 if the reason is another.

    >>> record = bytes([11, 0])
    >>> try:
    ...     VersionEdit.decode(record)
    ... except CorruptionError as error:
    ...     unknown_tag(record, error)
    11
    """
    try:
        tag, _ = decode_varint32(record, error.offset or 0)
    except CorruptionError:
        return 0
    return tag if tag > 0 and tag not in _TAGS and error.reason.endswith(f" tag {tag}") else 0


def _decode_level(record: bytes, start: int, levels: int) -> tuple[int, int]:
    level, at = decode_varint32(record, start)
    if level >= levels:
        raise CorruptionError(f"invalid level {level}", None, start)
    return level, at


def _decode_internal_key(record: bytes, start: int) -> tuple[bytes, int]:
    key, at = decode_string(record, start)
    try:
        unpack(key)
    except CorruptionError as error:
        raise CorruptionError(error.reason, None, start) from None
    return key, at
