"""The table cache: open tables, by file number.

Readers, compactions and ``verify`` ask it for tables, in any thread and without a lock.  The
tables of all stores of the process count together, too (``descriptors.py``).
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterator

from lsmkv.engine.counters import Counters, ReadCounters
from lsmkv.engine.env.base import Directory, RandomAccessFile
from lsmkv.engine.env.descriptors import OPEN_TABLES, OpenTable, most_tables
from lsmkv.engine.errors import CorruptionError, DirectoryReplacedError, StaleViewError
from lsmkv.engine.format.filenames import old_table_name, table_name
from lsmkv.engine.format.keys import KIND_VALUE, Entry
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.options import Options
from lsmkv.engine.table.reader import Table
from lsmkv.engine.util.second_chance_cache import SecondChanceCache

_OTHER_FILES = 10  # descriptors for logs, MANIFEST, LOCK, LOG: LevelDB's figure
_HELD_SHARE = 4  # a reader holds at most this part of the tables that may be open

_caches = itertools.count()


class TableCache:
    """Keeps the tables used last open, at most ``max_open_files - 10`` of them.

    There are fewer if the process may not have so many descriptors, if other stores use theirs
    more, or if the indexes and filters of those that are open take more than
    ``table_cache_bytes``.  A table that is evicted during a read closes its file when the last
    reader drops it: a file is never closed under a read.
    """

    def __init__(self, directory: Directory, options: Options, counters: Counters) -> None:
        self._directory = directory
        self._options = options
        self._counters = counters
        self._number = next(_caches)
        self._known: dict[int, OpenTable] = {}
        self._tables: SecondChanceCache[int, Table] = SecondChanceCache(
            options.max_open_files - _OTHER_FILES
        )

    def __del__(self) -> None:
        self.clear()

    def find(self, file: FileMetaData, fill_cache: bool = True) -> Table:
        """The table, opened if it is not open.

        A table that is opened puts its first data block into the block cache, unless
        ``fill_cache`` is False.
        :class:`CorruptionError` if it is missing, damaged, or neither of the size nor of the first
        key that the MANIFEST states.  In a store that is open for reading only, its writer may have
        removed the table: :class:`StaleViewError`, or :class:`DirectoryReplacedError`.
        """
        opened = file.opened
        if opened is not None:
            held: Table | None = opened.take()
            if held is not None:
                return held
        table = self._tables.get(file.number)
        if table is None:
            table = self._open(file, fill_cache)
            self._make_room(table)
            self._keep(file.number, table)
            self._counters.tables_opened += 1
            self._counters.metadata_reads += table.metadata_reads
            self._counters.metadata_bytes_read += table.metadata_bytes
            self._counters.identity_check_reads += table.identity_check.blocks_read
            self._counters.identity_check_bytes_read += table.identity_check.bytes_read
        file.opened = self._tables.entry(file.number)
        return table

    def peek(self, file: FileMetaData) -> Table:
        """As :meth:`find`, but changes neither the cache nor the counters: a table that is not open
        is opened for the caller alone."""
        table = self._tables.get(file.number)
        return self._open(file, False) if table is None else table

    def opened(self, number: int) -> Table | None:
        """The table of this number, if it is open."""
        return self._tables.get(number)

    def evict(self, number: int) -> None:
        """Drop a table whose file is about to be removed, and its blocks from the block cache."""
        table = self._tables.get(number)
        if table is not None:
            self._tables.discard(number)
            self._forget(number)
            table.forget_blocks()

    def most_held(self) -> int:
        """Return the number of tables that a reader may hold open: a share of those that may be
        open at all."""
        return min(self._tables.capacity, most_tables()) // _HELD_SHARE

    def hold(self, files: list[FileMetaData], fill_cache: bool) -> dict[int, Table]:
        """The tables by number, opened, for a reader that keeps them open; {} if they are too many
        for that.  Opens and raises as :meth:`find` does."""
        if len(files) > self.most_held():
            return {}
        tables: dict[int, Table] = {}
        bound = self._options.table_cache_bytes
        room = 0 if bound is None else bound // _HELD_SHARE
        for file in files:
            table = self.find(file, fill_cache)
            tables[file.number] = table
            room -= table.memory
            if bound is not None and room < 0:
                return {}
        return tables

    def keep_only(self, numbers: Container[int]) -> None:
        """Drop all tables but these: no version names the others any longer."""
        for number in self._tables.in_order():
            if number not in numbers:
                self.evict(number)

    def clear(self) -> None:
        """Drop all tables."""
        self._tables.clear()
        for number in list(self._known):
            self._forget(number)

    def entries(
        self, file: FileMetaData, counters: ReadCounters, readahead: int, enough: int
    ) -> Iterator[list[Entry]]:
        """All entries of a table, about ``enough`` bytes at a time.  The block cache is neither
        read nor filled."""
        table = self.find(file, False)
        for entries in table.entries(counters, readahead, enough):
            for _, tagged in entries:
                if tagged[0] > KIND_VALUE:
                    raise CorruptionError(f"an internal key of kind {tagged[0]}", table.path)
            yield entries

    def _keep(self, number: int, table: Table) -> None:
        """Put a table into the store's cache, and into the queue of the process's open tables."""
        entry = self._tables.put(number, table)
        if not self._directory.immutable:
            known = OpenTable(entry)
            self._known[number] = known
            OPEN_TABLES.add((self._number, number), known)

    def memory(self) -> int:
        """About how many bytes the indexes and filters of open tables take.  O(open tables)."""
        tables = [self._tables.peek(number) for number in self._tables.in_order()]
        return sum([table.memory for table in tables if table is not None])

    def _make_room(self, table: Table) -> None:
        """Close the tables that were used least recently, if all would take too much memory with
        this one.

        Counted again each time: a sum that several threads keep without a lock would drift.
        """
        bound = self._options.table_cache_bytes
        if bound is None:
            return
        while len(self._tables) > 0 and self.memory() + table.memory > bound:
            number = None
            while number is None and len(self._tables) > 0:
                number = self._tables.evict_one()
            if number is not None:
                self._forget(number)

    def _forget(self, number: int) -> None:
        self._known.pop(number, None)
        OPEN_TABLES.discard((self._number, number))

    def _open(self, file: FileMetaData, fill_cache: bool) -> Table:
        handle = self._open_file(file)
        try:
            if self._options.read_only and self._directory.replaced():
                raise DirectoryReplacedError(self._directory.path)
            if handle.size != file.size:
                raise CorruptionError(
                    f"the table has {handle.size} bytes, the MANIFEST says {file.size}",
                    handle.path,
                    min(handle.size, file.size),
                )
            table = Table(self._options, handle)
            if not table.begins_with(file.smallest, fill_cache):
                reason = "the table begins with another key than the MANIFEST states"
                raise CorruptionError(reason, handle.path, 0)
            return table
        except BaseException:
            handle.close()
            raise

    def _open_file(self, file: FileMetaData) -> RandomAccessFile:
        directory = self._directory
        opens = directory.open_mapped if self._options.map_tables else directory.open
        try:
            return opens(table_name(file.number))
        except FileNotFoundError:
            pass
        try:
            return opens(old_table_name(file.number))
        except FileNotFoundError:
            pass
        path = f"{self._directory.path}/{table_name(file.number)}"
        if not self._options.read_only:
            raise CorruptionError("the table is missing", path)
        if self._directory.replaced():
            raise DirectoryReplacedError(self._directory.path)
        raise StaleViewError(path)
