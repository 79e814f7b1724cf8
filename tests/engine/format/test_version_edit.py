"""lsmkv.engine.format.version_edit: records of the MANIFEST, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.engine.format.keys import KIND_DELETION, KIND_VALUE, MAX_SEQUENCE, pack
from lsmkv.engine.format.version_edit import FileMetaData, VersionEdit
from lsmkv.engine.util.coding import encode_string, encode_varint
from lsmkv.errors import CorruptionError

numbers = st.integers(0, 300) | st.integers(0, 2**64 - 1)
levels = st.integers(0, 6)
internal_keys = st.builds(
    pack,
    st.binary(max_size=5) | st.just(b"k" * 200),
    st.integers(0, MAX_SEQUENCE),
    st.sampled_from([KIND_DELETION, KIND_VALUE]),
)


@st.composite
def edits(draw: st.DrawFn) -> VersionEdit:
    edit = VersionEdit()
    edit.comparator = draw(st.none() | st.text(max_size=10))
    edit.log_number = draw(st.none() | numbers)
    edit.prev_log_number = draw(st.none() | numbers)
    edit.next_file_number = draw(st.none() | numbers)
    edit.last_sequence = draw(st.none() | numbers)
    edit.compact_pointers = draw(st.lists(st.tuples(levels, internal_keys), max_size=3))
    for level, number in draw(st.lists(st.tuples(levels, numbers), max_size=3)):
        edit.delete_file(level, number)
    files = st.builds(FileMetaData, numbers, numbers, internal_keys, internal_keys)
    for level, file in draw(st.lists(st.tuples(levels, files), max_size=3)):
        edit.add_file(level, file)
    return edit


def fields(edit: VersionEdit) -> tuple[object, ...]:
    return (
        edit.comparator,
        edit.log_number,
        edit.prev_log_number,
        edit.next_file_number,
        edit.last_sequence,
        edit.compact_pointers,
        edit.deleted_files,
        edit.new_files,
    )


def test_an_empty_edit() -> None:
    assert VersionEdit().encode() == b""
    assert fields(VersionEdit.decode(b"")) == fields(VersionEdit())


def test_the_exact_bytes_of_leveldbs_first_edits() -> None:
    """The two records of a MANIFEST that C++ LevelDB wrote."""
    first = VersionEdit()
    first.comparator = "leveldb.BytewiseComparator"
    assert first.encode().hex() == "011a" + b"leveldb.BytewiseComparator".hex()
    second = VersionEdit()
    second.log_number = 3
    second.prev_log_number = 0
    second.next_file_number = 4
    second.last_sequence = 0
    assert second.encode().hex() == "0203090003040400"


def test_the_exact_bytes_of_files() -> None:
    edit = VersionEdit()
    edit.compact_pointers.append((1, pack(b"p", 0x0102, KIND_VALUE)))
    edit.delete_file(2, 300)
    edit.delete_file(0, 5)
    edit.add_file(3, FileMetaData(128, 0x4000, pack(b"a", 1, 1), pack(b"zz", 2, 0)))
    assert edit.encode() == bytes.fromhex(
        "0501" "0970" "0102010000000000"
        "060005" "0602ac02"
        "0703" "8001" "808001" "0961" "0101000000000000" "0a7a7a" "0002000000000000"
    )  # fmt: skip


def test_numbers_near_2_to_the_50th_and_the_63rd() -> None:
    """LevelDB's own case, and the limits of 64 bits."""
    for big in (1 << 50, (1 << 50) - 9, 1 << 55, (1 << 63) - 500, (1 << 64) - 1000):
        edit = VersionEdit()
        edit.comparator = "foo"
        for step in range(4):
            edit.add_file(
                3,
                FileMetaData(
                    big + 300 + step,
                    big + 400 + step,
                    pack(b"foo", (1 << 50) + 500 + step, KIND_VALUE),
                    pack(b"zoo", (1 << 50) + 600 + step, KIND_DELETION),
                ),
            )
            edit.delete_file(4, big + 700 + step)
            edit.compact_pointers.append((step, pack(b"x", (1 << 50) + 900 + step, KIND_VALUE)))
        edit.log_number = big + 100
        edit.prev_log_number = big + 150
        edit.next_file_number = big + 200
        edit.last_sequence = big + 900
        record = edit.encode()
        decoded = VersionEdit.decode(record)
        assert fields(decoded) == fields(edit)
        assert decoded.encode() == record


@given(edit=edits())
def test_round_trip(edit: VersionEdit) -> None:
    record = edit.encode()
    decoded = VersionEdit.decode(record)
    assert fields(decoded) == fields(edit)
    assert decoded.encode() == record


