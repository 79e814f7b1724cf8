"""A directory with a memtable to flush, and the entries of what was made."""

from __future__ import annotations

from lsmkv.engine.counters import Counters, ReadCounters
from lsmkv.engine.db.compact.flush import write_memtable
from lsmkv.engine.db.tree.memtable import MemTable
from lsmkv.engine.db.tree.store_lock import StoreLock
from lsmkv.engine.db.tree.table_cache import TableCache
from lsmkv.engine.db.tree.table_output import TableOutput
from lsmkv.engine.env.base import Directory
from lsmkv.engine.filter.bloom import BloomFilterPolicy
from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.format.keys import KIND_DELETION, KIND_VALUE, Entry, pack
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.options import Options
from lsmkv.engine.table.inspection import check
from lsmkv.engine.util.comparator import BYTEWISE, Comparator
from lsmkv.testing.faulty import FaultyEnv

ALL_ARE_OLDER = 1 << 50


class Bench:
    def __init__(self, comparator: Comparator = BYTEWISE) -> None:
        self.env = FaultyEnv()
        self.directory: Directory = self.env.open_directory("db", create=True)
        self.order = KeyOrder(comparator)
        self.options = Options(
            comparator=comparator,
            filter_policy=BloomFilterPolicy(10),
            block_size=200,
        )
        self.memtable = MemTable(comparator, StoreLock())

    def flush(self, oldest_pinned: int = ALL_ARE_OLDER, number: int = 7) -> FileMetaData | None:
        files = write_memtable(
            self.memtable, self.directory, lambda: number, self.options, self.order, oldest_pinned
        )
        return files[0] if files else None

    def entries(self, file: FileMetaData | None) -> list[Entry]:
        assert file is not None
        cache = TableCache(self.directory, self.options, Counters())
        check(cache.find(file))
        return [e for chunk in cache.entries(file, ReadCounters(), 1000, 1000) for e in chunk]


def value(key: bytes, sequence: int, data: bytes = b"v") -> Entry:
    return key, pack(b"", sequence, KIND_VALUE) + data


def deletion(key: bytes, sequence: int) -> Entry:
    return key, pack(b"", sequence, KIND_DELETION)


def add(output: TableOutput, entry: Entry) -> None:
    """Append one entry."""
    assert output.add_entries([entry[0]], [entry[1]], 0, 1, 1 << 40) == 1
