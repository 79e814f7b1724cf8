"""The records of a server's store, with the writes of one tick of the loop on top of them.

All commands of a tick share one write to the log.  Until then their writes are kept here, and every
read looks here first.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from sortedcontainers import SortedList

from lsmkv.engine.db.db import DB
from lsmkv.engine.db.handles.snapshot import Snapshot
from lsmkv.engine.format.batch import WriteBatch
from lsmkv.engine.options import L0_SLOWDOWN_WRITES_TRIGGER
from lsmkv.server.encoding import successor

_MISSING = object()
_CHUNK = 128
_BETWEEN = 256
"""Records between two looks at the time, a power of 2."""
_REST = 0.0001
"""Seconds in which a thread lets others run."""


_T = TypeVar("_T")


class TooLong(Exception):
    """A command has run for longer than it may."""


class Records:
    """A store plus writes that are not yet in it.

    Call order: ``((get put delete scan)* (keep | undo))* commit``.  Between two calls of ``keep``
    or ``undo`` there is one command, whose writes are kept all or not at all.
    """

    def __init__(self, db: DB) -> None:
        self.db = db
        self._view: DB | Snapshot = db
        """The store, or a view of it, that reads use."""
        self.pending: dict[bytes, bytes | None] = {}
        """The newest value of each key that was written; None for a deleted key."""
        self._undo: list[tuple[bytes, object]] = []
        """The key of every write of the command, with its pending value before that."""
        self._order: SortedList | None = None
        """The pending keys in order, once a scan has needed them."""
        self.deadline = math.inf
        """The time after which reading raises :class:`TooLong`, by ``time.perf_counter``."""
        self.rests = False
        """True if reading lets other threads run from time to time."""
        self._reads = 0
        self.touched = False
        """True if anything was written, or any pending value read, since this was set to False."""

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, or None.  Costs a Get."""
        self._count_read()
        if self.pending:
            value = self.pending.get(key, _MISSING)
            if value is not _MISSING:
                self.touched = True
                return value  # type: ignore[return-value]
        return self._view.get(key)

    def multi_get(self, keys: list[bytes]) -> list[bytes | None]:
        """The values of several keys, in the same order.  Costs a Get each."""
        if not self.pending and self._view is self.db and len(keys) < _BETWEEN:
            return self.db.multi_get(keys)
        return [self.get(key) for key in keys]

    def put(self, key: bytes, value: bytes | None) -> None:
        """Set a key; None deletes it.  O(1), or O(log n) once the keys are sorted."""
        self.touched = True
        pending = self.pending
        self._undo.append((key, pending.get(key, _MISSING)))
        if self._order is not None and key not in pending:
            self._order.add(key)
        pending[key] = value
        if not len(self._undo) % _BETWEEN:
            self.look_at_time()

    def delete(self, key: bytes) -> None:
        """Delete a key that should exist: a deletion takes space until it is compacted."""
        self.put(key, None)

    def scan(
        self, start: bytes, stop: bytes | None, reverse: bool = False, timed: bool = True
    ) -> Iterator[tuple[bytes, bytes]]:
        """The entries from ``start`` up to ``stop`` (or the end), each as it is when the scan
        reaches it.

        Keys may be written during the scan.  It may or may not return new ones.  ``timed`` says
        whether it ends at the deadline.
        """
        found: Iterator[tuple[bytes, bytes]]
        found = self._view.iterator(start=start, stop=stop, reverse=reverse)
        if self.pending:
            self.touched = True
            found = self._merged(found, start, stop, reverse)
        return self.rested(found) if (timed and self.deadline < math.inf) or self.rests else found

    def rested(self, found: Iterable[_T]) -> Iterator[_T]:
        """Go through something, and look at the time once in a while."""
        for one in found:
            self._count_read()
            yield one

    def _count_read(self) -> None:
        self._reads += 1
        if self._reads % _BETWEEN == 0:
            self.look_at_time()

    def give_way(self) -> None:
        """Raise :class:`TooLong` if there is a deadline: what follows takes long."""
        if self.deadline < math.inf:
            raise TooLong

    def look_at_time(self) -> None:
        """Let other threads run, if this is one.  Raises :class:`TooLong` after the deadline."""
        if self.rests:
            time.sleep(_REST)
        if time.perf_counter() > self.deadline:
            raise TooLong

    def under(self, prefix: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """The entries whose keys begin with a prefix, in order, without it: from ``prefix + start``
        on.  As in :meth:`scan`, keys may be written during it."""
        skip = len(prefix)
        for name, value in self.scan(prefix + start, successor(prefix)):
            yield name[skip:], value

    def _merged(
        self, found: Iterator[tuple[bytes, bytes]], start: bytes, stop: bytes | None, reverse: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        pending = self.pending
        written = self._pending_keys(start, stop, reverse)
        stored = next(found, None)
        key = next(written, None)
        while key is not None or stored is not None:
            if stored is None or (
                key is not None and (key > stored[0] if reverse else key < stored[0])
            ):
                assert key is not None
                value = pending.get(key)
                if value is not None:
                    yield key, value
                key = next(written, None)
            else:
                # Writes of a command during its own scan are not in the order that the scan walks
                # over.
                value = pending.get(stored[0], stored[1])
                if value is not None:
                    yield stored[0], value
                if key == stored[0]:
                    key = next(written, None)
                stored = next(found, None)

    def _pending_keys(self, start: bytes, stop: bytes | None, reverse: bool) -> Iterator[bytes]:
        """The pending keys of a range, in chunks: the order may change between them."""
        if self._order is None:
            if len(self.pending) < _CHUNK:
                keys = [
                    key for key in self.pending if start <= key and (stop is None or key < stop)
                ]
                yield from sorted(keys, reverse=reverse)
                return
            self._order = SortedList(self.pending)
        order = self._order
        low, high = start, stop
        inclusive = (True, False)
        while True:
            chunk = list(islice(order.irange(low, high, inclusive, reverse), _CHUNK))
            yield from chunk
            if len(chunk) < _CHUNK:
                return
            if reverse:
                high = chunk[-1]
            else:
                low, inclusive = chunk[-1], (False, False)

    def mark(self) -> int:
        """The number of writes that the command has made; :meth:`undo` returns to it."""
        return len(self._undo)

    def keep(self) -> None:
        """Keep the writes of a command that succeeded."""
        self._undo.clear()

    def undo(self, mark: int = 0) -> None:
        """Undo the writes of the command, all or those since a mark."""
        while len(self._undo) > mark:
            key, before = self._undo.pop()
            if before is _MISSING:
                del self.pending[key]
                if self._order is not None:
                    self._order.remove(key)
            else:
                self.pending[key] = before  # type: ignore[assignment]

    def commit(self) -> None:
        """Write everything as one record.

        Raises what ``DB.write`` raises.  Then nothing is written, and nothing remains pending.
        """
        batch = batch_of(self.pending)
        self.forget()
        self.db.write(batch)

    def look_again(self) -> None:
        """Read the store as it is now, until the next call; O(1).

        For a store that is open for reading only: otherwise it would change in the middle of a
        command whenever another thread refreshes it.
        """
        before, self._view = self._view, self.db.snapshot()
        if isinstance(before, Snapshot):
            before.close()

    def close(self) -> None:
        """Release the view of a store that :meth:`look_again` has taken."""
        if isinstance(self._view, Snapshot):
            self._view.close()

    def forget(self) -> None:
        """Drop what is pending."""
        self.pending.clear()
        self._undo.clear()
        self._order = None


def batch_of(changes: dict[bytes, bytes | None]) -> WriteBatch:
    """A batch of these changes; None deletes a key."""
    batch = WriteBatch()
    for key, value in changes.items():
        if value is None:
            batch.delete(key)
        else:
            batch.put(key, value)
    return batch


def would_stall(db: DB, most_files: int = L0_SLOWDOWN_WRITES_TRIGGER) -> bool:
    """True if a write may wait for flushes or compactions: level 0 has this many files, or a
    memtable is being flushed and the next one is nearly full."""
    stats = db.stats()
    full = stats.memtable_bytes > db.options.write_buffer_size * 15 // 8
    return full or stats.levels[0].files >= most_files
