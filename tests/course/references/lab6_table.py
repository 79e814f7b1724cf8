"""Lab 6, by the engine's own modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lsmkv.engine.counters import ReadCounters
from lsmkv.engine.env.base import RandomAccessFile
from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.engine.filter.key_hashes import KeyHashes
from lsmkv.engine.format.keys import KIND_VALUE, MAX_SEQUENCE, InternalKeyComparator
from lsmkv.engine.options import Options
from lsmkv.engine.table.builder import TableBuilder
from lsmkv.engine.table.format import BlockHandle, Footer, open_block
from lsmkv.engine.table.format import seal_block as seal
from lsmkv.engine.table.reader import Table
from lsmkv.engine.util.comparator import BYTEWISE
from lsmkv.engine.util.compression import DEFAULT_MAX_BLOCK_BYTES, NO_COMPRESSION

ORDER = InternalKeyComparator(BYTEWISE)

separator = ORDER.find_shortest_separator
successor = ORDER.find_short_successor


def seal_block(contents: bytes) -> bytes:
    return seal(contents, NO_COMPRESSION)


def unseal_block(stored: bytes) -> bytes:
    return open_block(stored, DEFAULT_MAX_BLOCK_BYTES)


def block_handle(offset: int, size: int) -> bytes:
    return BlockHandle(offset, size).encode()


def footer(metaindex: bytes, index: bytes) -> bytes:
    return Footer(BlockHandle.decode(metaindex)[0], BlockHandle.decode(index)[0]).encode()


def build_table(entries: Sequence[tuple[bytes, bytes]], block_size: int) -> bytes:
    options = Options()._replace(block_size=block_size, compression=NO_COMPRESSION)
    directory = MemoryEnv().open_directory("tables", create=True)
    with directory.create("table") as file:
        builder = TableBuilder(options, file)
        for key, value in entries:
            builder.add(key, value)
        builder.finish()
    return directory.read_file("table", builder.file_size)


class ReadFile(RandomAccessFile):
    """A file whose bytes a function returns."""

    def __init__(self, read: Callable[[int, int], bytes], size: int) -> None:
        self.path, self.size = "table", size
        self._read = read

    def read(self, offset: int, length: int) -> bytes:
        return self._read(offset, length)

    def close(self) -> None:
        """Nothing is open."""


def get(read: Callable[[int, int], bytes], size: int, user_key: bytes) -> bytes | None:
    with ReadFile(read, size) as file:
        table = Table(Options(), file)
        _, tag, value = table.get(
            user_key, user_key, MAX_SEQUENCE, KeyHashes(user_key), ReadCounters(), False
        )
    return value if tag & 0xFF == KIND_VALUE else None
