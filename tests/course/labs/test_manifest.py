"""Lab 9: planted mistakes are named."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from labs import Mistake, Planted, assert_caught, mistakes, solution

from lsmkv.course.labs.edits import (
    COMPARATOR,
    DELETED_FILE,
    LAST_SEQUENCE,
    NEW_FILE,
    PREV_LOG_NUMBER,
    Field,
    Levels,
    encoded,
    no_levels,
    replayed,
)
from lsmkv.course.labs.manifest import LAB
from lsmkv.engine.env.base import Directory, WritableFile
from lsmkv.engine.format.filenames import CURRENT, manifest_name
from lsmkv.engine.format.log import BLOCK_SIZE, frame


def decoded(record: bytes) -> list[Field]:
    fields: list[Field] = solution(LAB).decode_edit(record)
    return fields


def applied(levels: Levels, fields: Sequence[Field]) -> Levels:
    after: Levels = solution(LAB).apply_edit(levels, fields)
    return after


# Mistakes in edits.


def without_tag(tag: int, fields: Sequence[Field]) -> bytes:
    return encoded([field for field in fields if field[0] != tag])


def tag_8_for_9(fields: Sequence[Field]) -> bytes:
    return b"".join(
        b"\x08" + encoded([one])[1:] if one[0] == PREV_LOG_NUMBER else encoded([one])
        for one in fields
    )


def fixed_numbers(fields: Sequence[Field]) -> bytes:
    return b"".join(
        bytes([one[0]]) + one[1].to_bytes(8, "little")
        if one[0] == LAST_SEQUENCE
        else encoded([one])
        for one in fields
    )


def name_without_length(fields: Sequence[Field]) -> bytes:
    return b"".join(
        bytes([one[0]]) + one[1] if one[0] == COMPARATOR else encoded([one]) for one in fields
    )


def number_before_level(fields: Sequence[Field]) -> bytes:
    return encoded([(one[0], *one[:0:-1]) if one[0] == DELETED_FILE else one for one in fields])


def without_the_last(record: bytes) -> list[Field]:
    return decoded(record)[:-1]


def without_levels(record: bytes) -> list[Field]:
    return [(NEW_FILE, *one[2:]) if one[0] == NEW_FILE else one for one in decoded(record)]


def stops_at_an_unknown_tag(record: bytes) -> list[Field]:
    try:
        return decoded(record)
    except Exception:
        return decoded(record[: record.index(b"\x0a")]) if b"\x0a" in record else []


def raises_key_error(record: bytes) -> list[Field]:
    if record[0] not in range(1, 10):
        raise KeyError(record[0])
    return decoded(record)


# Mistakes in levels.


def without_deletions(levels: Levels, fields: Sequence[Field]) -> Levels:
    return applied(levels, [field for field in fields if field[0] != DELETED_FILE])


def deletions_by_number(levels: Levels, fields: Sequence[Field]) -> Levels:
    after = applied(levels, fields)
    gone = {number for tag, *content in fields if tag == DELETED_FILE for number in content[1:]}
    return [[one for one in files if one[0] not in gone] for files in after]


def in_the_order_of_the_record(levels: Levels, fields: Sequence[Field]) -> Levels:
    for field in fields:
        levels = applied(levels, [field])
    return levels


def oldest_first(levels: Levels, fields: Sequence[Field]) -> Levels:
    first, *others = applied(levels, fields)
    return [sorted(first), *others]


def by_number(levels: Levels, fields: Sequence[Field]) -> Levels:
    first, *others = applied(levels, fields)
    return [first, *map(sorted, others)]


def in_place(levels: Levels, fields: Sequence[Field]) -> Levels:
    levels[:] = applied(levels, fields)
    return levels


def first_values(records: Sequence[bytes]) -> tuple[dict[int, Any], Levels]:
    counters, levels = solution(LAB).replay_edits(records)
    for record in reversed(records):
        counters |= {field[0]: field[1] for field in decoded(record) if field[0] in counters}
    return counters, levels


def last_edit_alone(records: Sequence[bytes]) -> tuple[dict[int, Any], Levels]:
    counters, _ = solution(LAB).replay_edits(records)
    return counters, applied(no_levels(), decoded(records[-1]))


# Mistakes in CURRENT.


def change_current(
    directory: Directory,
    number: int,
    content: bytes | None = None,
    temporary: str | None = None,
    syncs: tuple[bool, bool] = (True, True),
) -> None:
    temporary = temporary or f"{number:06d}.dbtmp"
    with directory.create(temporary) as file:
        file.append(content or manifest_name(number).encode() + b"\n")
        if syncs[0]:
            file.sync()
    directory.rename(temporary, CURRENT)
    if syncs[1]:
        directory.sync()


def without_newline(directory: Directory, number: int) -> None:
    change_current(directory, number, manifest_name(number).encode())


def six_digits_forgotten(directory: Directory, number: int) -> None:
    change_current(directory, number, b"MANIFEST-%d\n" % number)


def in_its_place(directory: Directory, number: int) -> None:
    directory.remove(CURRENT)
    change_current(directory, number, temporary=CURRENT)


def temporary_left(directory: Directory, number: int) -> None:
    change_current(directory, number)
    directory.create("000099.dbtmp").close()


# Mistakes in a flush.

STEPS = ("write", "sync table", "sync directory", "append", "sync manifest", "remove")
"""A flush, step by step, in the right order."""


def flush_by(
    steps: Sequence[str],
    directory: Directory,
    manifest: WritableFile,
    table_name: str,
    table: bytes,
    edit: bytes,
    old_log: str,
) -> None:
    """A flush of these steps."""
    do: dict[str, Callable[[], object]] = {
        "write": lambda: written.append(table),
        "sync table": lambda: written.sync(),  # noqa: PLW0108 - it is not made yet
        "sync directory": directory.sync,
        "append": lambda: manifest.append(frame(edit, manifest.size() % BLOCK_SIZE)),
        "append unframed": lambda: manifest.append(edit),
        "sync manifest": manifest.sync,
        "remove": lambda: directory.remove(old_log),
    }
    with directory.create(table_name) as written:
        for step in steps:
            do[step]()


def flush_without(*steps: str) -> Callable[..., None]:
    return functools.partial(flush_by, [step for step in STEPS if step not in steps])


def flush_in_order(*steps: str) -> Callable[..., None]:
    return functools.partial(flush_by, steps)


EDIT, READ, BAD = "the bytes of an edit", "reading an edit", "records that are no edits"
APPLY, REPLAY, ENGINE = "applying edits", "replaying a MANIFEST", "in the real engine"
FLUSH = "a flush and power cuts"

MISTAKES: Planted = {
    ("encode_edit", EDIT): [
        (
            "no previous log number",
            functools.partial(without_tag, PREV_LOG_NUMBER),
            "Byte 0 is tag 9, previous log number",
        ),
        ("tag 8", tag_8_for_9, "tag 9, previous log number: expected 09"),
        ("fixed64 numbers", fixed_numbers, "levels are varints"),
        ("name without length", name_without_length, "length of name, 26"),
        ("number before level", number_before_level, "level 0"),
    ],
    ("decode_edit", READ): [
        ("one field too few", without_the_last, "until the record ends"),
        ("no levels", without_levels, "a new file, must be (7, 1, 7"),
    ],
    ("decode_edit", BAD): [
        ("unknown tags end it", stops_at_an_unknown_tag, "tag 8 is invalid"),
        ("KeyError", raises_key_error, "your code raised KeyError"),
    ],
    ("apply_edit", APPLY): [
        ("no deletions", without_deletions, "A deleted file leaves"),
        ("deletions by number", deletions_by_number, "a deletion is of a level and a number"),
        (
            "in the record's order",
            in_the_order_of_the_record,
            "All deletions of an edit come before all its additions",
        ),
        ("oldest first", oldest_first, "the highest number first"),
        ("by number", by_number, "the smallest keys comes first"),
        ("in place", in_place, "changed the levels that it was given"),
    ],
    ("replay_edits", REPLAY): [
        ("first values", first_values, "The last edit that has a field"),
        ("last edit alone", last_edit_alone, "to the result of the previous"),
        ("no counter needed", replayed, "no record has a log number (tag 2)"),
    ],
    ("set_current", "CURRENT"): [
        ("no newline", without_newline, "lacks the newline"),
        ("no zeros", six_digits_forgotten, "character 9 of the name"),
        ("in its place", in_its_place, "must not remove CURRENT"),
        ("one left", temporary_left, "left the file ['000099.dbtmp']"),
        (
            "another temporary name",
            functools.partial(change_current, temporary="CURRENT.new"),
            "The temporary file must be 000011.dbtmp",
        ),
        (
            "temporary file not synced",
            functools.partial(change_current, syncs=(False, True)),
            "000011.dbtmp is renamed before it is synced",
        ),
        (
            "directory not synced",
            functools.partial(change_current, syncs=(True, False)),
            "The directory is not synced after the rename",
        ),
        ("nothing done", lambda *_: None, "still names the old"),
    ],
    ("flush", FLUSH): [
        ("no flush", lambda *_: None, "has not made the table"),
        (
            "table not synced",
            flush_without("sync table"),
            "The table is not synced before the MANIFEST names it",
        ),
        (
            "directory not synced before the edit",
            flush_without("sync directory"),
            "then the content is durable, but the name is not",
        ),
        (
            "MANIFEST not synced",
            flush_without("sync manifest"),
            "Your flush does not survive a power cut",
        ),
        (
            "edit before the table is synced",
            flush_in_order(
                "write", "append", "sync manifest", "sync table", "sync directory", "remove"
            ),
            "The table is not synced before the MANIFEST names it",
        ),
        (
            "log removed first",
            flush_in_order("write", "sync table", "sync directory", "remove", *STEPS[3:5]),
            "is removed before the edit that frees it is durable",
        ),
        ("log kept", flush_without("remove"), "has not removed 0000"),
        (
            "no record",
            flush_in_order(*STEPS[:3], "append unframed", *STEPS[4:]),
            "the edit becomes a record",
        ),
    ],
    ("encode_edit", ENGINE): [
        (
            "no previous log number in a store",
            functools.partial(without_tag, PREV_LOG_NUMBER),
            "decoded and encoded again by your code",
        ),
    ],
    ("replay_edits", ENGINE): [
        ("no deletions in a store", last_edit_alone, "must have the"),
    ],
    ("set_current", ENGINE): [
        ("no newline in a store", without_newline, "CURRENT does not"),
    ],
}


@pytest.mark.parametrize("mistake", mistakes(MISTAKES), ids=lambda mistake: mistake.name)
def test_a_mistake_is_named(mistake: Mistake) -> None:
    assert_caught(LAB, mistake)


def test_each_check_catches_a_mistake() -> None:
    assert {check for _, check in MISTAKES} == {check.name for check in LAB.checks}
