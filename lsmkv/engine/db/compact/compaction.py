"""Compaction: merges tables of a level, and those of the next level that they overlap, into new
tables of the next level.

The background work picks the tables under the store's lock (:mod:`lsmkv.engine.db.compact.picking`)
and merges them here without it; a worker process merges in the same way.  Nothing here commits: the
caller applies ``Compaction.edit`` to the version set.  A merge drops what no reader can still
see (:func:`~lsmkv.engine.db.tree.merge.live_entries`): versions that newer ones hide, and
deletions that have nothing left to hide on deeper levels.  (Source: LevelDB, ``db/db_impl.cc``,
``doc/impl.md``.)
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from lsmkv.engine.counters import NUM_LEVELS, ReadCounters
from lsmkv.engine.db.compact.picking import Compaction
from lsmkv.engine.db.tree.merge import live_entries, merge
from lsmkv.engine.db.tree.table_cache import TableCache
from lsmkv.engine.db.tree.table_output import TableOutput, remove_table
from lsmkv.engine.db.tree.version import max_grandparent_overlap
from lsmkv.engine.env.base import Directory
from lsmkv.engine.format.keys import Entry, InternalKeyComparator
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.options import Options

if TYPE_CHECKING:
    from mypy_extensions import i64

_READAHEAD = 64 * 1024  # other threads run only while a read waits: larger reads delay them
_CHUNK = 32 * 1024  # bytes of blocks that are merged at a time from each source


class CompactionJob:
    """Merges a compaction's inputs into new tables.

    A pure step from files to files: it reads immutable files, writes files that no version names
    yet, and commits nothing.
    """

    def __init__(
        self,
        compaction: Compaction,
        directory: Directory,
        tables: TableCache,
        options: Options,
        new_file_number: Callable[[], int],
        oldest_pinned: int,
    ) -> None:
        """``oldest_pinned`` is the oldest pinned sequence, or the last sequence if none is
        pinned."""
        self._compaction = compaction
        self._directory = directory
        self._tables = tables
        self._options = options
        self._new_file_number = new_file_number
        self._oldest_pinned = oldest_pinned
        comparator: InternalKeyComparator = compaction.version.comparator
        self._order = comparator.order
        self._compare = comparator.user_comparator.compare
        self._output: TableOutput | None = None
        self._outputs: list[FileMetaData] = []
        self._grandparent = 0
        self._overlap = 0
        self.reads = ReadCounters()

    def run(self, between: Callable[[], None]) -> list[FileMetaData]:
        """The finished tables, durable.  ``between`` is called every few blocks, and before each
        table but the first; if it raises, the outputs are removed."""
        try:
            for entries in merge(self._sources(), self._order):
                between()
                user_keys, tagged = live_entries(
                    entries, self._oldest_pinned, self._order, self._nothing_deeper
                )
                self._write(user_keys, tagged, between)
            self._finish_output()
            self._directory.sync()
        except BaseException:
            self._abandon()
            raise
        return self._outputs

    def _sources(self) -> list[Iterator[list[Entry]]]:
        """One source for each file of level 0, and one for all files of another level.

        Sources of newer versions come first.
        """
        compaction = self._compaction
        if compaction.level == 0:
            newest_first = sorted(compaction.inputs, key=lambda file: -file.number)
            sources = [self._entries([file]) for file in newest_first]
        else:
            sources = [self._entries(self._sorted(compaction.inputs))]
        if compaction.next_inputs:
            sources.append(self._entries(self._sorted(compaction.next_inputs)))
        return sources

    def _sorted(self, files: list[FileMetaData]) -> list[FileMetaData]:
        comparator = self._compaction.version.comparator
        return sorted(files, key=lambda file: comparator.sort_key(file.smallest))

    def _entries(self, files: list[FileMetaData]) -> Iterator[list[Entry]]:
        for file in files:
            yield from self._tables.entries(file, self.reads, _READAHEAD, _CHUNK)

    def _nothing_deeper(self, user_key: bytes) -> bool:
        """Return True if no level below that of the outputs can hold the key."""
        version = self._compaction.version
        return not any(
            version.overlaps(level, user_key, user_key)
            for level in range(self._compaction.output_level + 1, NUM_LEVELS)
        )

    def _write(
        self, user_keys: list[bytes], tagged: list[bytes], between: Callable[[], None]
    ) -> None:
        """Append entries.  A new table begins only between two user keys, so that all versions of a
        key are in one table.
        """
        limit = self._options.max_file_size
        at: i64 = 0
        while at < len(user_keys):
            crosses = self._crosses_grandparents(user_keys[at])
            if self._output is not None and (crosses or self._output.size >= limit):
                self._finish_output()
                between()
            if self._output is None:
                number = self._new_file_number()
                self._output = TableOutput(self._directory, number, self._options)
            at = self._output.add_entries(
                user_keys, tagged, at, self._grandparent_end(user_keys, at), limit
            )
            while at < len(user_keys) and self._compare(user_keys[at - 1], user_keys[at]) == 0:
                at = self._output.add_entries(user_keys, tagged, at, at + 1, limit)

    def _finish_output(self) -> None:
        if self._output is not None:
            self._outputs.append(self._output.finish())
            self._output = None

    def _abandon(self) -> None:
        if self._output is not None:
            self._output.abandon()
        for file in self._outputs:
            remove_table(self._directory, file.number)

    # Beyond the tour: an output that overlaps much of the level below ends early

    def _grandparent_end(self, user_keys: list[bytes], at: i64) -> i64:
        """Index of the first key after the end of the grandparent that the key at ``at`` lies
        in."""
        grandparents = self._compaction.grandparents
        if self._grandparent == len(grandparents):
            return len(user_keys)
        largest = grandparents[self._grandparent].largest[:-8]
        if self._compare(user_keys[-1], largest) <= 0:
            return len(user_keys)
        if self._order.is_bytewise:
            return bisect_right(user_keys, largest, at)
        return bisect_right(user_keys, self._order.of(largest), at, key=self._order.of)

    def _crosses_grandparents(self, user_key: bytes) -> bool:
        """True if an output that continued to this key would overlap too many grandparents."""
        grandparents = self._compaction.grandparents
        while (
            self._grandparent < len(grandparents)
            and self._compare(user_key, grandparents[self._grandparent].largest[:-8]) > 0
        ):
            if self._output is not None:
                self._overlap += grandparents[self._grandparent].size
            self._grandparent += 1
        if self._overlap > max_grandparent_overlap(self._options):
            self._overlap = 0
            return True
        return False
