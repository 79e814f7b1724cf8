"""The formats of export and import: exact bytes, both ways, and what is refused."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.engine.util.checksum import crc32c
from lsmkv.engine.util.coding import encode_fixed32, encode_varint
from lsmkv.errors import CorruptionError
from lsmkv.files.exchange import (
    RAW_HEADER,
    json_line,
    parse_json_line,
    read_json_lines,
    read_raw,
    write_raw,
)

Records = list[tuple[bytes, bytes]]
any_bytes = st.binary() | st.text().map(str.encode)


def raw(records: Records) -> bytes:
    return b"".join(write_raw(records))


def from_raw(content: bytes) -> Records:
    file = io.BytesIO(content)
    assert file.readline() == RAW_HEADER
    return list(read_raw(file))


# JSON lines


@pytest.mark.parametrize(
    ("record", "is_hex", "line"),
    [
        ((b"ant", b"six legs"), False, b'{"key": "ant", "value": "six legs"}'),
        ((b"", b""), False, b'{"key": "", "value": ""}'),
        ((b"\xff", b"\x00\n"), False, b'{"key_base64": "/w==", "value": "\\u0000\\n"}'),
        ((b"k", b"\xed\xa0\x80"), False, b'{"key": "k", "value_base64": "7aCA"}'),
        (("\u2028".encode(), b'"'), False, b'{"key": "\\u2028", "value": "\\""}'),
        ((b"\x0a", b"\xff"), True, b'{"key_hex": "0a", "value_hex": "ff"}'),
    ],
)
def test_json_line(record: tuple[bytes, bytes], is_hex: bool, line: bytes) -> None:
    assert json_line(*record, is_hex) == line + b"\n"
    assert parse_json_line(line) == record


@given(any_bytes, any_bytes, st.booleans())
def test_json_round_trip(key: bytes, value: bytes, is_hex: bool) -> None:
    line = json_line(key, value, is_hex)
    assert parse_json_line(line) == (key, value)
    assert line.isascii()
    assert line.splitlines() == [line[:-1]]
    assert all(32 <= byte < 127 for byte in line[:-1])  # nothing that could upset a terminal


def test_json_lines_of_other_programs_are_read() -> None:
    lines = ["", '{"value":"é","key":"k"}\r\n', " \n", '{"key_hex":"00FF","value_base64":""}']
    assert list(read_json_lines(line.encode() for line in lines)) == [
        (b"k", "é".encode()),
        (b"\x00\xff", b""),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"nonsense", "not JSON: Expecting value at column 1"),
        (b'{"key": "a", "value": "b"', "not JSON"),
        (b'{"key": "a", "value": "b"} x', "not JSON: Extra data"),
        (b'["a", "b"]', "not a JSON object"),
        (b"1" * 5000, "not|Exceeds"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"key": "a"}', "the value is missing"),
        (b'{"value": "a"}', "the key is missing"),
        (b'{"key": "a", "key_hex": "61", "value": ""}', "the key occurs in several forms"),
        (b'{"key": "a", "key": "b", "value": ""}', "a field occurs twice"),
        (b'{"key": "a", "value": "b", "ttl": 3}', "not a field of a record: 'ttl'"),
        (b'{"key": 1, "value": ""}', "key is not a string"),
        (b'{"key": "a", "value": null}', "value is not a string"),
        (b'{"key_base64": "/w=", "value": ""}', "key_base64 is not base64"),
        (b'{"key_base64": "/w==!", "value": ""}', "key_base64 is not base64"),
        (b'{"key": "", "value_hex": "f"}', "value_hex is not hexadecimal"),
        (b'{"key": "", "value_hex": "f\xc3\xa9"}', "value_hex is not hexadecimal"),
        (b'{"key": "\\ud800", "value": ""}', "key is not Unicode text"),
        (b'{"key": "\xff", "value": ""}', "not UTF-8: byte 10"),
    ],
)
def test_bad_lines(line: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=rf"^line 2: ({reason})"):
        list(read_json_lines([b'{"key": "", "value": ""}\n', line]))


@given(st.binary())
def test_any_line_is_a_record_or_a_value_error(line: bytes) -> None:
    try:
        key, value = parse_json_line(line)
    except ValueError:
        return
    assert json.loads(line).keys() & {"key", "key_base64", "key_hex"}
    assert isinstance(key, bytes)
    assert isinstance(value, bytes)


# The raw format


def test_raw_bytes() -> None:
    frame = b"\x07" + b"\x01k" + b"\x02vv" + b"\x00\x00"
    end = b"\x00\x02"
    expected = (
        b"lsmkv-raw 1\n"
        + crc32c(frame).to_bytes(4, "little")
        + frame
        + crc32c(end).to_bytes(4, "little")
        + end
    )
    assert raw([(b"k", b"vv"), (b"", b"")]) == expected
    assert raw([]) == b"lsmkv-raw 1\n" + crc32c(b"\x00\x00").to_bytes(4, "little") + b"\x00\x00"


@given(st.lists(st.tuples(any_bytes, any_bytes)))
def test_raw_round_trip(records: Records) -> None:
    assert from_raw(raw(records)) == records


def test_many_frames() -> None:
    records = [(b"%d" % number, bytes(number % 3000)) for number in range(500)]
    records.append((b"large", bytes(3_000_000)))
    assert from_raw(raw(records)) == records


def test_every_truncation_and_flip_is_detected() -> None:
    records = [(b"%d" % number, b"v" * number) for number in range(20)]
    content = raw(records)
    for cut in range(len(RAW_HEADER), len(content)):
        with pytest.raises(CorruptionError, match="ends before"):
            from_raw(content[:cut])
    for at in range(len(RAW_HEADER), len(content)):
        for bit in (1, 128):
            damaged = bytearray(content)
            damaged[at] ^= bit
            found: Records = []
            file = io.BytesIO(damaged)
            file.readline()
            with pytest.raises(
                CorruptionError, match=r"in the frame after record \d+ \(at offset \d+\)"
            ):
                found.extend(read_raw(file))
    with pytest.raises(CorruptionError, match="something follows the end"):
        from_raw(content + b"\x00")


def end_of(records: int) -> bytes:
    """The end of a file of that many records."""
    content = b"\0" + encode_varint(records)
    return encode_fixed32(crc32c(content)) + content


def test_a_damaged_frame_gives_no_record() -> None:
    records = [(b"%04d" % number, bytes(1000)) for number in range(200)]
    content = bytearray(raw(records))
    content[-1000] ^= 1
    file = io.BytesIO(content)
    file.readline()
    found: Records = []
    with pytest.raises(CorruptionError, match="checksum mismatch") as error:
        found.extend(read_raw(file))
    assert 0 < len(found) < 200
    assert found == records[: len(found)]
    assert f"after record {len(found)}" in error.value.reason
    offset = error.value.offset
    assert offset is not None
    assert from_raw(content[:offset] + end_of(len(found))) == found


def test_a_missing_frame_is_detected() -> None:
    frames = list(write_raw([(b"%04d" % number, bytes(1000)) for number in range(200)]))
    assert len(frames) > 4
    del frames[2]
    with pytest.raises(CorruptionError, match=r"states 200 records, and the file has \d+"):
        from_raw(b"".join(frames))


def sealed(content: bytes) -> bytes:
    return RAW_HEADER + crc32c(content).to_bytes(4, "little") + content


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\xff\xff\xff\xff\x0f", "ends before"),  # 4 GiB, says the length
        (b"\xff\xff\xff\xff\x7f", "varint32 out of range"),
        (b"\xff\xff\xff\xff\xff\x01", "overlong varint32"),
        (b"\x01\x05", "truncated or overlong|string runs past the end"),
        (b"\x02\x01k", "truncated or overlong"),
        (b"\x00" + b"\xff" * 10, "overlong varint64"),
    ],
)
def test_hostile_frames(content: bytes, reason: str) -> None:
    with pytest.raises(CorruptionError, match=reason):
        from_raw(sealed(content))
