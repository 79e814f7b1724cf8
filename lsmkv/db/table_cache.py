"""The table cache: open tables, by file number.

Readers, compactions and ``verify`` ask it for tables, in any thread and without a lock.
"""

from __future__ import annotations

from collections.abc import Iterator

from lsmkv.counters import Counters, ReadCounters
from lsmkv.env.base import Directory
from lsmkv.errors import CorruptionError
from lsmkv.format.filenames import old_table_name, table_name
from lsmkv.format.keys import KIND_VALUE, Entry
from lsmkv.format.version_edit import FileMetaData
from lsmkv.options import Options
from lsmkv.table.reader import Table
from lsmkv.util.second_chance_cache import SecondChanceCache

_OTHER_FILES = 10  # descriptors for logs, MANIFEST, LOCK, LOG: LevelDB's figure


class TableCache:
    """Keeps the tables used last open, at most ``max_open_files - 10`` of them.

    A table that is evicted during a read closes its file when the last reader drops it: a file is
    never closed under a read.
    """

    def __init__(self, directory: Directory, options: Options, counters: Counters) -> None:
        self._directory = directory
        self._options = options
        self._counters = counters
        self._tables: SecondChanceCache[int, Table] = SecondChanceCache(
            options.max_open_files - _OTHER_FILES
        )

    def find(self, file: FileMetaData) -> Table:
        """The table, opened if it is not open.

        :class:`CorruptionError` if it is missing, damaged, or neither of the size nor of the first
        key that the MANIFEST states.
        """
        opened = file.opened
        if opened is not None:
            held: Table | None = opened.take()
            if held is not None:
                return held
        table = self._tables.get(file.number)
        if table is None:
            table = self._open(file)
            self._tables.put(file.number, table)
            self._counters.tables_opened += 1
            self._counters.metadata_reads += table.metadata_reads
            self._counters.metadata_bytes_read += table.metadata_bytes
        file.opened = self._tables.entry(file.number)
        return table

    def peek(self, file: FileMetaData) -> Table:
        """As :meth:`find`, but changes neither the cache nor the counters: a table that is not open
        is opened for the caller alone."""
        table = self._tables.get(file.number)
        return self._open(file) if table is None else table

    def share(self, other: TableCache, numbers: list[int]) -> None:
        """Add the tables of these numbers that ``other`` has open; it keeps them too."""
        for number in numbers:
            table = other._tables.get(number)
            if table is not None:
                self._tables.put(number, table)

    def evict(self, number: int) -> None:
        """Drop a table whose file is about to be removed, and its blocks from the block cache."""
        table = self._tables.get(number)
        if table is not None:
            self._tables.discard(number)
            table.forget_blocks()

    def clear(self) -> None:
        """Drop all tables."""
        self._tables.clear()

    def entries(
        self, file: FileMetaData, counters: ReadCounters, readahead: int, enough: int
    ) -> Iterator[list[Entry]]:
        """All entries of a table, about ``enough`` bytes at a time.  The block cache is neither
        read nor filled."""
        table = self.find(file)
        for entries in table.entries(counters, readahead, enough):
            for _, tagged in entries:
                if tagged[0] > KIND_VALUE:
                    raise CorruptionError(f"an internal key of kind {tagged[0]}", table.path)
            yield entries

    def _open(self, file: FileMetaData) -> Table:
        try:
            handle = self._directory.open(table_name(file.number))
        except FileNotFoundError:
            try:
                handle = self._directory.open(old_table_name(file.number))
            except FileNotFoundError:
                path = f"{self._directory.path}/{table_name(file.number)}"
                raise CorruptionError("the table is missing", path) from None
        try:
            if handle.size != file.size:
                raise CorruptionError(
                    f"the table has {handle.size} bytes, the MANIFEST says {file.size}",
                    handle.path,
                    min(handle.size, file.size),
                )
            table = Table(self._options, handle)
            if not table.begins_with(file.smallest):
                reason = "the table begins with another key than the MANIFEST states"
                raise CorruptionError(reason, handle.path, 0)
            return table
        except BaseException:
            handle.close()
            raise
