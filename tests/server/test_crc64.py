"""The checksum of Redis' dumps."""

from __future__ import annotations

import random

import pytest

from lsmkv.server.crc64 import _continued, crc64


def test_the_checksum_that_redis_states() -> None:
    assert crc64(b"123456789") == 0xE9C6D914C4B8D9CA
    assert crc64(b"") == 0


@pytest.mark.parametrize("size", [4095, 4096, 4097, 5000, 100_001])
def test_columns_have_the_checksum_of_their_bytes(size: int) -> None:
    data = random.Random(size).randbytes(size)
    assert crc64(data) == _continued(0, data)
