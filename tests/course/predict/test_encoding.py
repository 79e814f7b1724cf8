"""Labs 1 to 3: the answers follow from a student's own files alone."""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path

import pytest
from own_data import STUDENTS, answers_of, data_of, spelled

every_student = pytest.mark.parametrize("student", STUDENTS)
BLOCK = 32_768


@every_student
def test_keys(tmp_path: Path, student: str) -> None:
    data = data_of(tmp_path, "keys", student)
    varint = bytes.fromhex(data["varint"])
    number = sum((byte & 0x7F) << 7 * at for at, byte in enumerate(varint))
    keys = [bytes.fromhex(key) for key in data["internal_keys"]]
    split = [(key[:-8], -(int.from_bytes(key[-8:], "little") >> 8)) for key in keys]
    tag = (data["sequence"] << 8 | 1).to_bytes(8, "little")
    assert answers_of("keys", student) == [str(number), str(-min(split)[1]), tag.hex(" ")]


def fragments(lengths: list[int]) -> list[list[tuple[int, int]]]:
    """Where the fragments of each record begin, and how many data they have."""
    found: list[list[tuple[int, int]]] = []
    at = 0
    for length in lengths:
        parts: list[tuple[int, int]] = []
        while length > 0 or not parts:
            if BLOCK - at % BLOCK < 7:
                at += BLOCK - at % BLOCK
            size = min(length, BLOCK - at % BLOCK - 7)
            parts.append((at, size))
            at += 7 + size
            length -= size
        found.append(parts)
    return found


@every_student
def test_log(tmp_path: Path, student: str) -> None:
    data = data_of(tmp_path, "log", student)
    numbers, lengths = zip(*data["records"], strict=True)
    parts = fragments(list(lengths))
    hit = sum(record[0][0] <= data["damaged_byte"] for record in parts) - 1
    first, *_, last = parts[numbers.index(data["large_record"])]
    assert answers_of("log", student) == [
        str(numbers[hit - 1]),
        spelled(first[0], *last),
    ]
    log = (tmp_path / "data" / "lab2.log").read_bytes()
    assert len(log) == parts[-1][-1][0] + 7 + parts[-1][-1][1]
    assert int.from_bytes(log[7:15], "little") == numbers[0]


@every_student
def test_block(tmp_path: Path, student: str) -> None:
    data = data_of(tmp_path, "block", student)
    interval, entries = data["restart_interval"], data["entries"]
    offsets: list[int] = []
    at = 0
    for number, (key, size) in enumerate(entries):
        shared = 0
        if number % interval == 0:
            offsets.append(at)
        else:
            before = entries[number - 1][0]
            while key[shared] == before[shared]:
                shared += 1
        at += 3 + len(key) - shared + size
    keys = [key for key, _ in entries[::interval]]
    start = keys[bisect_left(keys, data["target"]) - 1]
    assert answers_of("block", student) == [spelled(*offsets), start]
