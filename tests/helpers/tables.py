"""A directory with a memtable to flush, and the entries of what was made."""

from __future__ import annotations

from librt.threading import Lock

from lsmkv.counters import Counters, ReadCounters
from lsmkv.db.flush import write_memtable
from lsmkv.db.memtable import MemTable
from lsmkv.db.table_cache import TableCache
from lsmkv.env.base import Directory
from lsmkv.env.faulty import FaultyEnv
from lsmkv.filter.bloom import BloomFilterPolicy
from lsmkv.format.key_order import KeyOrder
from lsmkv.format.keys import (
    KIND_DELETION,
    KIND_VALUE,
    Entry,
    InternalKeyComparator,
    internal_filter_policy,
    rank_of,
)
from lsmkv.format.version_edit import FileMetaData
from lsmkv.options import Options
from lsmkv.util.comparator import BYTEWISE, Comparator

EVERYONE_LOOKS_AT = 1 << 50


class Bench:
    def __init__(self, comparator: Comparator = BYTEWISE) -> None:
        self.env = FaultyEnv()
        self.directory: Directory = self.env.open_directory("db", create=True)
        self.order = KeyOrder(comparator)
        self.options = Options(
            comparator=InternalKeyComparator(comparator),
            filter_policy=internal_filter_policy(BloomFilterPolicy(10)),
            block_size=200,
        )
        self.memtable = MemTable(comparator, Lock())

    def flush(self, oldest_seen: int = EVERYONE_LOOKS_AT, number: int = 7) -> FileMetaData | None:
        return write_memtable(
            self.memtable, self.directory, number, self.options, self.order, oldest_seen
        )

    def entries(self, file: FileMetaData | None) -> list[Entry]:
        assert file is not None
        cache = TableCache(self.directory, self.options, Counters())
        cache.find(file).check()
        return [e for chunk in cache.scan(file, None, ReadCounters(), False) for e in chunk]


def value(key: bytes, sequence: int, data: bytes) -> Entry:
    return key, rank_of(sequence, KIND_VALUE), data


def deletion(key: bytes, sequence: int) -> Entry:
    return key, rank_of(sequence, KIND_DELETION), b""
