"""Version edits for lab 9: what they are made of, and what the engine makes of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from lsmkv.counters import NUM_LEVELS
from lsmkv.db.tree.manifest import Manifest
from lsmkv.db.tree.version import Version, describe_key
from lsmkv.format.keys import KIND_VALUE, InternalKeyComparator, pack
from lsmkv.format.version_edit import FileMetaData, VersionEdit
from lsmkv.util.coding import encode_varint
from lsmkv.util.comparator import BytewiseComparator

COMPARATOR, LOG_NUMBER, NEXT_FILE_NUMBER, LAST_SEQUENCE = 1, 2, 3, 4
COMPACT_POINTER, DELETED_FILE, NEW_FILE, PREV_LOG_NUMBER = 5, 6, 7, 9
LAYOUT: dict[int, tuple[str, tuple[str, ...]]] = {
    COMPARATOR: ("comparator", ("name",)),
    LOG_NUMBER: ("log number", ("number",)),
    PREV_LOG_NUMBER: ("previous log number", ("number",)),
    NEXT_FILE_NUMBER: ("next file number", ("number",)),
    LAST_SEQUENCE: ("last sequence", ("number",)),
    COMPACT_POINTER: ("compact pointer", ("level", "key")),
    DELETED_FILE: ("deleted file", ("level", "number")),
    NEW_FILE: ("new file", ("level", "number", "size", "smallest key", "largest key")),
}
"""The name of each tag, and the names of what follows it."""

KEYS = InternalKeyComparator(BytewiseComparator())
NAME_OF_ORDER = b"leveldb.BytewiseComparator"

Field = tuple[Any, ...]
File = tuple[int, int, bytes, bytes]
Levels = list[list[File]]


def file(number: int, first: bytes, last: bytes, size: int = 1234) -> File:
    """A table from one user key to another."""
    return number, size, pack(first, 10 * number, KIND_VALUE), pack(last, 10 * number + 9, 1)


EDITS: tuple[tuple[Field, ...], ...] = (
    ((LOG_NUMBER, 6),),
    ((PREV_LOG_NUMBER, 0), (NEXT_FILE_NUMBER, 300)),
    ((LAST_SEQUENCE, 2**56 - 1),),
    ((COMPARATOR, NAME_OF_ORDER),),
    ((COMPACT_POINTER, 2, pack(b"kiwi", 7, KIND_VALUE)),),
    ((DELETED_FILE, 0, 5), (DELETED_FILE, 6, 2000)),
    ((NEW_FILE, 1, *file(7, b"ant", b"bee")),),
    ((DELETED_FILE, 0, 7), (NEW_FILE, 1, *file(7, b"ant", b"bee", 70000))),
    ((NEW_FILE, 0, *file(8, b"", b"a" * 200)), (NEW_FILE, 0, *file(9, b"a", b"b"))),
    (
        (LOG_NUMBER, 12),
        (PREV_LOG_NUMBER, 0),
        (NEXT_FILE_NUMBER, 14),
        (LAST_SEQUENCE, 200),
        (NEW_FILE, 0, *file(13, b"cat", b"dog")),
    ),
)
"""Edits of which each tries a field or two, in LevelDB's order."""


def encoded(fields: Sequence[Field]) -> bytes:
    """The record of some fields, in their order, by the engine."""
    return b"".join(edit_of([field]).encode() for field in fields)


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


def parts(fields: Sequence[Field]) -> list[tuple[int, int, str]]:
    """The parts of a record: place, size, and what it is."""
    found: list[tuple[int, int, str]] = []
    at = 0
    for tag, *content in fields:
        name, names = LAYOUT[tag]
        pieces = [(1, f"tag {tag}, {name}")]
        for what, value in zip(names, content, strict=True):
            if isinstance(value, int):
                pieces.append((len(encode_varint(value)), f"{what} {value:,}"))
                continue
            pieces.append((len(encode_varint(len(value))), f"length of {what}, {len(value)}"))
            text = describe_key(value) if "key" in what else repr(value)[1:]
            pieces.append((len(value), f"{what}, {text}"))
        for size, told in pieces:
            found.append((at, size, told))
            at += size
    return found


def meaning(fields: Sequence[Field], wanted: int) -> str:
    """What a byte of a record is."""
    return next(
        f"{told}; byte {wanted - start} of it" if size > 1 else told
        for start, size, told in parts(fields)
        if start <= wanted < start + size
    )


def some_fields(seed: int) -> list[Field]:
    """An edit of random fields, in LevelDB's order."""
    dice = random.Random(seed)

    def key() -> bytes:
        user_key = dice.randbytes(dice.choice((0, 3, 130)))
        return pack(user_key, dice.getrandbits(50), dice.getrandbits(1))

    def number() -> int:
        return dice.getrandbits(dice.choice((3, 7, 20, 40)))

    fields: list[Field] = [
        (tag, number())
        for tag in (LOG_NUMBER, PREV_LOG_NUMBER, NEXT_FILE_NUMBER, LAST_SEQUENCE)
        if dice.random() < 0.5
    ]
    fields += [(COMPACT_POINTER, dice.randrange(7), key()) for _ in range(dice.randrange(3))]
    deleted = {(dice.randrange(7), number()) for _ in range(dice.randrange(4))}
    fields += [(DELETED_FILE, *one) for one in sorted(deleted)]
    return fields + [
        (NEW_FILE, dice.randrange(7), number(), number(), key(), key())
        for _ in range(dice.randrange(4))
    ]


