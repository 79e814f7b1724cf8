"""Open tables, and cursors over them."""

from __future__ import annotations

from collections.abc import Iterator

from lsmkv.db.merge import Position
from lsmkv.db.version import Version
from lsmkv.env.base import Directory
from lsmkv.errors import CorruptionError
from lsmkv.format.filenames import old_table_name, table_name
from lsmkv.format.keys import (
    KIND_VALUE,
    TAG_SIZE,
    Entry,
    after_versions,
    before_versions,
    to_entries,
)
from lsmkv.format.version_edit import FileMetaData
from lsmkv.options import Options
from lsmkv.stats import Counters, ReadCounters
from lsmkv.table.block import Row
from lsmkv.table.reader import Table
from lsmkv.util.second_chance_cache import SecondChanceCache

_OTHER_FILES = 10  # descriptors for logs, MANIFEST, LOCK, LOG: LevelDB's figure


class TableCache:
    """Keeps the tables used last open, at most ``max_open_files - 10`` of them.

    A table that is evicted while someone reads from it closes its file when the last reader lets
    go of it: files are never closed under a read.
    """

    def __init__(self, directory: Directory, options: Options, counters: Counters) -> None:
        """``options`` with the *internal* comparator and filter policy."""
        self._directory = directory
        self._options = options
        self._counters = counters
        self._tables: SecondChanceCache[int, Table] = SecondChanceCache(
            options.max_open_files - _OTHER_FILES
        )

    def find(self, file: FileMetaData) -> Table:
        """The table, opened if need be.

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
        """As :meth:`find`, without a trace: a table that is not open is open for the caller alone,
        and is not counted."""
        table = self._tables.get(file.number)
        return self._open(file) if table is None else table

    def share(self, other: TableCache, numbers: list[int]) -> None:
        """Take over the tables of these numbers that ``other`` has open; it keeps them too."""
        for number in numbers:
            table = other._tables.get(number)
            if table is not None:
                self._tables.put(number, table)

    def evict(self, number: int) -> None:
        """Let go of a table whose file is about to be removed, and of its blocks."""
        table = self._tables.get(number)
        if table is not None:
            self._tables.discard(number)
            table.forget_blocks()

    def clear(self) -> None:
        """Let go of all tables."""
        self._tables.clear()

    def scan(
        self,
        file: FileMetaData,
        start: Position | None,
        counters: ReadCounters,
        fill_cache: bool,
        readahead: int = 0,
    ) -> Iterator[list[Entry]]:
        """A cursor over one table, from a position on."""
        table = self.find(file)
        edge = None if start is None else edge_of(start)
        for keys, values in table.scan(edge, counters, fill_cache, readahead):
            yield _decode(table, keys, values)

    def rows(
        self, file: FileMetaData, counters: ReadCounters, readahead: int, enough: int
    ) -> Iterator[list[Row]]:
        """A cursor over all of a table, past the cache: about ``enough`` bytes a chunk."""
        table = self.find(file)
        for rows in table.rows(TAG_SIZE, counters, readahead, enough):
            for _, rest in rows:
                if rest[0] > KIND_VALUE:
                    raise CorruptionError(f"an internal key of kind {rest[0]}", table.path)
            yield rows

    def scan_back(
        self, file: FileMetaData, before: Position | None, counters: ReadCounters, fill_cache: bool
    ) -> Iterator[list[Entry]]:
        """A backward cursor over one table, from before a position."""
        table = self.find(file)
        edge = None if before is None else edge_of(before)
        for keys, values in table.scan_back(edge, counters, fill_cache):
            yield _decode(table, keys, values)

    def scan_level(
        self,
        version: Version,
        level: int,
        start: Position | None,
        counters: ReadCounters,
        fill_cache: bool,
    ) -> Iterator[list[Entry]]:
        """A cursor over a level >= 1: its files one after the other."""
        files = version.levels[level]
        first = 0 if start is None else version.file_at(level, edge_of(start))
        for at in range(first, len(files)):
            yield from self.scan(files[at], start if at == first else None, counters, fill_cache)

    def scan_level_back(
        self,
        version: Version,
        level: int,
        before: Position | None,
        counters: ReadCounters,
        fill_cache: bool,
    ) -> Iterator[list[Entry]]:
        """A backward cursor over a level >= 1."""
        files = version.levels[level]
        last = len(files) - 1 if before is None else version.file_at(level, edge_of(before))
        for at in range(min(last, len(files) - 1), -1, -1):
            yield from self.scan_back(
                files[at], before if at == last else None, counters, fill_cache
            )

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


def edge_of(position: Position) -> bytes:
    """The internal key at which a scan from a position begins."""
    if position.after:
        return after_versions(position.user_key)
    return before_versions(position.user_key)


def _decode(table: Table, keys: list[bytes], values: list[bytes]) -> list[Entry]:
    try:
        return to_entries(keys, values)
    except CorruptionError as error:
        raise error.located(table.path) from None
