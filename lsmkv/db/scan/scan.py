"""Reading a range of a view, from any place and either way."""

from __future__ import annotations

from collections.abc import Iterator as Iteration
from typing import TYPE_CHECKING, Final

from lsmkv.db.memtable import MemTable
from lsmkv.db.merge import (
    Cursor,
    InternalIterator,
    KeyOrder,
    ListsIterator,
    Position,
    merge_back,
    merge_forward,
)
from lsmkv.db.scan.level_iterator import (
    FIRST_CHUNK,
    BaseLevelIterator,
    CacheShare,
    LevelIterator,
    LevelReader,
    MemTableIterator,
    ReverseLevelIterator,
)
from lsmkv.db.scan.merging_iterator import MergingIterator, seen, seen_back
from lsmkv.db.store import Store, View
from lsmkv.format.batch import BytesLike, as_bytes
from lsmkv.format.keys import Entry, oldest_rank_hidden
from lsmkv.format.version_edit import FileMetaData
from lsmkv.stats import NUM_LEVELS
from lsmkv.table.block_iterator import NO_LIMIT, NUMBERED, SEEN

if TYPE_CHECKING:
    from mypy_extensions import i64


_CACHE_SHARE: Final = 4
"""A scan fills so great a part of the block cache: what is gone over once is of little use there,
and pushes out what Gets ask for.  One that is repeated finds that part, and adds to it."""
_LARGEST_SHARE: Final = 1 << 48  # a machine integer, however large the cache is said to be


class Bounds:
    """The range of an iterator, as two places between keys; None is no bound."""

    __slots__ = ("lower", "upper")

    def __init__(self, lower: Position | None, upper: Position | None) -> None:
        self.lower = lower
        self.upper = upper


def bounds_of(
    start: BytesLike | None,
    stop: BytesLike | None,
    include_start: bool,
    include_stop: bool,
    prefix: BytesLike | None,
    order: KeyOrder,
) -> Bounds:
    """The range for these arguments of ``iterator``.  A prefix goes with neither start nor stop.

    The keys of a prefix are found in the bytewise order and in its reverse; for a comparator of the
    user's they are taken to lie as in the bytewise order.
    """
    if prefix is not None:
        if start is not None or stop is not None:
            raise TypeError("give a prefix, or start and stop, not both")
        first = as_bytes(prefix, "prefix")
        end = after_prefix(first)
        if order.is_reverse:
            return Bounds(
                None if end is None else Position(end, after=True), Position(first, after=True)
            )
        return Bounds(
            Position(first, after=False), None if end is None else Position(end, after=False)
        )
    lower = None
    upper = None
    if start is not None:
        lower = Position(as_bytes(start, "start key"), after=not include_start)
    if stop is not None:
        upper = Position(as_bytes(stop, "stop key"), after=include_stop)
    return Bounds(lower, upper)


def after_prefix(prefix: bytes) -> bytes | None:
    """The smallest key that sorts after all keys with this prefix; None if there is none.

    >>> after_prefix(b"ab"), after_prefix(b"a\\xff"), after_prefix(b"\\xff")
    (b'ac', b'b', None)
    """
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


