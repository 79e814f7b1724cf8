"""A scan: the iterators that read a range of a view, from any position in either direction.

The public iterators call it.  It makes an iterator for each memtable and level that may hold a part
of the range, and merges these iterators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from lsmkv.engine.db.read.internal_iterator import InternalIterator
from lsmkv.engine.db.read.level_iterator import (
    FIRST_CHUNK,
    BaseLevelIterator,
    LevelIterator,
    ReverseLevelIterator,
)
from lsmkv.engine.db.read.level_reader import CacheShare, LevelReader
from lsmkv.engine.db.read.memtable_iterator import MemTableIterator
from lsmkv.engine.db.read.merging_iterator import MergingIterator
from lsmkv.engine.db.read.own_writes import OwnWrites
from lsmkv.engine.db.read.seek import ReportedSeek
from lsmkv.engine.db.read.stretch import Stretch
from lsmkv.engine.db.read.watched_scan import Parts, WatchedScan
from lsmkv.engine.db.tree.memtable import MemTable
from lsmkv.engine.db.tree.store import ReadView, Store
from lsmkv.engine.db.tree.version import Version
from lsmkv.engine.filter.hash64 import xxh3_hash
from lsmkv.engine.filter.prefix import shared_prefix
from lsmkv.engine.format.key_order import KeyOrder, Position
from lsmkv.engine.format.keys import MAX_SEQUENCE, TAG_SIZE
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.table.block_iterator import WITH_DELETIONS, WITH_SEQUENCES
from lsmkv.engine.util.arguments import BytesLike, as_bytes
from lsmkv.engine.util.comparator import after_prefix
from lsmkv.engine.util.text import shortened

if TYPE_CHECKING:
    from mypy_extensions import i64


_CACHE_SHARE: Final = 4
"""A scan fills at most this part of the block cache: a block that is read once is of little use
there and evicts one that Gets use.  A repeated scan finds that part, and adds to it."""
_LARGEST_SHARE: Final = 1 << 48  # fits a machine integer, whatever capacity the cache has


@mypyc_attr(free_list_len=1)
class Bounds:
    """The range of an iterator, as two positions between keys; None is no bound."""

    __slots__ = ("lower", "upper")

    def __init__(self, lower: Position | None, upper: Position | None) -> None:
        self.lower = lower
        self.upper = upper

    def __str__(self) -> str:
        """Such as ``b'a' <= key < b'b'``."""
        lower, upper = self.lower, self.upper
        if lower is None and upper is None:
            return "all keys"
        text = "key"
        if lower is not None:
            text = f"{shortened(lower.user_key)} {'<' if lower.after else '<='} {text}"
        if upper is not None:
            text = f"{text} {'<=' if upper.after else '<'} {shortened(upper.user_key)}"
        return text


def bounds_of(
    start: BytesLike | None,
    stop: BytesLike | None,
    include_start: bool,
    include_stop: bool,
    prefix: BytesLike | None,
    order: KeyOrder,
) -> Bounds:
    """The range for these arguments of ``iterator``: with a prefix, the part of it that has that.

    The keys of a prefix are found in the bytewise order and in its reverse; a comparator of the
    user is taken to order them as the bytewise order does.
    """
    lower = None
    upper = None
    if prefix is not None:
        first = as_bytes(prefix, "prefix")
        end = after_prefix(first)
        if order.is_reverse:
            lower = None if end is None else Position(end, after=True)
            upper = Position(first, after=True)
        else:
            lower = Position(first, after=False)
            upper = None if end is None else Position(end, after=False)
    if start is not None:
        given = Position(as_bytes(start, "start key"), after=not include_start)
        if lower is None or order.is_before(lower, given):
            lower = given
    if stop is not None:
        given = Position(as_bytes(stop, "stop key"), after=include_stop)
        if upper is None or order.is_before(given, upper):
            upper = given
    return Bounds(lower, upper)


def shared_prefix_hash(store: Store, bounds: Bounds) -> i64:
    """The hash of the prefix that all keys of the range have; -1 if they have none in common, or if
    the store has no prefix filters."""
    extractor = store.options.prefix_extractor
    lower = bounds.lower
    upper = bounds.upper
    if extractor is None or lower is None or upper is None:
        return -1
    prefix = shared_prefix(extractor, lower.user_key, upper.user_key, upper.after)
    return -1 if prefix is None else xxh3_hash(prefix)


def files_in(
    version: Version, order: KeyOrder, bounds: Bounds, most: int
) -> list[tuple[int, FileMetaData]]:
    """The files that may hold a part of the range, each with its level, or more than ``most``."""
    lower, upper = bounds.lower, bounds.upper
    found: list[tuple[int, FileMetaData]] = []
    for level, files in enumerate(version.levels):
        at: i64 = 0
        if level > 0 and lower is not None:
            at = version.file_from(level, order.of(lower.user_key), MAX_SEQUENCE)
        while at < len(files) and len(found) <= most:
            file = files[at]
            at += 1
            if upper is not None and order.is_at_or_after(file.smallest[:-TAG_SIZE], upper):
                if level > 0:
                    break
            elif lower is None or order.is_at_or_after(file.largest[:-TAG_SIZE], lower):
                found.append((level, file))
    return found


class Scan(Parts):
    """The pairs of a range that are visible to a reader, from any position in either direction."""

    def __init__(self, store: Store, read: ReadView, bounds: Bounds, fill_cache: bool) -> None:
        self._store = store
        self._read = read
        self._bounds = bounds
        self._fill_cache = fill_cache
        self._prefix_hash = shared_prefix_hash(store, bounds)
        self._stretch: Stretch | None = None
        if read.ranges is not None:
            self._stretch = Stretch(store, read.ranges, read.sequence)
        self._share: CacheShare | None = None
        view = read.view
        # Where a memtable has a part of the range, its pairs alternate with those of the tables.
        mixed = view.version.size > 0 and not (view.memtable.empty and view.immutable is None)
        self._first: i64 = 2 * FIRST_CHUNK if mixed else FIRST_CHUNK
        self.own_writes: OwnWrites | None = None
        """The writes of the transaction that this scan belongs to, newer than all of the store."""

    def forward(self, start: Position | None) -> InternalIterator:
        """The pairs after ``start`` and below the upper bound, a chunk at a time."""
        listener = self._store.listener
        started = 0 if listener is None else listener.now()
        source = self._watched(start, self._bounds.upper, False)
        if listener is not None:
            return ReportedSeek(source, start, started, False, listener)
        return source

    def backward(self, before: Position | None) -> InternalIterator:
        """The pairs before ``before`` and above the lower bound: the last chunk first, each in
        rising order."""
        listener = self._store.listener
        started = 0 if listener is None else listener.now()
        source = self._watched(before, self._bounds.lower, True)
        if listener is not None:
            return ReportedSeek(source, before, started, True, listener)
        return source

    def hold_tables(self) -> None:
        """Open the tables that may hold a part of the range, and keep them open for this scan,
        unless they are many.

        Raises the errors of opening them.
        """
        tables = self._store.tables
        version = self._read.view.version
        files = files_in(version, self._store.order, self._bounds, tables.most_held())
        self._read.held = tables.hold([file for _, file in files], self._fill_cache)

    def _watched(
        self, edge: Position | None, bound: Position | None, back: bool
    ) -> InternalIterator:
        """The pairs between an edge and a bound, except the empty ranges between them."""
        self._share = self._cache_share()
        stretch = self._stretch
        if stretch is None or self.own_writes is not None:
            return self.part(edge, bound, back, None)
        return WatchedScan(self, self._store.order, stretch, edge, bound, back)

    def part(
        self,
        edge: Position | None,
        bound: Position | None,
        back: bool,
        stretch: Stretch | None,
    ) -> InternalIterator:
        """The memtables and the levels that are not empty; a single source needs no merging."""
        levels: list[BaseLevelIterator] = []
        for reader in self._level_readers():
            level: BaseLevelIterator
            if back:
                level = ReverseLevelIterator(reader, edge, bound)
            else:
                level = LevelIterator(reader, edge, bound)
            if not level.is_empty:
                levels.append(level)
        memtables = self._memtables()
        order = self._store.order
        sources: list[InternalIterator] = [
            MemTableIterator(
                memtable,
                order,
                self._read.sequence,
                edge,
                bound,
                back,
                self._first_chunk(memtable.usage),
            )
            for memtable in memtables
        ]
        sources += levels
        if self.own_writes is not None:
            sources.insert(0, self.own_writes.source(edge, bound, back, FIRST_CHUNK))
        for source in sources:
            source.stretch = stretch
        if len(sources) == 1:
            sources[0].read_pairs()
            return sources[0]
        merging = MergingIterator(sources, order, back)
        merging.stretch = stretch
        return merging

    def _memtables(self) -> list[MemTable]:
        """The memtables that are not empty, the newer one first."""
        view = self._read.view
        found = [] if view.memtable.empty else [view.memtable]
        if view.immutable is not None:
            found.append(view.immutable)
        return found

    def _level_readers(self) -> list[LevelReader]:
        """A reader for each file of level 0 and each deeper level that is not empty; newest
        first."""
        version = self._read.view.version
        levels = version.levels
        # Files that LevelDB's repair has put into level 0 may not be newest first.
        form = WITH_SEQUENCES if len(levels[0]) > 1 else WITH_DELETIONS
        share = self._share
        readers = [self._level_reader(0, [file], file.size, form, share) for file in levels[0]]
        for level in range(1, len(levels)):
            if levels[level]:
                readers.append(
                    self._level_reader(
                        level, levels[level], version.sizes[level], WITH_DELETIONS, share
                    )
                )
        return readers

    def _cache_share(self) -> CacheShare | None:
        """The bytes that one direction of the scan may put into the cache; None for nothing."""
        cache = self._store.options.block_cache
        if cache is None or not self._fill_cache:
            return None
        return CacheShare(min(cache.capacity // _CACHE_SHARE, _LARGEST_SHARE))

    def _level_reader(
        self, level: i64, files: list[FileMetaData], size: int, form: i64, share: CacheShare | None
    ) -> LevelReader:
        return LevelReader(
            self._store,
            self._read,
            level,
            files,
            form,
            self._first_chunk(size),
            share,
            self._prefix_hash,
        )

    def _first_chunk(self, size: int) -> int:
        """Return the number of pairs to read first from a level of ``size`` bytes: its share, at
        least one."""
        total = self._read.view.version.size
        if size >= total:  # which may be 0; a memtable counts its bytes in another way
            return self._first
        return max(1, (self._first * size + total - 1) // total)
