"""Space that removed entries leave: :class:`Space` has the store compact it.

An LSM tree gives space back when a compaction meets the deletion.  A cache deletes as much as it
writes once it is full, and always at one end of its indexes.  So after enough was removed, a thread
compacts the ranges that hold deleted entries: the low ends of the indexes and of the large values
first, which are cheap, and the whole store if its files are still too large.
"""

from __future__ import annotations

from typing import Final

from lsmkv.cache.names import CHUNK, EVICTION, EXPIRY, ORDER, TAG
from lsmkv.db.db import DB
from lsmkv.errors import Error
from lsmkv.util.threads import HAS_THREADS, new_lock, start_new_thread

LOW_ENDS: Final = (ORDER, EVICTION, EXPIRY, TAG, CHUNK)
MOST_GARBAGE: Final = 0.12
"""The share of the limit that bytes which no entry has may take on disk: above it, the store is
compacted."""
LEAST: Final = 1 << 20
"""Removed bytes below which nothing is done."""


class Space:
    """Sees to the space of one handle's store.  Any thread may call any method."""

    def __init__(self, db: DB, write_buffer_size: int) -> None:
        self._db = db
        self._buffer = write_buffer_size
        self._removed = 0
        self._lock = new_lock()
        self._running = False
        self._done = new_lock()
        """Held while a thread compacts."""
        self._closed = False

    def removed(self, size: int, volume: int, limit: int) -> None:
        """So many bytes were removed; compact if that has left too much garbage."""
        self._removed += size
        allowed = max(LEAST, int(limit * MOST_GARBAGE))
        if self._removed < allowed or self._running:
            return
        self._removed = 0
        if self.on_disk() < volume + allowed:
            return
        with self._lock:
            if self._running or self._closed:
                return
            self._running = True
            self._done.acquire()
        if HAS_THREADS:
            start_new_thread(self._compact, (volume + allowed,))
        else:
            self._compact(volume + allowed)

    def on_disk(self) -> int:
        """Bytes of the store's tables and of its log."""
        stats = self._db.stats()
        return sum(level.bytes for level in stats.levels) + stats.memtable_bytes

    def _compact(self, allowed: int) -> None:
        try:
            for kind in LOW_ENDS:
                if self._closed:
                    return
                self._db.compact_range(kind, kind + b"\xff")
            if self.on_disk() > allowed and not self._closed:
                self._db.compact_range()
        except (Error, OSError):
            pass  # the store is closed, or fails, which the next write reports
        finally:
            self._running = False
            self._done.release()

    def wait(self) -> None:
        """Wait until no thread compacts."""
        with self._done:
            pass

    def close(self) -> None:
        """End soon what is running; the store is closed afterwards, which ends its compaction."""
        with self._lock:
            self._closed = True
