"""lsmkv.engine.db.tree.manifest: the state that version edits add up to, and damage."""

from __future__ import annotations

import pytest

from lsmkv.engine.db.tree.manifest import Manifest, read_manifest
from lsmkv.engine.env.base import Directory
from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.engine.format.keys import MAX_SEQUENCE, InternalKeyComparator, pack
from lsmkv.engine.format.log import LogWriter
from lsmkv.engine.format.version_edit import FileMetaData, VersionEdit
from lsmkv.engine.util.comparator import BYTEWISE, REVERSE_BYTEWISE
from lsmkv.errors import ComparatorMismatchError, CorruptionError, ForeignFormatError
from lsmkv.testing.faulty import FaultyEnv

NAME = "MANIFEST-000002"
ORDER = InternalKeyComparator(BYTEWISE)


def file(number: int, smallest: bytes = b"a", largest: bytes = b"b") -> FileMetaData:
    return FileMetaData(number, 1000, pack(smallest, 5, 1), pack(largest, 4, 1))


def first_edit() -> VersionEdit:
    edit = VersionEdit()
    edit.comparator = BYTEWISE.name
    edit.log_number = 3
    edit.next_file_number = 10
    edit.last_sequence = 100
    return edit


def edits() -> list[VersionEdit]:
    """The edits of a few commits."""
    flushed = VersionEdit()
    flushed.log_number = 6
    flushed.next_file_number = 12
    flushed.last_sequence = 200
    flushed.add_file(0, file(5))
    flushed.add_file(2, file(7))
    compacted = VersionEdit()
    compacted.delete_file(0, 5)
    compacted.delete_file(2, 7)
    compacted.add_file(1, file(8, b"a", b"k"))
    compacted.add_file(1, file(9, b"m", b"z"))
    compacted.compact_pointers.append((0, pack(b"b", 4, 1)))
    moved = VersionEdit()
    moved.delete_file(1, 9)
    moved.add_file(2, file(9, b"m", b"z"))
    moved.compact_pointers.append((0, pack(b"c", 4, 1)))
    moved.compact_pointers.append((1, pack(b"z", 4, 1)))
    moved.prev_log_number = 4
    return [first_edit(), flushed, compacted, moved]


def write(directory: Directory, records: list[bytes]) -> list[int]:
    """Write a MANIFEST of these records; returns the end of each."""
    ends: list[int] = []
    with directory.create(NAME) as out:
        writer = LogWriter(out)
        for record in records:
            writer.add_record(record)
            ends.append(writer.end)
    return ends


def rewrite(directory: Directory, data: bytes) -> None:
    if directory.exists(NAME):
        directory.remove(NAME)
    with directory.create(NAME) as out:
        out.append(data)


@pytest.fixture
def directory() -> Directory:
    return MemoryEnv().open_directory("db", create=True)


def test_edits_add_up(directory: Directory) -> None:
    write(directory, [edit.encode() for edit in edits()])
    manifest = read_manifest(directory, NAME)
    assert manifest.path == "db/MANIFEST-000002"
    assert manifest.comparator == "leveldb.BytewiseComparator"
    assert (manifest.log_number, manifest.prev_log_number) == (6, 4)
    assert (manifest.next_file_number, manifest.last_sequence) == (12, 200)
    assert manifest.compact_pointers == {0: pack(b"c", 4, 1), 1: pack(b"z", 4, 1)}
    assert [sorted(files) for files in manifest.levels] == [[], [8], [9], [], [], [], []]
    assert manifest.tail is None
    manifest.check(ORDER)
    version = manifest.version(ORDER)
    assert version.levels[1] == [file(8, b"a", b"k")]
    assert version.levels[2] == [file(9, b"m", b"z")]


def test_a_manifest_that_leveldb_wrote(directory: Directory) -> None:
    rewrite(
        directory,
        bytes.fromhex(
            "56f9b8f81c0001011a6c6576656c64622e4279746577697365436f6d70617261746f72"
            "a49c8bbe0800010203090003040400"
        ),
    )
    manifest = read_manifest(directory, NAME)
    manifest.check(ORDER)
    assert manifest.comparator == "leveldb.BytewiseComparator"
    assert (manifest.log_number, manifest.next_file_number, manifest.last_sequence) == (3, 4, 0)
    assert manifest.version(ORDER).numbers == frozenset()


# Malformed content


def test_another_comparator_is_refused_and_both_are_named(directory: Directory) -> None:
    write(directory, [first_edit().encode()])
    manifest = read_manifest(directory, NAME)
    with pytest.raises(ComparatorMismatchError, match=r"leveldb\.Bytewise.*leveldb\.Reverse"):
        manifest.check(InternalKeyComparator(REVERSE_BYTEWISE))


