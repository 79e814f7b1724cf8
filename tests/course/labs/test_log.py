"""Lab 2: planted mistakes are named."""

from __future__ import annotations

import functools

import pytest
from labs import Mistake, assert_caught, reference

from lsmkv.course.labs.log import LAB
from lsmkv.course.running import load
from lsmkv.format.log import BLOCK_SIZE, FULL, HEADER_SIZE, LAST, MIDDLE, frame
from lsmkv.util.checksum import crc32c, masked_crc32c


@functools.cache
def solution() -> object:
    return load(reference(LAB))


def good(data: bytes) -> list[bytes]:
    records: list[bytes] = solution().read_log(data)  # type: ignore[attr-defined]
    return records


def blind(data: bytes, checks_length: bool = True, keeps_open: bool = False) -> list[bytes]:
    """A reader that does not look at checksums."""
    found: list[bytes] = []
    part = b""
    at = 0
    while at + HEADER_SIZE <= len(data):
        left = BLOCK_SIZE - at % BLOCK_SIZE
        if left < HEADER_SIZE:
            at += left
            continue
        length, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        end = at + HEADER_SIZE + length
        if not 1 <= kind <= 4 or (checks_length and end > len(data)):
            break
        part += data[at + HEADER_SIZE : end]
        at = end
        if kind in (FULL, LAST):
            found.append(part)
            part = b""
    return [*found, part] if keeps_open and part else found


def without_zeros_at_the_end_of_a_block(payload: bytes, offset: int) -> bytes:
    left = BLOCK_SIZE - offset
    return frame(payload, offset)[left:] if left < HEADER_SIZE else frame(payload, offset)


def never_cut(payload: bytes, offset: int) -> bytes:
    return frame(payload, offset) if len(payload) < 9 else frame(payload, 0)


def zeros_in_the_last_seven(payload: bytes, offset: int) -> bytes:
    left = BLOCK_SIZE - offset
    return bytes(7) + frame(payload, 0) if left == HEADER_SIZE else frame(payload, offset)


def with_type(kind: int, wrong: int, payload: bytes, offset: int) -> bytes:
    """A frame whose fragments of a type have another one."""
    made = bytearray(frame(payload, offset))
    at = 0
    while at < len(made):
        left = BLOCK_SIZE - (offset + at) % BLOCK_SIZE
        if left < HEADER_SIZE:
            at += left
            continue
        end = at + HEADER_SIZE + int.from_bytes(made[at + 4 : at + 6], "little")
        if made[at + 6] == kind:
            made[at + 6] = wrong
            data = made[at + 6 : at + 7] + made[at + HEADER_SIZE : end]
            made[at : at + 4] = masked_crc32c(bytes(data)).to_bytes(4, "little")
        at = end
    return bytes(made)


def big_endian_length(payload: bytes, offset: int) -> bytes:
    made = frame(payload, offset)
    return made[:4] + made[4:6][::-1] + made[6:]


def nothing_for_an_empty_record(payload: bytes, offset: int) -> bytes:
    return frame(payload, offset) if payload else b""


def without_empty_records(data: bytes) -> list[bytes]:
    return [record for record in good(data) if record]


def first_fragment_alone(data: bytes) -> list[bytes]:
    return [record[: BLOCK_SIZE - HEADER_SIZE] for record in good(data)]


def zeros_are_records(data: bytes) -> list[bytes]:
    return [*good(data), b""] if data.endswith(bytes(100)) else good(data)


def every_record_from_0(payload: bytes, offset: int) -> bytes:
    return frame(payload, 0)


MISTAKES = (
    Mistake(
        "not masked",
        "masked_checksum",
        lambda kind, data: crc32c(bytes([kind]) + data),
        "the checksum",
        "mask it",
    ),
    Mistake(
        "without the type",
        "masked_checksum",
        lambda kind, data: masked_crc32c(data),
        "the checksum",
        "the type byte comes first",
    ),
    Mistake(
        "the type behind",
        "masked_checksum",
        lambda kind, data: masked_crc32c(data + bytes([kind])),
        "the checksum",
        "before the data, not after it",
    ),
    Mistake(
        "33 bits",
        "masked_checksum",
        lambda kind, data: masked_crc32c(bytes([kind]) + data) + (1 << 32),
        "the checksum",
        "Keep 32 bits",
    ),
    Mistake(
        "another rotation",
        "masked_checksum",
        lambda kind, data: masked_crc32c(bytes([kind]) + data) ^ 0x8000,
        "the checksum",
        "Rotate the CRC right by 15",
    ),
    Mistake(
        "no zeros",
        "frame",
        without_zeros_at_the_end_of_a_block,
        "the bytes of records",
        "zeros at the end of the block",
    ),
    Mistake("the border ignored", "frame", never_cut, "the bytes of records", "near the end"),
    Mistake(
        "zeros in the last seven",
        "frame",
        zeros_in_the_last_seven,
        "the bytes of records",
        "A header fits into the last seven bytes",
    ),
    Mistake(
        "LAST in place of MIDDLE",
        "frame",
        functools.partial(with_type, MIDDLE, LAST),
        "the bytes of records",
        "FIRST, MIDDLE, ..., LAST",
    ),
    Mistake(
        "big-endian length", "frame", big_endian_length, "the bytes of records", "length, 3, byte 0"
    ),
    Mistake(
        "no empty record",
        "frame",
        nothing_for_an_empty_record,
        "the bytes of records",
        "An empty record is",
    ),
    Mistake(
        "empty records left out",
        "read_log",
        without_empty_records,
        "reading a log",
        "An empty record is a FULL fragment",
    ),
    Mistake(
        "one fragment",
        "read_log",
        first_fragment_alone,
        "reading a log",
        "FIRST, then LAST",
    ),
    Mistake(
        "a cut fragment kept",
        "read_log",
        functools.partial(blind, checks_length=False),
        "torn logs",
        "with incomplete header or data",
    ),
    Mistake(
        "an open record kept",
        "read_log",
        functools.partial(blind, keeps_open=True),
        "torn logs",
        "A record without its last fragment",
    ),
    Mistake(
        "zeros are records", "read_log", zeros_are_records, "torn logs", "0 is not a valid type"
    ),
    Mistake("no checksum", "read_log", blind, "damaged logs", "masked checksum of type and data"),
    Mistake(
        "all from the start of a block",
        "frame",
        every_record_from_0,
        "in the real engine",
        "the engine's reader finds damage",
    ),
    Mistake(
        "LAST in place of MIDDLE in a store",
        "frame",
        functools.partial(with_type, MIDDLE, LAST),
        "in the real engine",
        "A store with your log",
    ),
)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_named(mistake: Mistake) -> None:
    assert_caught(LAB, mistake)


def test_each_check_catches_a_mistake() -> None:
    assert {mistake.check for mistake in MISTAKES} == {check.name for check in LAB.checks}
