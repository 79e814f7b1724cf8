"""The edits that lab 9 asks for are the engine's, and each of their bytes has a meaning."""

from __future__ import annotations

from labs import load, reference

from lsmkv.course.labs.edits import (
    APPLIED,
    EDITS,
    LAYOUT,
    Levels,
    applied,
    encoded,
    manifests,
    meaning,
    no_levels,
    parts,
    replayed,
    some_fields,
)
from lsmkv.course.labs.manifest import LAB
from lsmkv.engine.db.tree.version import Version
from lsmkv.engine.format.version_edit import VersionEdit

ENGINE = load(reference(LAB))
"""What the engine makes of edits."""


def test_edits_are_in_the_order_of_leveldb() -> None:
    for fields in (*EDITS, *map(some_fields, range(80))):
        assert encoded(fields) == ENGINE.edit_of(fields).encode()


def test_each_tag_is_tried() -> None:
    assert {field[0] for fields in EDITS for field in fields} == set(LAYOUT)


def test_each_byte_has_a_meaning() -> None:
    for fields in (*EDITS, *map(some_fields, range(80))):
        record = encoded(fields)
        assert sum(size for _, size, _ in parts(fields)) == len(record)
        assert all(meaning(fields, at) for at in range(len(record)))
    assert meaning(EDITS[1], 3) == "number 300; byte 0 of it"
    assert meaning(EDITS[0], 0) == "tag 2, log number"


def in_levels(version: Version) -> Levels:
    return [
        [(one.number, one.size, one.smallest, one.largest) for one in files]
        for files in version.levels
    ]


def test_the_levels_are_those_of_a_store() -> None:
    levels = no_levels()
    version = ENGINE.version_of(levels)
    for fields, _ in APPLIED:
        version = version.apply(VersionEdit.decode(encoded(fields)))
        version.check()
        levels = applied(levels, fields)
        assert levels == in_levels(version)
    for edits in manifests():
        _, levels = replayed([encoded(fields) for fields in edits])
        ENGINE.version_of(levels).check()
