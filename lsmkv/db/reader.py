"""Reading a store: one key, many keys, or a range, now or at a sequence that is held live."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lsmkv.db.background import Background
from lsmkv.db.lookup import COMPACTION_DUE, FROM_BLOCK_CACHE, look_up, may_contain
from lsmkv.db.pinned import Pin
from lsmkv.db.scan.iterator import Iterator, IteratorArguments
from lsmkv.db.scan.raw_iterator import RawIterator
from lsmkv.db.store import Store, View
from lsmkv.db.version import Version
from lsmkv.errors import CorruptionError
from lsmkv.format.batch import BytesLike
from lsmkv.format.keys import KIND_VALUE, MAX_SEQUENCE, TAG_SIZE, sequence_in
from lsmkv.table.reader import SharedBlocks

if TYPE_CHECKING:
    from mypy_extensions import i64

_ROWS_SHARE = 2
"""Single values are kept in memory up to this part of the block cache's capacity."""


class Reader:
    """All reads of one store.  Any thread may call any method; none takes the writers' lock."""

    def __init__(self, store: Store, background: Background | None) -> None:
        """``background`` is told when lookups make a compaction due; a read-only store has none."""
        self.store = store
        self._background = background
        cache = store.options.block_cache
        self._rows_limit = 0 if cache is None else cache.capacity // _ROWS_SHARE

    def get(
        self, key: bytes, sequence: int, fill_cache: bool, shared: SharedBlocks | None = None
    ) -> bytes | None:
        """The value of ``key`` at ``sequence``: memtable, immutable memtable, then the tables."""
        store = self.store
        view = store.open_view()
        store.counters.gets += 1
        row = _in_memory(view, key, sequence)
        if row is not None:
            store.counters.gets_from_memory += 1
            value = row[TAG_SIZE:] if row[0] == KIND_VALUE else None
        else:
            value = self._in_tables(view.version, key, sequence, fill_cache, shared)
        if value is not None:
            store.counters.gets_found += 1
        return value

    def _in_tables(
        self,
        version: Version,
        key: bytes,
        sequence: int,
        fill_cache: bool,
        shared: SharedBlocks | None,
    ) -> bytes | None:
        store = self.store
        newest = sequence == MAX_SEQUENCE
        rows = version.rows
        if newest and rows.values:
            row = rows.values.get(key)
            if row is not None:
                store.counters.gets_from_rows += 1
                return row
        try:
            if newest:
                flags, _tag, value = look_up(store, version, key, sequence, fill_cache)
            else:
                flags, value = self._at_snapshot(version, key, sequence, fill_cache, shared)
        except OSError as error:
            store.raise_failure(error)
        if flags != 0:
            if flags & COMPACTION_DUE and self._background is not None:
                self._schedule(self._background)
            # Where there is room each is kept; and a key that is asked for often is seen soon by
            # every fourth look.
            if (
                flags & FROM_BLOCK_CACHE
                and newest
                and fill_cache
                and value is not None
                and (2 * rows.usage < self._rows_limit or self._is_fourth())
            ):
                rows.keep(key, value, self._rows_limit)
        return value

    def _at_snapshot(
        self,
        version: Version,
        key: bytes,
        sequence: int,
        fill_cache: bool,
        shared: SharedBlocks | None,
    ) -> tuple[i64, bytes | None]:
        """Flags and value of a look for what was seen at ``sequence``.

        The newest version is found in half the time, and mostly is the one.  Where it is not, that
        look was in vain: it is counted too, but took no read that the next one would not have
        taken, if the block cache has room.  Many keys (``shared``) are looked up once.
        """
        store = self.store
        flags: i64 = 0
        if shared is None and fill_cache and self._rows_limit > 0 and store.order.is_bytewise:
            try:
                flags, tag, value = look_up(store, version, key, MAX_SEQUENCE, True)
                if (tag >> 8) & MAX_SEQUENCE <= sequence:
                    return flags, value
            except (CorruptionError, OSError):
                pass  # of a block, maybe, that need not be read for what was seen
        again, _tag, value = look_up(store, version, key, sequence, fill_cache, shared)
        return flags | again, value

    def _is_fourth(self) -> bool:
        """One Get in four, but not the same ones of keys that are asked for in turn."""
        gets: i64 = self.store.counters.gets
        return (gets + (gets >> 3) + (gets >> 8)) & 3 == 0

    def multi_get(self, keys: Iterable[bytes], fill_cache: bool) -> dict[bytes, bytes | None]:
        """The values of these keys, all at one moment, looked up in the order of the store."""
        store = self.store
        _, pin = store.pin()
        shared: SharedBlocks = {}
        try:
            return {
                key: self.get(key, pin.sequence, fill_cache, shared)
                for key in sorted(set(keys), key=store.order.of)
            }
        finally:
            pin.release()

    def may_contain(self, key: bytes) -> bool:
        """False only if ``key`` is not there now; no data block is read."""
        view = self.store.open_view()
        row = _in_memory(view, key, MAX_SEQUENCE)
        if row is not None:
            return row[0] == KIND_VALUE
        try:
            return may_contain(self.store, view.version, key)
        except OSError as error:
            self.store.raise_failure(error)

    def newest_sequence(self, key: bytes) -> int:
        """The sequence of the newest write to ``key`` that is still to be found; 0 for none."""
        view = self.store.open_view()
        row = _in_memory(view, key, MAX_SEQUENCE)
        if row is not None:
            return sequence_in(row)
        try:
            _, tag, _ = look_up(self.store, view.version, key, MAX_SEQUENCE, True)
        except OSError as error:
            self.store.raise_failure(error)
        return (tag >> 8) & MAX_SEQUENCE

    def iterator(self, owner: object, arguments: IteratorArguments) -> Iterator:
        """An iterator over the store as it is now.  It keeps ``owner`` from being collected."""
        view, pin = self.store.pin()
        return self._iterator(view, pin, True, owner, arguments)

    def iterator_at(self, sequence: int, owner: object, arguments: IteratorArguments) -> Iterator:
        """An iterator over the store as it was at ``sequence``, which the caller holds live."""
        view, pin = self.store.pin_at(sequence)
        return self._iterator(view, pin, False, owner, arguments)

    def _iterator(
        self,
        view: View,
        pin: Pin,
        current: bool,
        owner: object,
        arguments: IteratorArguments,
    ) -> Iterator:
        try:
            return Iterator(self.store, view, pin, current, owner, arguments)
        except BaseException:
            pin.release()  # at once: the traceback may keep it for long
            raise

    def raw_iterator(
        self, owner: object, prefix: BytesLike | None, fill_cache: bool
    ) -> RawIterator:
        """A raw iterator over the store as it is now."""
        view, pin = self.store.pin()
        return self._raw_iterator(view, pin, True, owner, prefix, fill_cache)

    def raw_iterator_at(
        self, sequence: int, owner: object, prefix: BytesLike | None, fill_cache: bool
    ) -> RawIterator:
        """A raw iterator over the store as it was at ``sequence``, which the caller holds live."""
        view, pin = self.store.pin_at(sequence)
        return self._raw_iterator(view, pin, False, owner, prefix, fill_cache)

    def _raw_iterator(
        self,
        view: View,
        pin: Pin,
        current: bool,
        owner: object,
        prefix: BytesLike | None,
        fill_cache: bool,
    ) -> RawIterator:
        try:
            return RawIterator(self.store, view, pin, current, owner, prefix, fill_cache)
        except BaseException:
            pin.release()  # at once: the traceback may keep it for long
            raise

    def _schedule(self, background: Background) -> None:
        if self.store.options.seek_compaction:
            with self.store.lock:
                background.schedule()


def _in_memory(view: View, key: bytes, sequence: int) -> bytes | None:
    """The row of the newest version at ``sequence`` that a memtable holds."""
    row = view.memtable.get(key, sequence)
    if row is None and view.immutable is not None:
        row = view.immutable.get(key, sequence)
    return row
