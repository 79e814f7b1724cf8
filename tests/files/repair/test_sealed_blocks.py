"""lsmkv.repair.sealed_blocks: blocks are found wherever windows and guesses fall."""

from __future__ import annotations

import random

import pytest

from lsmkv.engine.util.checksum import masked_crc32c
from lsmkv.files.repair.sealed_blocks import SealFinder, find_sealed_end


def seal(body: bytes, kind: int) -> bytes:
    typed = body + bytes([kind])
    return typed + masked_crc32c(typed).to_bytes(4, "little")


@pytest.mark.parametrize("kind", [0, 1, 2, 4])
def test_the_end_of_a_block_however_the_windows_fall(kind: int) -> None:
    rng = random.Random(kind)
    for _ in range(30):
        body = rng.randbytes(rng.randrange(1, 300)) + b"\1"
        stored = seal(body, kind)
        data = stored + rng.randbytes(rng.randrange(40))
        end = len(body) + 1
        assert find_sealed_end(data, len(data) - 4) == (end, find_sealed_end(data, end)[1])
        cut = rng.randrange(1, end)
        none, crc = find_sealed_end(data, cut)
        assert none == -1
        assert find_sealed_end(data[cut:], len(data) - cut - 4, crc)[0] == end - cut
        # And from a place that has to be guessed.
        before = rng.randbytes(rng.randrange(100))
        guesses = sorted({len(before), *rng.sample(range(len(before) + 1), len(before) // 9)})
        finder = SealFinder(1000)
        stream = before + data
        found: list[tuple[int, int]] = []
        at = 0
        while at < len(stream) - 4:
            length = min(rng.randrange(1, 60), len(stream) - 4 - at)
            starts = [guess - at for guess in guesses if at <= guess < at + length]
            found += finder.feed(stream[at : at + length + 4], length, starts)
            at += length
        assert found == [(1000 + len(before), 1000 + len(before) + end)]


def test_no_end_where_there_is_none() -> None:
    rng = random.Random(9)
    for kind in (3, 5, 255):
        data = seal(rng.randbytes(100), kind) + bytes(4)
        assert find_sealed_end(data, len(data) - 4)[0] == -1
        assert SealFinder(0).feed(data, len(data) - 4, list(range(100))) == []
    damaged = bytearray(seal(rng.randbytes(100), 1) + bytes(4))
    damaged[50] ^= 0xFF
    data = bytes(damaged)
    assert find_sealed_end(data, len(data) - 4)[0] == -1
    assert SealFinder(0).feed(data, len(data) - 4, list(range(100))) == []
