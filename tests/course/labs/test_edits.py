"""The edits that lab 9 asks for are the engine's, and each of their bytes has a meaning."""

from __future__ import annotations

from lsmkv.course.labs.edits import (
    APPLIED,
    EDITS,
    LAYOUT,
    edit_of,
    encoded,
    manifests,
    meaning,
    no_levels,
    parts,
    replayed,
    some_fields,
    version_of,
)
from lsmkv.format.version_edit import VersionEdit


def test_edits_are_in_the_order_of_leveldb() -> None:
    for fields in (*EDITS, *map(some_fields, range(80))):
        assert encoded(fields) == edit_of(fields).encode()


def test_each_tag_is_tried() -> None:
    assert {field[0] for fields in EDITS for field in fields} == set(LAYOUT)


def test_each_byte_has_a_meaning() -> None:
    for fields in (*EDITS, *map(some_fields, range(80))):
        record = encoded(fields)
        assert sum(size for _, size, _ in parts(fields)) == len(record)
        assert all(meaning(fields, at) for at in range(len(record)))
    assert meaning(EDITS[1], 3) == "number 300; byte 0 of it"
    assert meaning(EDITS[0], 0) == "tag 2, log number"


def test_the_levels_are_those_of_a_store() -> None:
    version = version_of(no_levels())
    for fields, _ in APPLIED:
        version = version.apply(VersionEdit.decode(encoded(fields)))
        version.check()
    for edits in manifests():
        _, levels = replayed([encoded(fields) for fields in edits])
        version_of(levels).check()
