"""Reading a store: one key, many keys, or a range, now or at a sequence that is pinned.

The handle and its snapshots call this, in any thread.  A read takes the store's view once and finds
everything in it.  It never needs the writers' lock.  A Get takes the store's lock at most for a
moment, in the memtable or to schedule a compaction; iterators and ``multi_get`` take it to pin a
sequence.  A plain Get returns the newest version; a Get at a snapshot is the same call with a
sequence bound.

Fast paths: a value that is read often is found in the row cache of the version, by one dict lookup.
A value whose block was in the block cache is put there: every one until the row cache is half full,
then one in four.  Keeping every one makes Gets in random order from a full row cache take a third
longer.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from lsmkv.engine.db.compact.background import Background
from lsmkv.engine.db.read.iterator import (
    Iterator,
    IteratorArguments,
    LimitedIterator,
    checked_limit,
)
from lsmkv.engine.db.read.raw_iterator import RawIterator
from lsmkv.engine.db.tree.read_samples import ReadSamples
from lsmkv.engine.db.tree.row_cache import RowCache
from lsmkv.engine.db.tree.store import ReadView, Store, View
from lsmkv.engine.db.tree.version import PLACE_BITS, Version
from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.filter.key_hashes import KeyHashes
from lsmkv.engine.format.keys import KIND_VALUE, MAX_SEQUENCE, TAG_SIZE, pack
from lsmkv.engine.table.reader import FROM_CACHE, FROM_FILE, RULED_OUT
from lsmkv.engine.util.arguments import BytesLike

if TYPE_CHECKING:
    from mypy_extensions import i64

_ROW_CACHE_SHARE: Final = 2
"""The row cache takes the block cache's capacity, divided by this."""

BLOCK_CACHED: Final = 1
"""A flag of a lookup: the block that answered was in the block cache."""
COMPACTION_DUE: Final = 2
"""A flag of a lookup: it used up the seeks that a file is allowed, so compact the file."""


def look_up(
    store: Store, version: Version, user_key: bytes, sequence: int, fill_cache: bool
) -> tuple[i64, i64, bytes | None]:
    """Look for the newest version of a key at or before ``sequence`` in a version's tables.

    Returns flags (:data:`BLOCK_CACHED`, :data:`COMPACTION_DUE`), the tag of the version that was
    found (0 for none), and its value (None for a deletion).  Files are asked newest first, and the
    filter of a file before any of its blocks is read.

    LevelDB charges a seek to the first table that a lookup asks, if it asks a second one, even if
    the filter of the first says no.  So lookups of absent keys can rewrite a database that is not
    written to.  Here a file is charged only if a block of it was read or decompressed, the key was
    not in it, and a block of a second file was also read or decompressed.
    """
    sort_key = store.order.of(user_key)
    hashes = KeyHashes(user_key)
    bound: i64 = sequence
    flags: i64 = 0
    missed: i64 = 0  # the place of the first file that had a block read and not the key
    blocks_read: i64 = 0
    place = version.next_candidate(0, sort_key, bound)
    while place > 0:
        counters = store.counters.levels[place >> PLACE_BITS]
        counters.tables_asked += 1
        table = store.tables.find(version.file_in(place), fill_cache)
        outcome, tag, value = table.get(user_key, sort_key, bound, hashes, counters, fill_cache)
        if outcome != RULED_OUT:
            if outcome != FROM_CACHE:
                blocks_read += 1
                if blocks_read == 2 and missed > 0 and version.charge_seek(missed):
                    flags = COMPACTION_DUE
            if value is not None:
                kind = tag & 0xFF
                if kind > KIND_VALUE:
                    key = pack(user_key, (tag >> 8) & MAX_SEQUENCE, kind)
                    raise CorruptionError(f"not an internal key: {key!r}", table.path)
                if outcome != FROM_FILE:
                    flags |= BLOCK_CACHED
                return flags, tag, value if kind == KIND_VALUE else None
            if table.has_filter:
                counters.filter_false_positives += 1
            if outcome != FROM_CACHE and missed == 0:
                missed = place
        place = version.next_candidate(place, sort_key, bound)
    return flags, 0, None