def levels_of(version: Version) -> Levels:
    """The levels of the engine's version."""
    return [
        [(one.number, one.size, one.smallest, one.largest) for one in files]
        for files in version.levels
    ]


def version_of(levels: Levels) -> Version:
    """The engine's version with these levels."""
    return Version(KEYS, [[FileMetaData(*one) for one in files] for files in levels])


def no_levels() -> Levels:
    """Levels without a table."""
    return [[] for _ in range(NUM_LEVELS)]


APPLIED: tuple[tuple[tuple[Field, ...], str], ...] = (
    (((NEW_FILE, 0, *file(5, b"a", b"m")),), "A new file goes to its level."),
    (
        ((NEW_FILE, 0, *file(7, b"b", b"z")), (NEW_FILE, 0, *file(6, b"c", b"d"))),
        "Level 0 has the highest number first, since that table is the newest.",
    ),
    (
        ((NEW_FILE, 1, *file(8, b"p", b"q")), (NEW_FILE, 1, *file(9, b"a", b"b"))),
        "From level 1 on, the table with the smallest keys comes first, whatever its number.",
    ),
    (((LOG_NUMBER, 4), (LAST_SEQUENCE, 99)), "Counters leave the levels as they are."),
    (((DELETED_FILE, 0, 6),), "A deleted file leaves its level, and the others stay."),
    (
        ((DELETED_FILE, 0, 5), (NEW_FILE, 2, *file(5, b"a", b"m"))),
        "A table moves down by one edit, which deletes it on one level and adds it on another: a"
        " deletion is of a level and a number.",
    ),
    (
        ((NEW_FILE, 2, *file(5, b"a", b"m")), (DELETED_FILE, 2, 5)),
        "All deletions of an edit come before all its additions, wherever they stand.",
    ),
    (((DELETED_FILE, 3, 4711),), "A file that is not there cannot be deleted: nothing happens."),
    (
        (
            (DELETED_FILE, 0, 7),
            (DELETED_FILE, 1, 9),
            (NEW_FILE, 1, *file(10, b"a", b"c")),
            (NEW_FILE, 1, *file(11, b"d", b"o")),
        ),
        "A compaction deletes its inputs on two levels, and adds its outputs.",
    ),
)
"""Edits that are applied one after the other, and what each is about."""


SNAPSHOT: tuple[Field, ...] = (
    (COMPARATOR, NAME_OF_ORDER),
    (NEW_FILE, 0, *file(5, b"a", b"m")),
    (NEW_FILE, 1, *file(4, b"k", b"p")),
)


def manifests() -> list[list[tuple[Field, ...]]]:
    """The edits of some MANIFESTs."""
    counters: tuple[Field, ...] = (
        (LOG_NUMBER, 6),
        (PREV_LOG_NUMBER, 0),
        (NEXT_FILE_NUMBER, 7),
        (LAST_SEQUENCE, 70),
    )
    flushed: tuple[Field, ...] = (
        (LOG_NUMBER, 8),
        (NEXT_FILE_NUMBER, 10),
        (LAST_SEQUENCE, 99),
        (NEW_FILE, 0, *file(9, b"b", b"c")),
    )
    compacted: tuple[Field, ...] = (
        (COMPACT_POINTER, 0, pack(b"m", 59, KIND_VALUE)),
        (DELETED_FILE, 0, 5),
        (DELETED_FILE, 0, 9),
        (DELETED_FILE, 1, 4),
        (NEW_FILE, 1, *file(10, b"a", b"p")),
    )
    return [
        [counters],
        [SNAPSHOT, counters],
        [SNAPSHOT, counters, flushed],
        [SNAPSHOT, counters, flushed, compacted],
        [SNAPSHOT, counters, flushed, compacted, ((PREV_LOG_NUMBER, 3), (LAST_SEQUENCE, 120))],
    ]


def replayed(records: Sequence[bytes]) -> tuple[dict[int, Any], Levels]:
    """What the engine makes of the records of a MANIFEST."""
    state = Manifest("MANIFEST")
    counters: dict[int, Any] = {}
    for record in records:
        edit = VersionEdit.decode(record)
        state.apply(edit)
        told = {
            COMPARATOR: edit.comparator.encode() if edit.comparator is not None else None,
            LOG_NUMBER: edit.log_number,
            PREV_LOG_NUMBER: edit.prev_log_number,
            NEXT_FILE_NUMBER: edit.next_file_number,
            LAST_SEQUENCE: edit.last_sequence,
        }
        counters |= {tag: value for tag, value in told.items() if value is not None}
    return counters, levels_of(state.version(KEYS))
