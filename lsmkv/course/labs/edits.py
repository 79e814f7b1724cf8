"""Version edits: their bytes, and the levels that result from them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from lsmkv.course.given import encode_string, encode_varint
from lsmkv.course.labs.formats import KIND_VALUE, LEVELS
from lsmkv.files import (
    InternalKey,
    TableFile,
    Version,
    VersionBuilder,
    make_key,
    parse_edit,
    parse_key,
)

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
"""The name of each tag, and the names of the values after it."""

NAME_OF_ORDER = b"leveldb.BytewiseComparator"

Field = tuple[Any, ...]
File = tuple[int, int, bytes, bytes]
Levels = list[list[File]]


def file(number: int, first: bytes, last: bytes, size: int = 1234) -> File:
    """A table from one user key to another."""
    return number, size, make_key(first, 10 * number), make_key(last, 10 * number + 9)


EDITS: tuple[tuple[Field, ...], ...] = (
    ((LOG_NUMBER, 6),),
    ((PREV_LOG_NUMBER, 0), (NEXT_FILE_NUMBER, 300)),
    ((LAST_SEQUENCE, 2**56 - 1),),
    ((COMPARATOR, NAME_OF_ORDER),),
    ((COMPACT_POINTER, 2, make_key(b"kiwi", 7, KIND_VALUE)),),
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
"""Edits that each test one or two fields, in LevelDB's order."""


def encoded(fields: Sequence[Field]) -> bytes:
    """The record of some fields, in their order: tags and numbers are varints, the rest strings."""
    return b"".join(
        encode_varint(part) if isinstance(part, int) else encode_string(part)
        for field in fields
        for part in field
    )


def parts(fields: Sequence[Field]) -> list[tuple[int, int, str]]:
    """The parts of a record: offset, size, and meaning."""
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
            text = described(value) if "key" in what else repr(value)[1:]
            pieces.append((len(value), f"{what}, {text}"))
        for size, description in pieces:
            found.append((at, size, description))
            at += size
    return found


def described(internal_key: bytes) -> str:
    """An internal key as text."""
    user_key, sequence, kind = parse_key(internal_key)
    printed = (chr(byte) if 0x20 <= byte <= 0x7E else f"\\x{byte:02x}" for byte in user_key)
    return f"'{''.join(printed)}' @ {sequence} : {kind}"


def meaning(fields: Sequence[Field], wanted: int) -> str:
    """The meaning of a byte of a record."""
    return next(
        f"{description}; byte {wanted - start} of it" if size > 1 else description
        for start, size, description in parts(fields)
        if start <= wanted < start + size
    )


def some_fields(seed: int) -> list[Field]:
    """An edit of random fields, in LevelDB's order."""
    dice = random.Random(seed)

    def key() -> bytes:
        user_key = dice.randbytes(dice.choice((0, 3, 130)))
        return make_key(user_key, dice.getrandbits(50), dice.getrandbits(1))

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
    """The levels of a version: level 0 with the newest table first, the others with the smallest
    key first."""
    levels = [
        [(one.number, one.size, key_bytes(one.smallest), key_bytes(one.largest)) for one in files]
        for files in version.levels
    ]
    levels[0].reverse()  # they are sorted by number
    for files in levels[1:]:
        files.sort(key=lambda file: sort_key(file[2]))
    return levels


def key_bytes(key: InternalKey) -> bytes:
    """An internal key, as a MANIFEST stores it."""
    assert key.sequence is not None
    assert key.kind is not None
    return make_key(key.user_key, key.sequence, key.kind)


def sort_key(internal_key: bytes) -> tuple[bytes, int]:
    """A sort key for internal keys: user keys ascend, and the versions of each descend."""
    return internal_key[:-8], -int.from_bytes(internal_key[-8:], "little")


def applied(levels: Levels, fields: Sequence[Field]) -> Levels:
    """The levels after an edit, by lsmkv.files."""
    builder = VersionBuilder(
        (level, table_file(file)) for level, files in enumerate(levels) for file in files
    )
    builder.apply(parse_edit(encoded(fields)))
    return levels_of(builder.version())


def table_file(file: File) -> TableFile:
    """A table with its keys in parts."""
    number, size, smallest, largest = file
    return TableFile(number, size, parse_key(smallest), parse_key(largest))


def no_levels() -> Levels:
    """Levels without a table."""
    return [[] for _ in range(LEVELS)]


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
        "All deletions of an edit come before all its additions, whatever their order in it.",
    ),
    (((DELETED_FILE, 3, 4711),), "Deleting a file that is not there does nothing."),
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
"""Edits that are applied one after the other, and the rule that each one tests."""


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
        (COMPACT_POINTER, 0, make_key(b"m", 59, KIND_VALUE)),
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
    """The state after the records of a MANIFEST, by lsmkv.files."""
    builder = VersionBuilder()
    counters: dict[int, Any] = {}
    for record in records:
        edit = parse_edit(record)
        builder.apply(edit)
        description = {
            COMPARATOR: edit.comparator.encode() if edit.comparator is not None else None,
            LOG_NUMBER: edit.log_number,
            PREV_LOG_NUMBER: edit.prev_log_number,
            NEXT_FILE_NUMBER: edit.next_file_number,
            LAST_SEQUENCE: edit.last_sequence,
        }
        counters |= {tag: value for tag, value in description.items() if value is not None}
    return counters, levels_of(builder.version())