class Reader:
    """All reads of one store.  Any thread may call any method; none takes the writers' lock."""

    def __init__(self, store: Store, background: Background | None) -> None:
        """``background`` is notified of a due seek compaction; a read-only store has none."""
        self.store = store
        self._background = background
        cache = store.options.block_cache
        self._row_cache_limit = 0 if cache is None else cache.capacity // _ROW_CACHE_SHARE
        self._samples = None
        if background is not None and store.options.seek_compaction:
            self._samples = ReadSamples(partial(_schedule, store, background))

    def get(
        self, key: bytes, sequence: int, fill_cache: bool, view: View | None = None
    ) -> bytes | None:
        """The value of ``key`` at ``sequence``, in the newest view or in one that the caller took:
        memtable, immutable memtable, then the tables."""
        store = self.store
        listener = store.listener
        started = 0 if listener is None else listener.now()
        if view is None:
            view = store.open_view()
        store.counters.gets += 1
        tagged = in_memtables(view, key, sequence)
        if tagged is not None:
            store.counters.gets_from_memory += 1
            value = tagged[TAG_SIZE:] if tagged[0] == KIND_VALUE else None
        else:
            version = view.version
            value = None
            if sequence == MAX_SEQUENCE and version.row_cache.values:
                value = version.row_cache.values.get(key)
            if value is not None:
                store.counters.gets_from_rows += 1
            else:
                try:
                    flags, _tag, value = look_up(store, version, key, sequence, fill_cache)
                except OSError as error:
                    store.raise_failure(error)
                if flags & COMPACTION_DUE and self._background is not None:
                    _schedule(store, self._background)
                if flags & BLOCK_CACHED and fill_cache and sequence == MAX_SEQUENCE:
                    self._keep_row(version.row_cache, key, value)
        if value is not None:
            store.counters.gets_found += 1
        if listener is not None:
            listener.got(key, started, value)
        return value

    # Beyond the tour: the other reads

    def multi_get(self, keys: Iterable[bytes], fill_cache: bool) -> dict[bytes, bytes | None]:
        """The values of these keys, all at one moment, looked up in the order of the store."""
        read = self.read_view()
        try:
            return {
                key: self.get(key, read.sequence, fill_cache, read.view)
                for key in sorted(set(keys), key=self.store.order.of)
            }
        finally:
            read.release()

    def may_contain(self, key: bytes, view: View | None = None) -> bool:
        """False only if ``key`` is not there now, or in a view that the caller took; no data block
        is searched."""
        store = self.store
        if view is None:
            view = store.open_view()
        tagged = in_memtables(view, key, MAX_SEQUENCE)
        if tagged is not None:
            return tagged[0] == KIND_VALUE
        sort_key = store.order.of(key)
        hashes = KeyHashes(key)
        version = view.version
        try:
            # Compiled code drops a reference after its last use, and without the version a
            # compaction may remove the files.  So every candidate comes from the version.
            place = version.next_candidate(0, sort_key, MAX_SEQUENCE)
            while place > 0:
                counters = store.counters.levels[place >> PLACE_BITS]
                counters.tables_asked += 1
                table = store.tables.find(version.file_in(place))
                if table.may_contain(sort_key, hashes, counters):
                    return True
                place = version.next_candidate(place, sort_key, MAX_SEQUENCE)
        except OSError as error:
            store.raise_failure(error)
        return False

    def snapshot_view(self) -> tuple[Reader, ReadView]:
        """The view of a snapshot, and this reader, which alone may read it.  In a store whose
        writer may remove tables, they are opened now and held, unless there are many."""
        read = self.read_view()
        if self.store.may_lose_tables:
            files = [file for level in read.view.version.levels for file in level]
            try:
                read.held = self.store.tables.hold(files, True)
            except BaseException as error:
                self.store.give_up(read, error)
                raise
        return self, read

    def iterator(
        self,
        owner: object,
        arguments: IteratorArguments,
        sequence: int = MAX_SEQUENCE,
        fixed: View | None = None,
    ) -> Iterator[Any]:
        """An iterator over the store as it is now, or as it was at a ``sequence`` that the caller
        keeps pinned (with its view, in a store that is read-only).  It keeps ``owner`` from being
        collected."""
        read = self.read_view(sequence, fixed)
        try:
            # Any: compiled, a limit of another type would fail here, with mypyc's own words.
            limit = cast(dict[str, Any], arguments).get("limit")
            if limit is None:
                return Iterator(self.store, read, owner, arguments)
            return LimitedIterator(self.store, read, owner, arguments, checked_limit(limit))
        except BaseException as error:
            self.store.give_up(read, error)
            raise

    def raw_iterator(
        self,
        owner: object,
        prefix: BytesLike | None,
        fill_cache: bool,
        sequence: int = MAX_SEQUENCE,
        fixed: View | None = None,
    ) -> RawIterator:
        """As :meth:`iterator`, for a raw iterator."""
        read = self.read_view(sequence, fixed)
        try:
            return RawIterator(self.store, read, owner, prefix, fill_cache)
        except BaseException as error:
            self.store.give_up(read, error)
            raise

    def read_view(self, sequence: int = MAX_SEQUENCE, fixed: View | None = None) -> ReadView:
        """See :meth:`Store.read_view`; an iterator over it is sampled."""
        read = self.store.read_view(sequence, fixed)
        read.samples = self._samples
        return read

    # Fast paths: the row cache

    def _keep_row(self, row_cache: RowCache, key: bytes, value: bytes | None) -> None:
        """Put the value that a Get found into the row cache: every value until the cache is half
        full, then that of one Get in four, so that a key that is read often gets in soon."""
        if value is not None and (2 * row_cache.usage < self._row_cache_limit or self._is_fourth()):
            row_cache.keep(key, value, self._row_cache_limit)

    def _is_fourth(self) -> bool:
        """Return True if this Get's value should be kept: one Get in four.  The pattern shifts, so
        that all keys that are read in turn get in."""
        gets: i64 = self.store.counters.gets
        return (gets + (gets >> 3) + (gets >> 8)) & 3 == 0


def _schedule(store: Store, background: Background) -> None:
    """Have a seek compaction begin."""
    if store.options.seek_compaction and not store.lock.mine():
        with store.lock.nested, store.lock.guard:
            background.schedule()


def in_memtables(view: View, key: bytes, sequence: int) -> bytes | None:
    """The tagged value of the newest version at ``sequence`` that a memtable holds."""
    tagged = view.memtable.get(key, sequence)
    if tagged is None and view.immutable is not None:
        tagged = view.immutable.get(key, sequence)
    return tagged
