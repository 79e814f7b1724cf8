"""Labs 4 to 6: the answers follow from a student's own files alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from own_data import STUDENTS, answers_of, data_of, spelled

every_student = pytest.mark.parametrize("student", STUDENTS)


@every_student
def test_bloom(tmp_path: Path, student: str) -> None:
    data = data_of(tmp_path, "bloom", student)
    h, b = data["hash"], data["bits_per_key"]
    bits = -(-data["keys_of_the_filter"] * b // 8) * 8
    d = (h >> 17) + (h << 15) % 2**32
    positions = {(h + n * d) % 2**32 % bits for n in range(int(b * 0.69))}
    size = -(-data["keys_of_a_large_filter"] * data["bits_per_key_of_it"] // 8) + 1
    assert answers_of("bloom", student) == [spelled(*sorted(positions)), str(size)]


@every_student
def test_filter_block(tmp_path: Path, student: str) -> None:
    data = data_of(tmp_path, "filter_block", student)
    blocks, b = data["blocks"], data["bits_per_key"]
    counts: dict[int, int] = {}
    for offset, keys in blocks:
        counts[offset // 2048] = counts.get(offset // 2048, 0) + keys
    offsets = [0]
    for number in range(max(counts) + 1):
        keys = counts.get(number, 0)
        offsets.append(offsets[-1] + (-(-max(64, keys * b) // 8) + 1 if keys else 0))
    if blocks[-1][0] // 2048 > blocks[-2][0] // 2048:
        del offsets[-1]  # the range in which the data end
    found = answers_of("filter_block", student)
    assert found[0] == str(data["offset_of_a_block"] // 2048)
    assert found[1] in (spelled(*offsets), spelled(*offsets, offsets[-1]))


@every_student
def test_table(tmp_path: Path, student: str) -> None:
    data = data_of(tmp_path, "table", student)
    numbers, number, shift = [], 0, 0
    for byte in bytes.fromhex(data["handle"]):
        number += (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(number)
            number = shift = 0
    index = data["end_of_the_data_blocks"] + data["size_of_the_metaindex"] + 5
    block = [offset for offset, first in data["data_blocks"] if first <= data["key"]][-1]
    assert answers_of("table", student) == [
        spelled(numbers[0], numbers[1] + 5),
        spelled(data["size_of_the_table"] - 48, index, block),
    ]
    table = (tmp_path / "data" / "lab6.ldb").read_bytes()
    assert len(table) == data["size_of_the_table"] == index + data["size_of_the_index"] + 5 + 48
