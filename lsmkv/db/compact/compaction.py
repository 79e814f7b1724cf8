"""Compaction: which files to merge (a pure function of the version), and merging them.

The background work picks under the store's lock and merges without it; a worker process merges in
the same way.  Nothing here commits: the caller applies :meth:`Compaction.edit` to the version set.
(Source: LevelDB, ``db/version_set.cc``, ``db/db_impl.cc``; ``doc/impl.md``.)
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from lsmkv.counters import NUM_LEVELS, ReadCounters
from lsmkv.db.tree.merge import live_entries, merge
from lsmkv.db.tree.table_cache import TableCache
from lsmkv.db.tree.table_output import TableOutput, remove_table
from lsmkv.db.tree.version import Version, max_grandparent_overlap, total_size
from lsmkv.env.base import Directory
from lsmkv.format.keys import Entry, InternalKeyComparator
from lsmkv.format.version_edit import FileMetaData, VersionEdit
from lsmkv.options import Options

if TYPE_CHECKING:
    from mypy_extensions import i64

_EXPANDED_LIMIT = 25
"""Widening the inputs stops at this many times ``max_file_size``."""

_READAHEAD = 64 * 1024  # other threads run only while a read waits: larger reads delay them
_CHUNK = 32 * 1024  # bytes of blocks that are merged at a time from each source


class Compaction:
    """Files of ``level`` and of the next level; the merged outputs replace them on the next
    level.  A rewrite has files of one level alone, and the outputs stay there."""

    def __init__(
        self,
        version: Version,
        level: int,
        inputs: list[FileMetaData],
        next_inputs: list[FileMetaData],
        grandparents: list[FileMetaData],
        is_rewrite: bool = False,
    ) -> None:
        self.version = version
        self.level = level
        self.is_rewrite = is_rewrite
        """Whether the outputs take the place of the inputs, on their level."""
        self.output_level = level if is_rewrite else level + 1
        self.inputs = inputs
        self.next_inputs = next_inputs
        self.grandparents = grandparents
        """The files of the level below the outputs that these will overlap."""
        self.by_seeks = False

    @property
    def input_size(self) -> int:
        """Bytes of all files that are merged."""
        return total_size(self.inputs) + total_size(self.next_inputs)

    def spans(self, begin: bytes, end: bytes) -> bool:
        """Whether an output may overlap the user keys [begin, end]."""
        compare = self.version.comparator.user_comparator.compare
        files = self.inputs + self.next_inputs
        return any(compare(file.smallest[:-8], end) <= 0 for file in files) and any(
            compare(begin, file.largest[:-8]) <= 0 for file in files
        )

    def is_trivial_move(self, options: Options) -> bool:
        """Whether one file can change its level as it is.

        A file that overlaps many grandparents is merged instead: moved, it would make the next
        compaction an expensive one.
        """
        return (
            not self.is_rewrite
            and len(self.inputs) == 1
            and not self.next_inputs
            and total_size(self.grandparents) <= max_grandparent_overlap(options)
        )

    def edit(self, outputs: list[FileMetaData]) -> VersionEdit:
        """The version edit: inputs deleted, outputs added, and where the next compaction begins."""
        comparator = self.version.comparator
        edit = VersionEdit()
        for file in self.inputs:
            edit.delete_file(self.level, file.number)
        for file in self.next_inputs:
            edit.delete_file(self.output_level, file.number)
        for file in outputs:
            edit.add_file(self.output_level, file)
        if self.is_rewrite:
            return edit  # the next compaction begins where it would have begun
        largest = max((file.largest for file in self.inputs), key=comparator.sort_key)
        edit.compact_pointers.append((self.level, largest))
        return edit


def pick_compaction(
    version: Version, compact_pointers: list[bytes | None], options: Options
) -> Compaction | None:
    """The compaction that the version needs most, or None.

    A level over its limit comes first, then a file with too many seeks.
    """
    if version.compaction_score >= 1:
        level = version.compaction_level
        first = _next_in_turn(version, level, compact_pointers[level])
    elif version.file_to_compact is not None and options.seek_compaction:
        level, first = version.file_to_compact
    else:
        return None
    inputs = [first]
    if level == 0:
        # All overlapping files of level 0: otherwise an older version of a key could stay above a
        # newer one.
        inputs = version.overlapping(0, first.smallest[:-8], first.largest[:-8])
    compaction = _complete(version, level, inputs, options)
    compaction.by_seeks = version.compaction_score < 1
    return compaction


def compaction_of_range(
    version: Version, level: int, begin: bytes | None, end: bytes | None, options: Options
) -> tuple[Compaction, bytes | None] | None:
    """Move what ``level`` holds of the user keys [begin, end] down by one level.

    Returns the compaction, and where the next one has to begin if this one does not take
    everything (a wide range goes in steps); None if the level holds nothing of the range.
    """
    inputs = version.overlapping(level, begin, end)
    if not inputs:
        return None
    proceed: bytes | None = None
    if level > 0:  # files of level 0 overlap: all or none
        size = 0
        for at, file in enumerate(inputs):
            size += file.size
            if size >= options.max_file_size and at + 1 < len(inputs):
                inputs = inputs[: at + 1]
                proceed = file.largest[:-8]
                break
    return _complete(version, level, inputs, options), proceed


def rewrite_of_level(
    version: Version, level: int, after: bytes | None, before: int, options: Options
) -> tuple[Compaction, bytes] | None:
    """Write some tables of a level >= 1 anew, where they are: neighbours with numbers below
    ``before`` that begin after the user key ``after``.

    Returns the compaction, and the user key after which the next one begins; None if the level
    holds no such table.  All versions that the level holds of a user key stay together.
    """
    compare = version.comparator.user_comparator.compare
    inputs: list[FileMetaData] = []
    for file in version.levels[level]:
        if after is not None and compare(file.smallest[:-8], after) <= 0:
            continue
        if file.number < before:
            inputs.append(file)
            if total_size(inputs) >= options.max_file_size:
                break
        elif inputs:
            break  # an output must not reach over it
    if not inputs:
        return None
    inputs = _with_boundary(version, level, inputs)
    below = _overlapping_all(version, level + 1, inputs) if level + 1 < NUM_LEVELS else []
    compaction = Compaction(version, level, inputs, [], below, is_rewrite=True)
    return compaction, inputs[-1].largest[:-8]


def _next_in_turn(version: Version, level: int, pointer: bytes | None) -> FileMetaData:
    """The level's first file beyond the pointer, or its first file if there is none beyond."""
    comparator = version.comparator
    files = sorted(version.levels[level], key=lambda file: comparator.sort_key(file.smallest))
    if pointer is not None:
        for file in files:
            if comparator.compare(file.largest, pointer) > 0:
                return file
    return files[0]


