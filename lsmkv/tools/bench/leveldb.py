"""lsmkv by plyvel's API: the engine for both."""

from __future__ import annotations

import importlib
import re
import time
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Any

from lsmkv.tools.bench.settings import MIB, Settings
from lsmkv.tools.bench.store import Get, Put, Records, Store

_BEYOND = b"\xff" * 32
_LEVELS = 7
_L0_COMPACTION_TRIGGER = 4
_CALM = 0.3
"""Seconds: no flush takes longer."""
_TABLE = re.compile(r"^ \d+:(\d+)\[")


class LevelDBEngine:
    """A module with plyvel's API, by its name."""

    threads = True

    def __init__(self, module: str, **reading: Any) -> None:
        """``reading`` are arguments of each read."""
        self.cannot: dict[str, str] = {}
        self._reading = reading
        self._module: Any = importlib.import_module(module)
        self.version = str(self._module.__version__)

    def open(self, path: str, settings: Settings, sync: bool = False) -> LevelDBStore:
        """See ``Engine``.  plyvel gives no cache of size 0: 1 byte stands for it."""
        if settings.own_defaults:
            return LevelDBStore(self._module.DB(path, create_if_missing=True), sync, self._reading)
        db = self._module.DB(
            path,
            create_if_missing=True,
            write_buffer_size=settings.write_buffer_size,
            lru_cache_size=max(1, settings.cache_size),
            bloom_filter_bits=settings.bloom_bits,
            compression=None if settings.compression == "none" else settings.compression,
        )
        return LevelDBStore(db, sync, self._reading)


class LevelDBStore(Store):
    """An open one."""

    def __init__(self, db: Any, sync: bool, reading: dict[str, Any]) -> None:
        super().__init__(db)
        self._sync = sync
        self._reading = reading

    def _reader(self, call: Any) -> Any:
        """A method that reads, with the arguments of each read."""
        return partial(call, **self._reading) if self._reading else call

    def getter(self, live: bool) -> Get:
        get: Get = self._reader(self._db.get)
        return get

    def putter(self) -> Put:
        put: Put = partial(self._db.put, sync=True) if self._sync else self._db.put
        return put

    def batch_writer(self) -> Callable[[Records], object]:
        write_batch = self._db.write_batch

        def write(records: Records) -> None:
            with write_batch() as batch:
                put = batch.put
                for key, value in records:
                    put(key, value)

        return write

    def scan(self, reverse: bool) -> Iterable[tuple[bytes, bytes]]:
        rows: Iterable[tuple[bytes, bytes]] = self._reader(self._db.iterator)(reverse=reverse)
        return rows

    def seeker(self) -> Callable[[bytes], bytes | None]:
        raw_iterator = self._reader(self._db.raw_iterator)

        def seek(key: bytes) -> bytes | None:
            with raw_iterator() as cursor:
                cursor.seek(key)
                found: bytes | None = cursor.key() if cursor.valid() else None
            return found

        return seek

    def range_reader(self, count: int) -> Callable[[bytes], int]:
        iterator = self._reader(self._db.iterator)

        def read(key: bytes) -> int:
            rows = iterator(start=key)
            found = list(islice(rows, count))
            rows.close()
            return len(found)

        return read

    def flush(self) -> None:
        """Flush the memtable by a compaction of no key, which does nothing else."""
        self._db.compact_range(start=_BEYOND, stop=_BEYOND + b"\xff")

    def settle(self) -> None:
        """Wait until no level is so full that it has to be compacted, and nothing changes."""
        before = None
        while True:
            tables = self._db.get_property(b"leveldb.sstables").decode()
            if tables == before and not any(map(is_full, range(_LEVELS), table_sizes(tables))):
                return
            before = tables
            time.sleep(_CALM)

    def compact(self) -> None:
        """Both bounds are given: without an end, plyvel compacts nothing."""
        self._db.compact_range(start=b"", stop=_BEYOND)

    def levels(self) -> list[int]:
        return [
            int(self._db.get_property(b"leveldb.num-files-at-level%d" % level))
            for level in range(_LEVELS)
        ]

    def counters(self) -> dict[str, int]:
        if not hasattr(self._db, "stats"):
            return {}
        plain = self._db.stats().to_dict()
        return {name: value for name, value in plain.items() if isinstance(value, int)}

    def table_bytes_written(self) -> int:
        """The last column of ``leveldb.stats``, which both engines round to MiB a level."""
        return MIB * sum(written_column(self._db.get_property(b"leveldb.stats").decode()))


def written_column(table: str) -> list[int]:
    """Return the MiB written to each level, from the property ``leveldb.stats``.

    >>> head = "Level  Files Size(MB) Time(sec) Read(MB) Write(MB)\\n-----\\n"
    >>> written_column(head + " 0  2  3  0  0  12\\n 1  4  8  1  20  20\\n")
    [12, 20]
    """
    rows = table.partition("\n-")[2].splitlines()[1:]
    return [int(row.split()[-1]) for row in rows if row.strip()]


def table_sizes(listing: str) -> list[list[int]]:
    """Bytes of each table, level by level, from the property ``leveldb.sstables``.

    >>> table_sizes("--- level 0 ---\\n 7:99['a' @ 1 : 1 .. 'b' @ 2 : 1]\\n--- level 1 ---\\n")
    [[99], []]
    """
    levels: list[list[int]] = []
    for line in listing.splitlines():
        table = _TABLE.match(line)
        if table is not None:
            levels[-1].append(int(table[1]))
        elif line.startswith("---"):
            levels.append([])
    return levels


def is_full(level: int, sizes: list[int]) -> bool:
    """True if LevelDB compacts a level that holds tables of these sizes.

    >>> is_full(0, [1, 1, 1]), is_full(0, [1, 1, 1, 1]), is_full(1, [10 << 20]), is_full(6, [1])
    (False, True, True, False)
    """
    if level == 0:
        return len(sizes) >= _L0_COMPACTION_TRIGGER
    return level < _LEVELS - 1 and sum(sizes) >= 10**level * MIB