@given(edit=edits())
def test_cut_at_every_byte(edit: VersionEdit) -> None:
    record = edit.encode()
    for size in range(len(record)):
        try:
            decoded = VersionEdit.decode(record[:size])
        except CorruptionError as error:
            offset = error.offset
        else:  # cut between two fields
            assert decoded.encode() == record[:size]
            offset = 0
        assert offset is not None
        assert 0 <= offset <= size


@given(record=st.binary(max_size=50))
def test_any_bytes_decode_or_are_corrupt(record: bytes) -> None:
    try:
        edit = VersionEdit.decode(record)
    except CorruptionError:
        return
    assert fields(VersionEdit.decode(edit.encode())) == fields(edit)


@given(edit=edits(), data=st.data())
def test_a_flipped_byte_decodes_or_is_corrupt(edit: VersionEdit, data: st.DataObject) -> None:
    record = bytearray(edit.encode())
    if record:
        at = data.draw(st.integers(0, len(record) - 1))
        record[at] ^= data.draw(st.integers(1, 255))
        try:
            VersionEdit.decode(bytes(record))
        except CorruptionError:
            pass


@pytest.mark.parametrize("tag", [0, 8, 10, 11, 100, 127, 128, 200, 2**32 - 1])
def test_unknown_tags_are_refused(tag: int) -> None:
    good = bytes.fromhex("0203")
    with pytest.raises(CorruptionError, match=f"tag {tag}$|tag {tag} ") as caught:
        VersionEdit.decode(good + encode_varint(tag) + b"\x01")
    assert caught.value.offset == 2


@pytest.mark.parametrize("level", [7, 8, 127, 128, 2**31, 2**32 - 1])
def test_levels_out_of_range_are_refused(level: int) -> None:
    key = encode_string(pack(b"k", 1, KIND_VALUE))
    for record in (
        b"\x05" + encode_varint(level) + key,
        b"\x06" + encode_varint(level) + b"\x01",
        b"\x07" + encode_varint(level) + b"\x01\x01" + key + key,
    ):
        with pytest.raises(CorruptionError, match="level"):
            VersionEdit.decode(record)
        VersionEdit.decode(record[:1] + b"\x06" + record[1 + len(encode_varint(level)) :])


@pytest.mark.parametrize("bad", [b"", b"short", bytes(7), b"k\x02" + bytes(7), b"k\xff" + bytes(7)])
def test_malformed_internal_keys_are_refused(bad: bytes) -> None:
    good = encode_string(pack(b"k", 1, KIND_VALUE))
    for record in (
        b"\x05\x01" + encode_string(bad),
        b"\x07\x01\x01\x01" + encode_string(bad) + good,
        b"\x07\x01\x01\x01" + good + encode_string(bad),
    ):
        with pytest.raises(CorruptionError, match="internal key"):
            VersionEdit.decode(record)


def test_a_comparator_name_that_is_not_utf_8() -> None:
    with pytest.raises(CorruptionError, match="comparator"):
        VersionEdit.decode(b"\x01\x02\xff\xfe")


@pytest.mark.parametrize("tag", [2, 3, 4, 9])
def test_numbers_of_more_than_64_bits(tag: int) -> None:
    assert VersionEdit.decode(bytes([tag]) + b"\xff" * 9 + b"\x01")
    for number in (b"\xff" * 9 + b"\x02", b"\xff" * 10 + b"\x01", b"\xff" * 9, b""):
        with pytest.raises(CorruptionError):
            VersionEdit.decode(bytes([tag]) + number)


def test_a_length_is_checked_before_it_is_used() -> None:
    with pytest.raises(CorruptionError):
        VersionEdit.decode(b"\x01\xff\xff\xff\xff\x0fname")


# Files


def test_files_are_equal_if_their_encoding_is() -> None:
    small, large = pack(b"a", 1, 1), pack(b"z", 1, 1)
    file = FileMetaData(7, 100, small, large)
    same = FileMetaData(7, 100, small, large)
    same.allowed_seeks = 3
    assert file == same
    assert hash(file) == hash(same)
    for other in (
        FileMetaData(8, 100, small, large),
        FileMetaData(7, 101, small, large),
        FileMetaData(7, 100, large, large),
        FileMetaData(7, 100, small, small),
    ):
        assert file != other
    assert file != 7
    assert repr(file).startswith("FileMetaData(7, 100, ")


@pytest.mark.parametrize(
    ("size", "seeks"), [(0, 100), (16384 * 100, 100), (16384 * 101, 101), (64 << 20, 4096)]
)
def test_allowed_seeks_are_one_for_each_16_kib_and_at_least_100(size: int, seeks: int) -> None:
    key = pack(b"k", 1, 1)
    assert FileMetaData(1, size, key, key).allowed_seeks == seeks