class Scan:
    """The entries of a view at a sequence, from any place and either way."""

    def __init__(
        self,
        store: Store,
        view: View,
        sequence: int,
        current: bool,
        bounds: Bounds,
        fill_cache: bool,
    ) -> None:
        """``current`` says that the view holds nothing newer than ``sequence`` in its tables."""
        self._store = store
        self._current = current
        self._view = view
        self._sequence = sequence
        self._hidden = oldest_rank_hidden(sequence)
        self._bounds = bounds
        self._fill_cache = fill_cache

    def forward(self, start: Position | None) -> InternalIterator:
        """Pairs after ``start`` and below the upper bound, a handful at a time."""
        upper = self._bounds.upper
        order = self._store.order
        if order.is_bytewise:
            runs: list[BaseLevelIterator] = [
                LevelIterator(reader, start, upper) for reader in self._runs()
            ]
            return self._overlay(runs, start, upper, False)
        cursors = [memtable.scan(start) for memtable in self._memtables()]
        cursors.append(self._cursor(start))
        sources: list[InternalIterator] = [
            ListsIterator(seen(cursor, self._hidden, order, upper)) for cursor in cursors
        ]
        return MergingIterator(sources, order)

    def backward(self, before: Position | None) -> InternalIterator:
        """Pairs before ``before`` and above the lower bound; the last first, each chunk rising."""
        lower = self._bounds.lower
        order = self._store.order
        if order.is_bytewise:
            runs: list[BaseLevelIterator] = [
                ReverseLevelIterator(reader, before, lower) for reader in self._runs()
            ]
            return self._overlay(runs, before, lower, True)
        cursors = [memtable.scan_back(before) for memtable in self._memtables()]
        cursors.append(self._cursor_back(before))
        sources: list[InternalIterator] = [
            ListsIterator(seen_back(cursor, self._hidden, order, lower)) for cursor in cursors
        ]
        return MergingIterator(sources, order, back=True)

    def _overlay(
        self,
        runs: list[BaseLevelIterator],
        edge: Position | None,
        bound: Position | None,
        back: bool,
    ) -> InternalIterator:
        """The memtables over those runs that are not empty; one that is alone needs no overlay."""
        runs = [run for run in runs if not run.is_empty]
        memtables = self._memtables()
        if not memtables and len(runs) == 1:
            runs[0].be_alone()
            return runs[0]
        order = self._store.order
        sources: list[InternalIterator] = [
            MemTableIterator(
                memtable,
                order,
                self._sequence,
                edge,
                bound,
                back,
                self._first_chunk(memtable.usage),
            )
            for memtable in memtables
        ]
        sources += runs
        return MergingIterator(sources, order, back)

    def _memtables(self) -> list[MemTable]:
        """Those that hold anything, the newer one first."""
        view = self._view
        found = [] if view.memtable.empty else [view.memtable]
        if view.immutable is not None:
            found.append(view.immutable)
        return found

    def _runs(self) -> list[LevelReader]:
        """Each file of level 0, and each deeper level; newest first, for bytewise keys."""
        levels = self._view.version.levels
        # Files that LevelDB's repair has put into level 0 may not be newest first.
        numbered = NUMBERED if len(levels[0]) > 1 else SEEN
        share = self._cache_share()
        runs = [self._run(0, [file], numbered, share) for file in levels[0]]
        for level in range(1, NUM_LEVELS):
            if levels[level]:
                runs.append(self._run(level, levels[level], SEEN, share))
        return runs

    def _cache_share(self) -> CacheShare | None:
        """What the runs of one way may put into the cache; None for nothing."""
        cache = self._store.options.block_cache
        if cache is None or not self._fill_cache:
            return None
        return CacheShare(min(cache.capacity // _CACHE_SHARE, _LARGEST_SHARE))

    def _run(
        self, level: i64, files: list[FileMetaData], form: i64, share: CacheShare | None
    ) -> LevelReader:
        store = self._store
        version = self._view.version
        size = version.sizes[level] if level > 0 else files[0].size
        return LevelReader(
            store.tables,
            version,
            level,
            files,
            NO_LIMIT if self._current else self._sequence,
            form,
            self._first_chunk(size),
            store.order,
            store.counters.reads[level],
            share,
        )

    def _first_chunk(self, size: int) -> int:
        """How many pairs to read first of a run of so many bytes: its share, and one at least."""
        total = self._view.version.size
        if size >= total:  # which may be 0, and a memtable's is counted otherwise
            return FIRST_CHUNK
        return max(1, (FIRST_CHUNK * size + total - 1) // total)

    def _cursor(self, start: Position | None) -> Iteration[list[Entry]]:
        """All tables' entries, whatever the order of keys."""
        version = self._view.version
        tables = self._store.tables
        reads = self._store.counters.reads
        cursors: list[Cursor] = [
            tables.scan(file, start, reads[0], self._fill_cache) for file in version.levels[0]
        ]
        for level in range(1, NUM_LEVELS):
            if version.levels[level]:
                cursors.append(
                    tables.scan_level(version, level, start, reads[level], self._fill_cache)
                )
        return merge_forward(cursors, self._store.order)

    def _cursor_back(self, before: Position | None) -> Iteration[list[Entry]]:
        version = self._view.version
        tables = self._store.tables
        reads = self._store.counters.reads
        cursors: list[Cursor] = [
            tables.scan_back(file, before, reads[0], self._fill_cache) for file in version.levels[0]
        ]
        for level in range(1, NUM_LEVELS):
            if version.levels[level]:
                cursors.append(
                    tables.scan_level_back(version, level, before, reads[level], self._fill_cache)
                )
        return merge_back(cursors, self._store.order)
