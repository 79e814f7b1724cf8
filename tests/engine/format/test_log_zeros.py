"""Zeros at the end of a log: reserved space, or lost records."""

from __future__ import annotations

import pytest
from byte_files import BytesFile
from made_files import log_of

from lsmkv.engine.format.log import BLOCK_SIZE, LogReader
from lsmkv.engine.format.log_zeros import lost_in_zeros, zeros_text


@pytest.mark.parametrize(
    ("record", "zeros", "size", "lost"),
    [
        (1000, 14_000, None, 14_000),  # a file that ends where no reserved space does
        (1000, 2 * BLOCK_SIZE + 5, None, 2 * BLOCK_SIZE + 5),
        (1000, 6, None, 0),  # less than a header
        (1000, 7, None, 7),
        (1000, 0, 2 * BLOCK_SIZE, 0),  # the space that a mapped log reserves first
        (40_000, 0, 4 * BLOCK_SIZE, 0),
        (40_000, 0, 100 * BLOCK_SIZE, 100 * BLOCK_SIZE),  # more than a step of it
        (1000, 0, 0, 0),
    ],
)
def test_zeros_that_no_writer_reserves_may_stand_where_records_were(
    record: int, zeros: int, size: int | None, lost: int
) -> None:
    data = log_of(b"1" * record)
    data += bytes(max(0, size - len(data)) if size is not None else zeros)
    file = BytesFile(data)
    reader = LogReader(file, reserved=True)
    assert len(list(reader)) == 1
    found = lost_in_zeros(file, reader.end)
    assert found == (len(data) - reader.end if lost else 0)
    if found:
        assert f"zeros from {reader.end} to the end, {found} bytes" in zeros_text(len(data), found)


@pytest.mark.parametrize(("zeros", "lost"), [(50_000, 50_000), (512, 512), (511, 0)])
def test_zeros_after_a_torn_record_begin_where_its_bytes_end(zeros: int, lost: int) -> None:
    whole = log_of(b"one", b"2" * 3000)
    file = BytesFile(whole[:2000] + bytes(zeros))
    reader = LogReader(file, reserved=True)
    assert len(list(reader)) == 1
    assert lost_in_zeros(file, reader.end) == lost
