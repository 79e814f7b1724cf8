"""Tables that hold what a variant has written, so that tools show it."""

from __future__ import annotations

from collections.abc import Sequence

from lsmkv.course.labs.block import built
from lsmkv.course.labs.formats import entries_in, footer_of, sealed
from lsmkv.files import BlockHandle

FILTER_NAME = b"filter.leveldb.BuiltinBloomFilter2"


def table_with(blocks: Sequence[bytes], filters: bytes | None = None) -> bytes:
    """A table of these data blocks, whatever is in them, and of this filter block."""
    out = b""
    index: list[tuple[bytes, bytes]] = []
    for block in blocks:
        index.append((_last_key(block, len(index)), BlockHandle(len(out), len(block)).encode()))
        out += sealed(block)
    meta: list[tuple[bytes, bytes]] = []
    if filters is not None:
        meta.append((FILTER_NAME, BlockHandle(len(out), len(filters)).encode()))
        out += sealed(filters)
    places: list[BlockHandle] = []
    for entries, interval in ((meta, 16), (index, 1)):
        contents = built(entries, interval)
        places.append(BlockHandle(len(out), len(contents)))
        out += sealed(contents)
    return out + footer_of(*places)


def _last_key(block: bytes, number: int) -> bytes:
    try:
        return entries_in(block)[-1].key
    except (ValueError, IndexError):  # a variant's block may be unreadable
        return b"block %d" % number + bytes(8)


def offsets_of(blocks: Sequence[bytes]) -> list[int]:
    """Return the offset of each of these data blocks in their table, and the end of the last."""
    offsets = [0]
    for block in blocks:
        offsets.append(offsets[-1] + len(sealed(block)))
    return offsets
