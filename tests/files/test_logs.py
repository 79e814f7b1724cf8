"""Logs, batches and MANIFESTs: records, fragments, damage, versions."""

from __future__ import annotations

from itertools import pairwise

import pytest
from made_files import Made, make_store

import lsmkv
from lsmkv.errors import CorruptionError, ForeignFormatError
from lsmkv.files import (
    Batch,
    Damage,
    Edit,
    Log,
    LogEnd,
    LogRecord,
    Manifest,
    TableFile,
    VersionBuilder,
    edit_fields,
    parse_key,
)
from lsmkv.format.log import frame


def log_of(*payloads: bytes) -> bytes:
    data = b""
    for payload in payloads:
        data += frame(payload, len(data) % 32768)
    return data


def test_records_of_a_log_are_the_batches_that_were_written(made: Made) -> None:
    operations = [
        (one.sequence, one.key, one.value)
        for record in Log(made.log()).records()
        for one in record.batch.operations()
    ]
    expected = [*made.entries.items(), (b"gone", None)]
    assert [(key, value) for _, key, value in operations] == expected
    assert [sequence for sequence, _, _ in operations] == list(
        range(operations[0][0], operations[0][0] + len(operations))
    )


def test_a_batchs_fields_leave_no_byte_out() -> None:
    batch = lsmkv.WriteBatch()
    batch.put(b"key", b"value" * 50)
    batch.delete(b"")
    read = Batch(batch.encode(7))
    fields = list(read.fields())
    assert fields[0].start == 0
    assert all(one.end == two.start for one, two in pairwise(fields))
    assert fields[-1].end == len(read.payload)
    put, deletion = read.operations()
    assert [field.name for field in put.fields] == [
        *("kind", "key length", "key", "value length", "value"),
    ]
    assert read.payload[put.fields[4].start : put.fields[4].end] == b"value" * 50
    assert (deletion.key, deletion.value, deletion.sequence) == (b"", None, 8)
    assert [field.name for field in deletion.fields] == ["kind", "key length", "key"]


def test_fragments_are_what_records_are_cut_into() -> None:
    data = log_of(b"small", bytes(100_000), b"end") + bytes(50)
    log = Log(data)
    fragments = list(log.fragments())
    assert [one.kind for one in fragments] == [
        *("full", "first", "middle", "middle", "last", "full", "room"),
    ]
    assert b"".join(one.stored for one in fragments) == data
    assert [one.length for one in fragments[:-1]] == [len(one.data) for one in fragments[:-1]]
    assert {one.is_good for one in fragments[:-1]} == {True}
    assert [len(record.payload) for record in log.records()] == [5, 100_000, 3]


def test_the_end_of_a_block_is_filler() -> None:
    kinds = [one.kind for one in Log(log_of(bytes(32768 - 7 - 3), b"x")).fragments()]
    assert kinds == ["full", "filler", "full"]


def test_damage_within_a_log_is_data_and_what_follows_is_read() -> None:
    data = bytearray(log_of(b"one", b"two", b"three"))
    data[10 + 8] ^= 1
    log = Log(bytes(data))
    one, damage, three = log.walk()
    assert damage == Damage("damage", 10, 10, "fragment checksum mismatch")
    assert isinstance(one, LogRecord)
    assert isinstance(three, LogRecord)
    assert (one.payload, three.payload) == (b"one", b"three")
    assert [(part.kind, part.damage is None) for part in log.fragments()] == [
        ("full", True),
        ("bad", False),
        ("full", True),
    ]
    with pytest.raises(CorruptionError, match="fragment checksum mismatch") as raised:
        list(log.records())
    assert raised.value.offset == 10


@pytest.mark.parametrize("cut", range(11, 20))
def test_a_cut_record_at_the_end_may_be_torn(cut: int) -> None:
    log = Log(log_of(b"one", b"two")[:cut])
    assert [record.payload for record in log.records()] == [b"one"]
    ending = log.ending()
    assert (ending.last, ending.end) == (0, 10)
    assert ending.damage is not None
    assert ending.damage[:3] == ("torn", 10, cut - 10)


def test_a_sound_log_ends_with_its_last_record() -> None:
    assert Log(log_of(b"one", b"two") + bytes(100)).ending() == LogEnd(10, 20, None)
    assert Log(b"").ending() == LogEnd(-1, 0, None)


def test_zeros_at_the_end_of_a_manifest_are_damage(made: Made) -> None:
    assert Manifest(made.manifest()).ending().damage is None
    damage = Manifest(made.manifest() + bytes(100)).ending().damage
    assert damage is not None
    assert damage.kind == "torn"


@pytest.mark.parametrize("big", [3, 40_000])
def test_a_walk_may_begin_at_any_record(big: int) -> None:
    log = Log(log_of(*(b"%d" % number * big for number in range(6))))
    records = list(log.records())
    for number, record in enumerate(records):
        assert list(log.walk(record.offset)) == records[number:]
    assert list(log.walk(-1)) == records
    assert list(log.walk(log.size)) == list(log.walk(1 << 70)) == []


def test_a_walk_from_within_a_block_has_the_damage_that_follows() -> None:
    data = bytearray(log_of(bytes(40_000), b"two", b"three"))
    log = Log(bytes(data))
    end = next(log.records()).end
    data[end + 8] ^= 1
    damaged = Log(bytes(data))
    _, damage, three = damaged.walk()
    assert damage == Damage("damage", end, 10, "fragment checksum mismatch")
    assert list(damaged.walk(end)) == [damage, three]
    data[end + 18] ^= 1
    assert [part.offset for part in Log(bytes(data)).walk(end)] == [end]
    assert list(Log(bytes(data[:end]) + bytes(100)).walk(end)) == []


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
    assert parts[1][2:] == (11, "a level of 999", 1)
    assert parts[2][3:] == ("an unknown field, tag 11", 0)
    with pytest.raises(CorruptionError, match="a level of 999"):
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
