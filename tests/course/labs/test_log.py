"""Lab 2: planted mistakes are named."""

from __future__ import annotations

import functools

import pytest
from labs import Mistake, Planted, assert_caught, load, mistakes, reference, solution

from lsmkv.course.labs.log import LAB
from lsmkv.course.running import PASSED, judge
from lsmkv.engine.format.log import BLOCK_SIZE, FULL, HEADER_SIZE, LAST, MIDDLE, frame
from lsmkv.engine.util.checksum import crc32c, masked_crc32c


def good(data: bytes) -> list[bytes]:
    records: list[bytes] = solution(LAB).read_log(data)  # type: ignore[attr-defined]
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


def lenient(
    data: bytes, types: range = range(256), needs_first: bool = True, crosses: bool = False
) -> list[bytes]:
    """A reader that looks at checksums, and at little else."""
    found: list[bytes] = []
    part: bytes | None = None
    at = 0
    while at + HEADER_SIZE <= len(data):
        left = BLOCK_SIZE - at % BLOCK_SIZE
        if left < HEADER_SIZE:
            at += left
            continue
        length, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        end = at + HEADER_SIZE + length
        is_cut = end > len(data) or (HEADER_SIZE + length > left and not crosses)
        if is_cut or kind not in types or kind == 0:
            break
        content = data[at + HEADER_SIZE : end]
        if masked_crc32c(bytes([kind]) + content).to_bytes(4, "little") != data[at : at + 4]:
            break
        at = end
        begins = kind < MIDDLE
        if part is None and not begins and needs_first and kind <= LAST:
            break
        part = content if begins else (part or b"") + content
        if kind not in (FULL + 1, MIDDLE):
            found.append(part)
            part = None
    return found


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


MISTAKES: Planted = {
    ("masked_checksum", "the checksum"): [
        ("not masked", lambda kind, data: crc32c(bytes([kind]) + data), "mask it"),
        ("without the type", lambda kind, data: masked_crc32c(data), "the type byte comes first"),
        (
            "the type behind",
            lambda kind, data: masked_crc32c(data + bytes([kind])),
            "before the data, not after it",
        ),
        (
            "33 bits",
            lambda kind, data: masked_crc32c(bytes([kind]) + data) + (1 << 32),
            "Keep 32 bits",
        ),
        (
            "another rotation",
            lambda kind, data: masked_crc32c(bytes([kind]) + data) ^ 0x8000,
            "Rotate the CRC right by 15",
        ),
    ],
    ("frame", "the bytes of records"): [
        ("no zeros", without_zeros_at_the_end_of_a_block, "zeros at the end of the block"),
        ("the border ignored", never_cut, "near the end"),
        (
            "zeros in the last seven",
            zeros_in_the_last_seven,
            "A header fits into the last seven bytes",
        ),
        (
            "LAST in place of MIDDLE",
            functools.partial(with_type, MIDDLE, LAST),
            "FIRST, MIDDLE, ..., LAST",
        ),
        ("big-endian length", big_endian_length, "length, 3, byte 0"),
        ("no empty record", nothing_for_an_empty_record, "An empty record is"),
    ],
    ("read_log", "reading a log"): [
        ("empty records left out", without_empty_records, "An empty record is a FULL fragment"),
        ("one fragment", first_fragment_alone, "FIRST, then LAST"),
    ],
    ("read_log", "torn logs"): [
        (
            "a cut fragment kept",
            functools.partial(blind, checks_length=False),
            "with incomplete header or data",
        ),
        (
            "an open record kept",
            functools.partial(blind, keeps_open=True),
            "A record without its last fragment",
        ),
        ("zeros are records", zeros_are_records, "0 is not a valid type"),
    ],
    ("read_log", "damaged logs"): [
        ("no checksum", blind, "masked checksum of type and data"),
        ("any type", lenient, "5 is none of the four types"),
        (
            "LAST without FIRST",
            functools.partial(lenient, types=range(1, 5), needs_first=False),
            "LAST without a FIRST before it belongs to no record",
        ),
        (
            "across the end of a block",
            functools.partial(lenient, types=range(1, 5), crosses=True),
            "its data must end within its block",
        ),
    ],
    ("frame", "in the real engine"): [
        ("all from the start of a block", every_record_from_0, "the engine's reader finds damage"),
        (
            "LAST in place of MIDDLE in a store",
            functools.partial(with_type, MIDDLE, LAST),
            "A store with your log",
        ),
    ],
}


@pytest.mark.parametrize("mistake", mistakes(MISTAKES), ids=lambda mistake: mistake.name)
def test_a_mistake_is_named(mistake: Mistake) -> None:
    assert_caught(LAB, mistake)


def test_a_reader_that_looks_at_all_of_that_passes() -> None:
    code = load(reference(LAB))
    code.__dict__["read_log"] = functools.partial(lenient, types=range(1, 5))
    outcomes = {check.name: judge(LAB, code, check).outcome for check in LAB.checks}
    assert set(outcomes.values()) == {PASSED}


def test_a_length_past_the_end_is_named() -> None:
    code = load(reference(LAB))
    right = code.read_log
    code.__dict__["read_log"] = lambda data: (
        [*right(data), b"?"] if data[5:6] == b" " else right(data)
    )
    check = next(check for check in LAB.checks if check.name == "damaged logs")
    message = judge(LAB, code, check).message
    assert (
        "A log whose byte 5 (length, 3, and now 8,195: 8,159 bytes too many) is damaged" in message
    )


def test_each_check_catches_a_mistake() -> None:
    assert {check for _, check in MISTAKES} == {check.name for check in LAB.checks}
