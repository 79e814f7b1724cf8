"""MANIFESTs: edits, their fields and damage, and the versions that they make."""

from __future__ import annotations

from itertools import pairwise

import pytest
from made_files import Made, log_of, make_store

from lsmkv.errors import CorruptionError, ForeignFormatError
from lsmkv.files import Edit, Manifest, TableFile, VersionBuilder, edit_fields, parse_key


def test_zeros_at_the_end_of_a_manifest_are_damage(made: Made) -> None:
    assert Manifest(made.manifest()).ending().damage is None
    damage = Manifest(made.manifest() + bytes(100)).ending().damage
    assert damage is not None
    assert damage.kind == "torn"


def test_versions_add_up_to_the_tables_of_the_store() -> None:
    made = make_store(40, 6, write_buffer_size=65536)
    manifest = Manifest(made.manifest())
    version = manifest.version()
    found = {
        (level, file.number, file.size, file.smallest.user_key, file.largest.user_key)
        for level, files in enumerate(version.levels)
        for file in files
    }
    assert found == {
        (one.level, one.number, one.size, one.smallest, one.largest) for one in made.tables
    }
    steps = list(manifest.versions())
    assert steps[-1][1] == version
    assert version.comparator == "leveldb.BytewiseComparator"
    assert len(version.levels) == 7
    removed = [edit for edit, _ in steps if edit.deleted_files]
    for edit, after in steps:
        numbers = {file.number for files in after.levels for file in files}
        assert {file.number for _, file in edit.new_files} <= numbers
        assert all(file in after.levels[level] for level, file in edit.new_files)
    assert removed or len(made.tables) == 6


def test_an_edits_fields_leave_no_byte_out(made: Made) -> None:
    for edit in Manifest(made.manifest()).edits():
        fields = list(edit_fields(edit.payload))
        assert fields[0].start == 0
        assert all(one.end == two.start for one, two in pairwise(fields))
        assert fields[-1].end == len(edit.payload)
        keys = [field.value for field in fields if field.name == "smallest key"]
        assert [parse_key(key) for key in keys if isinstance(key, bytes)] == [
            file.smallest for _, file in edit.new_files
        ]


def test_a_damaged_edit_is_data_and_the_next_is_read(made: Made) -> None:
    edits = list(Manifest(made.manifest()).edits())
    level_999 = bytes.fromhex("06 e707 07")
    foreign = bytes.fromhex("0b 00")
    data = log_of(edits[0].payload, level_999, foreign, edits[1].payload)
    parts = list(Manifest(data).walk_edits())
    assert [isinstance(part, Edit) for part in parts] == [True, False, False, True]
    assert parts[1][2:] == (11, "invalid level 999", 1)
    assert parts[2][3:] == ("an unknown field, tag 11", 0)
    with pytest.raises(CorruptionError, match="invalid level 999"):
        list(Manifest(log_of(edits[0].payload, level_999)).versions())
    with pytest.raises(ForeignFormatError, match="tag 11"):
        Manifest(log_of(foreign)).version()


def test_goleveldbs_levels_are_read() -> None:
    key = b"k" + bytes.fromhex("0101000000000000")
    string = bytes([len(key)]) + key
    edit = bytes([7, 9, 5, 100]) + string + string
    levels = Manifest(log_of(edit)).version().levels
    assert len(levels) == 10
    assert levels[9] == (TableFile(5, 100, parse_key(key), parse_key(key)),)


def test_a_builder_follows_the_edits(made: Made) -> None:
    builder = VersionBuilder()
    for edit in Manifest(made.manifest()).edits():
        builder.apply(edit)
    assert {(level, file.number) for level, file in builder.files} == {
        (one.level, one.number) for one in made.tables
    }
    again = VersionBuilder(builder.files)
    assert (again.files, len(again)) == (builder.files, len(made.tables))
    level, file = again.files[0]
    assert (level, file.number) in again
    again.apply(edit._replace(deleted_files=((level, file.number),), new_files=()))
    assert (level, file.number) not in again
