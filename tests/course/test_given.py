"""What starters give a student is what the engine has."""

from __future__ import annotations

import random

import pytest

from lsmkv.course import given
from lsmkv.engine.format import batch, log
from lsmkv.engine.util import checksum, coding
from lsmkv.errors import CorruptionError

STRINGS = [b"", b"a", b"ant", bytes(127), bytes(128), bytes(range(256)) * 300]


def test_names_are_those_of_the_engine() -> None:
    assert given.BLOCK_SIZE == log.BLOCK_SIZE
    assert not {"frame", "set_current"} & set(dir(given)), "they are answers of labs"


@pytest.mark.parametrize("data", STRINGS)
def test_checksums_are_masked_as_in_files(data: bytes) -> None:
    assert given.masked_crc32c(data) == checksum.masked_crc32c(data)
    for kind in range(5):
        assert given.typed_crc32c(kind, data) == checksum.typed_crc32c(kind, data)


@pytest.mark.parametrize("data", STRINGS)
def test_strings_come_back(data: bytes) -> None:
    encoded = given.encode_string(data)
    assert encoded == coding.encode_string(data)
    assert given.decode_string(b"?" + encoded + b"?", 1) == (data, 1 + len(encoded))


@pytest.mark.parametrize("number", [0, 1, 127, 128, 2**32 - 1])
def test_numbers_of_32_bits_come_back(number: int) -> None:
    encoded = given.encode_varint(number)
    assert given.decode_varint32(b"?" + encoded, 1) == (number, 1 + len(encoded))
    assert given.decode_varint32(b"?" + encoded, 1) == coding.decode_varint32(b"?" + encoded, 1)


def test_what_is_cut_or_too_large_is_refused() -> None:
    encoded = given.encode_string(bytes(200))
    for cut in range(len(encoded)):
        with pytest.raises(CorruptionError):
            given.decode_string(encoded[:cut], 0)
    for data in (b"", b"\x80", given.encode_varint(2**32), b"\x80" * 11):
        with pytest.raises(CorruptionError):
            given.decode_varint32(data, 0)


def test_batches_are_read_as_the_engine_reads_them() -> None:
    dice = random.Random(1)
    operations: list[given.Operation] = [
        (dice.randbytes(5), dice.choice((None, b"", dice.randbytes(300)))) for _ in range(20)
    ]
    record = batch.encode_batch(7, operations)
    assert given.decode_batch(record) == (7, operations)
    assert given.decode_batch(record) == batch.decode_batch(record)
    for cut in range(len(record)):
        with pytest.raises(CorruptionError):
            given.decode_batch(record[:cut])