@pytest.mark.parametrize("missing", ["log_number", "next_file_number", "last_sequence"])
def test_a_missing_counter(directory: Directory, missing: str) -> None:
    edit = first_edit()
    setattr(edit, missing, None)
    write(directory, [edit.encode()])
    with pytest.raises(CorruptionError, match=f"no {missing.replace('_', ' ')}"):
        read_manifest(directory, NAME).check(ORDER)


def test_an_empty_manifest_has_no_counters(directory: Directory) -> None:
    write(directory, [])
    with pytest.raises(CorruptionError, match="no next file number"):
        read_manifest(directory, NAME).check(ORDER)


@pytest.mark.parametrize(
    ("field", "largest"),
    [
        ("log_number", 2**63 - 1),
        ("prev_log_number", 2**63 - 1),
        ("next_file_number", 2**63 - 1),
        ("last_sequence", MAX_SEQUENCE),
    ],
)
def test_counters_out_of_range(directory: Directory, field: str, largest: int) -> None:
    for number, fits in ((largest, True), (largest + 1, False), (2**64 - 1, False)):
        edit = first_edit()
        setattr(edit, field, number)
        rewrite(directory, b"")
        directory.remove(NAME)
        write(directory, [edit.encode()])
        manifest = read_manifest(directory, NAME)
        assert getattr(manifest, field) == number
        if fits:
            manifest.check(ORDER)
        else:
            with pytest.raises(CorruptionError, match="out of range"):
                manifest.check(ORDER)


def test_overlapping_tables_on_a_level(directory: Directory) -> None:
    edit = first_edit()
    edit.add_file(1, file(8, b"a", b"k"))
    edit.add_file(1, file(9, b"k", b"z"))
    write(directory, [edit.encode()])
    with pytest.raises(CorruptionError, match="overlap") as caught:
        read_manifest(directory, NAME).version(ORDER)
    assert caught.value.path == "db/MANIFEST-000002"


def test_an_unknown_field(directory: Directory) -> None:
    """The checksum fits, so this is no damage."""
    write(directory, [first_edit().encode(), first_edit().encode() + b"\x0b\x01"])
    with pytest.raises(ForeignFormatError, match=r"^db/MANIFEST-000002 has .* \(tag 11\)"):
        read_manifest(directory, NAME)


def test_a_missing_manifest_and_one_that_cannot_be_read() -> None:
    env = FaultyEnv()
    directory = env.open_directory("db", create=True)
    with pytest.raises(FileNotFoundError):
        read_manifest(directory, NAME)
    write(directory, [edit.encode() for edit in edits()])
    for n in (1, 2):
        env.fail_at(n, calls=["open", "read"])
        with pytest.raises(OSError, match=NAME):
            read_manifest(directory, NAME)


# Damage


def state(manifest: Manifest) -> tuple[object, ...]:
    return (
        manifest.comparator,
        manifest.log_number,
        manifest.prev_log_number,
        manifest.next_file_number,
        manifest.last_sequence,
        manifest.compact_pointers,
        manifest.levels,
    )


def test_cut_at_every_byte(directory: Directory) -> None:
    """The whole edits count, and the bytes behind them are reported."""
    records = [edit.encode() for edit in edits()]
    ends = write(directory, records)
    data = directory.read_file(NAME, 10_000)
    for size in range(len(data) + 1):
        rewrite(directory, data[:size])
        manifest = read_manifest(directory, NAME)
        whole = sum(end <= size for end in ends)
        expected = Manifest("expected")
        for edit in edits()[:whole]:
            expected.apply(edit)
        assert state(manifest) == state(expected)
        if size in (0, *ends):
            assert manifest.tail is None
        else:
            assert manifest.tail is not None
            assert manifest.tail.torn
            assert manifest.tail.offset == (ends[whole - 1] if whole else 0)


def test_every_byte_flipped(directory: Directory) -> None:
    """Damage before the last record is refused; in the last record it is reported."""
    ends = write(directory, [edit.encode() for edit in edits()])
    data = directory.read_file(NAME, 10_000)
    before_last = Manifest("expected")
    for edit in edits()[:-1]:
        before_last.apply(edit)
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 0x41
        rewrite(directory, bytes(damaged))
        if at < ends[-2]:
            with pytest.raises(CorruptionError) as caught:
                read_manifest(directory, NAME)
            assert caught.value.path == "db/MANIFEST-000002"
            assert caught.value.offset == max([0, *(end for end in ends if end <= at)])
        else:
            manifest = read_manifest(directory, NAME)
            assert manifest.tail is not None
            assert manifest.tail.offset == ends[-2]
            assert state(manifest) == state(before_last)
