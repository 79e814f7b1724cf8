"""Lab 3, by the engine's own modules."""

from __future__ import annotations

from collections.abc import Sequence

from lsmkv.engine.table.block import Block
from lsmkv.engine.table.block_builder import BlockBuilder
from lsmkv.engine.util.search import common


def shared_prefix(a: bytes, b: bytes) -> int:
    return common(a, 0, b, 0, min(len(a), len(b)))


def build_block(entries: Sequence[tuple[bytes, bytes]], restart_interval: int) -> bytes:
    builder = BlockBuilder(restart_interval)
    for key, value in entries:
        builder.add(key, value)
    return builder.finish()


def read_block(data: bytes) -> list[tuple[bytes, bytes]]:
    return list(zip(*Block(data).entries(), strict=True))


def seek(data: bytes, target: bytes) -> tuple[bytes, bytes] | None:
    # The engine's own search takes internal keys, and these are any keys: it bisects by offset.
    block = Block(data)
    points = block.restart_points()
    low, high = 0, len(points) - 1
    while low < high:
        middle = (low + high + 1) // 2
        _, unshared, _, at = block.header(points[middle])
        low, high = (middle, high) if data[at : at + unshared] < target else (low, middle - 1)
    rest = data[points[low] : block.end] + bytes(4) + (1).to_bytes(4, "little")
    return next((entry for entry in read_block(rest) if entry[0] >= target), None)
