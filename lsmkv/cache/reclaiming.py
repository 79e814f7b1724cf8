"""The space of removed entries: :class:`Reclaiming` has the store compact it.

An LSM tree frees space when a compaction meets the deletion.  A cache deletes as much as it
writes once it is full, and always at one end of its indexes.  So where removed entries take too
much space, a thread drops values (:mod:`lsmkv.cache.front`), and compacts heads and indexes if that
is not enough.  Writes that come faster than the thread can follow are delayed, by more the more
space is lacking.
"""

from __future__ import annotations

from typing import Final

from lsmkv.cache.front import Front
from lsmkv.cache.keys import VALUE
from lsmkv.engine.db.db import DB
from lsmkv.engine.errors import Error
from lsmkv.engine.stats import Stats
from lsmkv.engine.util.delay_debt import DelayDebt
from lsmkv.engine.util.threads import HAS_THREADS, new_lock, start_new_thread
from lsmkv.shared.shared_db import SharedDB

MOST_GARBAGE: Final = 0.04
"""The share of the limit that bytes which no entry has may take on disk: above it, values beside
their heads are dropped."""
_MOST_LEFT: Final = 0.09
"""The same where that is not enough: above it, the store is compacted, and then entries are copied.
A memtable, and the table in which the first value is, take as much."""
_LEFT_TO_OWNER: Final = 0.02
"""The factor by which a member of a shared store tolerates more: the owner is to do it for all."""
_KEPT: Final = 0.75
"""The share of the limit below which no entry is removed to make way for values of others."""
LEAST: Final = 1 << 18
"""Bytes of garbage that are tolerated, however small the cache."""
_DELAY: Final = 0.05
"""Seconds that a write would be delayed if the garbage was above what is allowed by the limit."""
_LONGEST_DELAY: Final = 0.005


class Reclaiming:
    """Reclaims the space of one handle's store.  Any thread may call any method."""

    def __init__(self, db: DB, front: Front) -> None:
        self._db = db
        self._front = front
        self.delay = 0.0
        """Seconds by which each write is to be delayed."""
        self._delays = DelayDebt(_LONGEST_DELAY)
        self._volume = self._limit = 0
        self._lock = new_lock()
        self._running = False
        self._done = new_lock()
        """Held while a thread compacts."""
        self._closed = False

    def look(self, volume: int, limit: int) -> None:
        """Check the space that the store takes for entries of ``volume`` bytes.

        Cost: the store's counters.  With too much garbage a thread begins to compact, and
        :attr:`delay` is more than 0 until there is less.
        """
        self._volume, self._limit = volume, limit
        excess = self._excess()
        self.delay = min(max(_DELAY * excess / max(limit, LEAST), 0.0), _LONGEST_DELAY)
        if excess <= 0 or self._running:
            return
        with self._lock:
            if self._running or self._closed:
                return
            self._running = True
            self._done.acquire()
        if HAS_THREADS:
            start_new_thread(self._compact, ())
        else:
            self._compact()

    def slow_down(self) -> None:
        """Delay a write by :attr:`delay`: sleep, if it and those before it owe enough for that."""
        self._delays.owe(self.delay)

    def _excess(self) -> int:
        """The surplus bytes."""
        return self._above(MOST_GARBAGE)

    def _above(self, share: float) -> int:
        """Bytes which no entry has, above a share of the limit."""
        if isinstance(self._db, SharedDB) and self._db.role == "member":
            share += _LEFT_TO_OWNER
        return self.on_disk() - self._volume - max(LEAST, int(self._limit * share))

    def on_disk(self) -> int:
        """Bytes of the store's tables and of its log."""
        return _bytes_of(self._db.stats())

    def _compact(self) -> None:
        try:
            changed = True
            while changed and self._excess() > 0 and not self._closed:
                volume = self._volume
                before = self.on_disk()
                self._make_room()
                # Otherwise snapshots need it, or there are new writes: the next look handles that.
                changed = self._volume < volume or self.on_disk() < before
        except (Error, OSError):
            pass  # the store is closed, or fails, which the next write reports
        finally:
            self.delay = 0.0
            self._running = False
            self._done.release()

    def _make_room(self) -> None:
        """Free disk space, the cheapest way first."""
        if self._front.has_values():
            self._front.advance()
            if self._above(_MOST_LEFT) > 0:
                self._db.compact_range(None, VALUE)
            garbage = self._above(_MOST_LEFT)
            if garbage > 0:
                keeps = self._volume < _KEPT * self._limit
                self._front.make_way(garbage, keeps, self._goes_on)
                self._front.advance()
        elif self._above(_MOST_LEFT) > 0:
            self._db.compact_range()

    def _goes_on(self) -> bool:
        return not self._closed

    def wait(self) -> None:
        """Wait until no thread compacts."""
        with self._done:
            pass

    def close(self) -> None:
        """End a running thread soon; the store is closed afterwards, which ends its compaction."""
        with self._lock:
            self._closed = True


def _bytes_of(stats: Stats) -> int:
    return sum(level.bytes for level in stats.levels) + stats.memtable_bytes