def _complete(
    version: Version, level: int, inputs: list[FileMetaData], options: Options
) -> Compaction:
    """The compaction of these inputs, with the files that must or may join them."""
    inputs = _with_boundary(version, level, inputs)
    next_inputs = _overlapping_all(version, level + 1, inputs)
    if next_inputs:
        # Add files of this level if that adds none of the next level.
        wider = _with_boundary(
            version, level, _overlapping_all(version, level, inputs + next_inputs)
        )
        size = total_size(wider) + total_size(next_inputs)
        if len(wider) > len(inputs) and size < _EXPANDED_LIMIT * options.max_file_size:
            wider_next = _overlapping_all(version, level + 1, wider)
            if len(wider_next) == len(next_inputs):
                inputs, next_inputs = wider, wider_next
    grandparents: list[FileMetaData] = []
    if level + 2 < NUM_LEVELS:
        grandparents = _overlapping_all(version, level + 2, inputs + next_inputs)
    return Compaction(version, level, inputs, next_inputs, grandparents)


def _overlapping_all(version: Version, level: int, files: list[FileMetaData]) -> list[FileMetaData]:
    """The level's files that overlap the range from the first to the last key of ``files``."""
    comparator = version.comparator
    smallest = min((file.smallest for file in files), key=comparator.sort_key)
    largest = max((file.largest for file in files), key=comparator.sort_key)
    found = version.overlapping(level, smallest[:-8], largest[:-8])
    return _with_boundary(version, level, found) if found else found


def _with_boundary(version: Version, level: int, files: list[FileMetaData]) -> list[FileMetaData]:
    """``files``, and every file of the level that continues with the last user key of one of them.

    Versions of one user key may be spread over two files of a level.  If only the newer ones moved
    down, a lookup would meet the older ones first.
    """
    if level == 0 or not files:
        return files
    comparator = version.comparator
    compare = comparator.user_comparator.compare
    chosen = {file.number for file in files}
    ordered = version.levels[level]
    result = list(files)
    for at in range(len(ordered) - 1):
        here, follower = ordered[at], ordered[at + 1]
        if (
            here.number in chosen
            and follower.number not in chosen
            and compare(here.largest[:-8], follower.smallest[:-8]) == 0
        ):
            chosen.add(follower.number)
            result.append(follower)
    return result


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
        """Whether no level below that of the outputs can hold the key."""
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
        """Whether an output that continued to this key would overlap too many grandparents."""
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

    def _finish_output(self) -> None:
        if self._output is not None:
            self._outputs.append(self._output.finish())
            self._output = None

    def _abandon(self) -> None:
        if self._output is not None:
            self._output.abandon()
        for file in self._outputs:
            remove_table(self._directory, file.number)
