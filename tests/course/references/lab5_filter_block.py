"""Lab 5, by the engine's own modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lsmkv.engine.filter.bloom import BloomFilterPolicy
from lsmkv.engine.format.keys import user_key_of
from lsmkv.engine.table.filter_block import FILTER_BASE_LG, FilterBlockBuilder, FilterBlockReader
from lsmkv.errors import CorruptionError

Blocks = Sequence[tuple[int, Sequence[bytes]]]


class Policy:
    """A policy whose filters are made by a function."""

    name: str = "reference"

    def __init__(self, create_filter: Callable[[list[bytes]], bytes]) -> None:
        self.create = create_filter

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        return self.create(list(keys))

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        raise NotImplementedError  # a builder asks no filter


def filter_index(block_offset: int) -> int:
    return block_offset >> FILTER_BASE_LG


def group_keys(blocks: Blocks) -> list[list[bytes]]:
    groups: list[list[bytes]] = []

    def numbered(keys: list[bytes]) -> bytes:
        groups.append(keys)
        return bytes([len(groups) - 1])

    data = build_filter_block(blocks, numbered)
    found: list[list[bytes]] = []
    while (number := filter_for(data, len(found) << FILTER_BASE_LG)) is not None:
        found.append(groups[number[0]] if number else [])
    return found


def build_filter_block(blocks: Blocks, create_filter: Callable[[list[bytes]], bytes]) -> bytes:
    builder = FilterBlockBuilder(Policy(create_filter))
    for offset, keys in blocks:
        builder.start_block(offset)
        builder.add_keys([user_key_of(key) for key in keys])
    return builder.finish()


def filter_for(data: bytes, block_offset: int) -> bytes | None:
    try:
        return FilterBlockReader(BloomFilterPolicy(), data).filter_for(block_offset)
    except CorruptionError:
        return None


def key_may_match(
    data: bytes, block_offset: int, key: bytes, may_match: Callable[[bytes, bytes], bool]
) -> bool:
    found = filter_for(data, block_offset)
    if found is None:
        return True
    return found != b"" and may_match(key, found)
