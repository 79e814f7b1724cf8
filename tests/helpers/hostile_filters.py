"""Bytes that claim to be filters of 64-bit hashes: every size, and every field at its extremes."""

from __future__ import annotations

from collections.abc import Iterator

SEGMENTS = [0, 1, 2, 3, 255, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 4, (1 << 32) - 1]
SEGMENT_BITS = [0, 1, 2, 5, 10, 11, 15, 16, 20, 31, 32, 61, 62, 63, 64, 127, 128, 255]
SEEDS = [0, 1, 63, 64, 127, 128, 255]
MARKS = [*range(32), 64, 126, 127, 128, 129, 130, 131, 132, 133, 134, 159, 254, 255]
"""Last bytes: numbers of probes, and those of fuse filters (131 and 132) among others."""


def fuse(slots: bytes, segments: int, bits: int, seed: int, mark: int) -> bytes:
    """A fuse filter with this trailer."""
    return slots + segments.to_bytes(4, "little") + bytes([bits, seed, mark])


def hostile_filters() -> Iterator[bytes]:
    """Some 15,000 of them, none of more than 200 bytes."""
    for size in range(9):
        for filling in (b"\0", b"\xff", b"\x07", b"\x83", b"\x84"):
            yield filling * size
            for mark in MARKS:
                yield filling * size + bytes([mark])
    for mark in (131, 132):
        for bits in range(256):
            yield fuse(bytes(40), 1, bits, 0, mark)
        for seed in range(256):
            yield fuse(bytes(range(40)), 38 - (mark - 131), 0, seed, mark)
    for mark in (131, 132, 133):
        for slots in (0, 1, 4, 8, 128):
            for segments in SEGMENTS:
                for bits in SEGMENT_BITS:
                    yield fuse(b"\xa5" * slots, segments, bits, 0, mark)
        # Sizes that fit each other, however odd.
        for bits in range(6):
            for segments in (1, 2, 3):
                slots = (segments + mark - 129) << bits
                for seed in SEEDS:
                    for filling in (0, 0x5A, 0xFF):
                        yield fuse(bytes([filling]) * slots, segments, bits, seed, mark)[-200:]
