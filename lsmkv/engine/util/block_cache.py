"""The block cache: data blocks, bounded in bytes, and admitted when they come back.

Tables insert their blocks (:meth:`BlockCache.add`) and keep the entries that they get, so a hit
needs neither a key nor a lock.  One cache serves one store or several.

Tables add blocks decompressed, which saves work at each hit, until the cache is full
(:meth:`BlockCache.is_full`).  From then on they add them as they are stored, so that about twice as
many fit, and put the decompressed form of one that is used often in its place
(:meth:`BlockCache.replace`).

*Admission* decides whether a block gets into a full cache: only one that comes back.  The cache
counts the misses of all tables, and a table keeps for each block when it was missed last
(:meth:`BlockCache.admits`).  A block that was missed fewer misses ago than the cache has values is
admitted; any other is kept only until the next miss (:attr:`BlockCache.latest`), for Gets of
neighboring keys.  So blocks that are read once push out nothing, and cost no work here.  Eviction
is by *second chance*: the oldest block goes, unless it was used since it arrived or was last
spared.

On Zipf traces, with and without scans, this has hit ratios at or above those of S3-FIFO, of which
it is the ghost queue and the main queue (Yang, Zhang, Qiu, Yue and Rashmi, *FIFO queues are all you
need for cache eviction*, SOSP 2023): the small queue between them is left out.

Fast path: refilling an entry is cheaper than making a new one: the old entry was just read, and
freeing it would touch other memory.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Final, Generic, Never, TypeVar

from librt.threading import Lock

from lsmkv.engine.util.cache_entry import CacheEntry
from lsmkv.engine.util.copying import refuse_copy
from lsmkv.engine.util.search import IS_COMPILED

if TYPE_CHECKING:
    from mypy_extensions import i64

_MAX_STALE: Final = 64
"""The queue may be longer than twice the number of values by this many entries."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BlockCache(Generic[K, V]):
    """Keeps values that are used often or were used recently; their charges sum to at most
    ``capacity``.

    A full cache admits a value when it is read for the second time within a while.
    Safe for many threads: a hit takes no lock, an insertion does.  No call waits for the lock,
    since a finalizer may have interrupted the thread that holds it.  If the lock is taken, the
    value is not kept.  Nor is None, or a value larger than the whole capacity; so a capacity of 0
    turns caching off.
    Every method costs O(1) amortized, except ``clear``, ``check`` and ``forget``.  ``ValueError``
    for a negative capacity.

    Stores may share one:

    >>> import lsmkv
    >>> blocks = BlockCache(16 << 20)
    >>> with (
    ...     lsmkv.DB(":memory:", block_cache=blocks) as one,
    ...     lsmkv.DB(":memory:", block_cache=blocks) as two,
    ... ):
    ...     one.options.block_cache is two.options.block_cache
    True

    Tables add their blocks, and keep the entries:

    >>> cache = BlockCache[None, bytes](capacity=2)
    >>> first, second, third = [cache.add(block, charge=1) for block in (b"a", b"b", b"c")]
    >>> first.take() is None, third.take(), len(cache), cache.usage
    (True, b'c', 2, 2)
    >>> cache.check()
    >>> cache.clear()
    >>> third.take() is None, cache.usage
    (True, 0)

    ``put``, ``get``, ``entry`` and ``discard``, which keep values under keys, are deprecated: lsmkv
    does not use them.

    >>> import warnings
    >>> cache = BlockCache[str, int](capacity=1)
    >>> with warnings.catch_warnings(action="ignore"):
    ...     entry = cache.put("a", 97, charge=1)
    ...     cache.get("a"), cache.entry("a") is entry
    ...     cache.discard("a"), cache.get("a")
    (97, True)
    (None, None)
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 0:
            raise ValueError(f"a cache cannot hold {capacity} bytes")
        self.capacity = capacity
        self.usage = 0
        """The sum of the charges of all values."""
        self.misses: i64 = 0
        """Approximate number of values that the tables did not find here: threads do not wait to
        count."""
        self.latest: V | None = None
        """The last value that was not admitted, which counts in no sum."""
        # The oldest entry first.  One without a value is stale: it does not count, and is skipped.
        self._queue: deque[CacheEntry] = deque()
        self._count = 0  # of the values in the queue
        self._lock = Lock()
        self._miscounted = False  # values were removed while another call held the lock
        self._keyed: dict[K, CacheEntry] = {}  # entries of put; some may have lost their values

    def __len__(self) -> int:
        """Number of values."""
        return self._count

    def add(self, value: V, charge: int) -> CacheEntry | None:
        """Insert a value, and return its entry, the only way to reach the value.

        Returns None if the value is None or too large to be kept.

        >>> cache = BlockCache[str, int](capacity=1)
        >>> entry = cache.add(97, charge=1)
        >>> entry.take(), len(cache)
        (97, 1)
        >>> cache.add(98, charge=1).value, entry.value, len(cache)
        (98, None, 1)
        """
        if self._lock.locked():
            return None
        with self._lock:
            try:
                return self._insert(CacheEntry(charge), value)
            except BaseException:  # Ctrl-C, between any two steps
                self._recount()
                raise

    def refill(self, entry: CacheEntry, value: V, charge: int) -> None:
        """Put a value into an entry that :meth:`add` returned, unless it still has one.

        >>> cache = BlockCache[str, int](capacity=1)
        >>> entry = cache.add(97, charge=1)
        >>> cache.clear()
        >>> cache.refill(entry, 98, charge=1)
        >>> entry.take(), len(cache)
        (98, 1)
        """
        if self._lock.locked():
            return
        with self._lock:
            if entry.value is not None:
                return
            try:
                entry.charge = charge
                entry.uses = 0
                self._insert(entry, value)
            except BaseException:
                self._recount()
                raise

    def replace(self, entry: CacheEntry, value: V, charge: int) -> None:
        """Put another form of its value into an entry, which keeps its place in the queue.

        Nothing changes if the entry has lost its value, or the new form is too large to be kept.

        >>> cache = BlockCache[str, str](capacity=2)
        >>> entry = cache.add("packed", charge=1)
        >>> cache.replace(entry, "unpacked", charge=2)
        >>> entry.take(), cache.usage
        ('unpacked', 2)
        """
        if self._lock.locked():
            return
        with self._lock:
            if entry.value is None or charge > self.capacity:
                return
            try:
                more = charge - entry.charge
                entry.value = value
                entry.charge = charge
                self.usage += more
                while self.usage > self.capacity:
                    self._evict_one()
            except BaseException:
                self._recount()
                raise

    def is_full(self, charge: int) -> bool:
        """Return True if a value of this charge would evict others.

        >>> cache = BlockCache[str, str](capacity=2)
        >>> entry = cache.add("a", charge=1)
        >>> cache.is_full(1), cache.is_full(2)
        (False, True)
        """
        return self.usage + charge > self.capacity

    def admits(self, charge: i64, before: i64) -> bool:
        """Count a miss, and return True if the value that was missed may be inserted.

        ``before`` is what :attr:`misses` was after the value's last miss, and 0 for none.

        >>> cache = BlockCache[None, str](capacity=1)
        >>> cache.admits(1, before=0), cache.add("a", charge=1).value
        (True, 'a')
        >>> cache.admits(1, before=0), cache.misses
        (False, 2)
        >>> cache.admits(1, before=2), cache.admits(1, before=2)
        (True, False)
        """
        self.misses += 1
        return not self.is_full(charge) or (before > 0 and self.misses - before <= self._count)

    def forget(self, entries: list[CacheEntry]) -> None:
        """Remove the values of these entries, which will not be used again.  O(entries).

        >>> cache = BlockCache[str, int](capacity=1)
        >>> entry = cache.add(97, charge=1)
        >>> cache.forget([entry])
        >>> entry.take() is None, len(cache), cache.usage
        (True, 0, 0)
        """
        self.latest = None
        if self._lock.locked():
            self._empty(entries)
            return
        with self._lock:
            try:
                for entry in entries:
                    if entry.value is not None:
                        self._remove(entry)
                self._limit_stale()
            except BaseException:
                self._recount()
                raise

    def clear(self) -> None:
        """Remove every value.  O(values)."""
        self.latest = None
        if self._lock.locked():
            self._empty(list(self._queue))
            return
        with self._lock:
            try:
                for entry in self._queue:
                    entry.empty()
                self._recount()
            except BaseException:
                self._recount()
                raise

    def check(self) -> None:
        """Assert the invariants: usage is the sum of the charges, within the capacity."""
        with self._lock:
            if self._miscounted:
                self._recount()
            live = _live(self._queue)
            charged = sum(entry.charge for entry in live)
            assert charged == self.usage, f"usage {self.usage}, charges {charged}"
            assert self.usage <= self.capacity, f"usage {self.usage} > {self.capacity}"
            assert len(live) == self._count, f"{self._count} values, {len(live)} in the queue"
            longest = len(self._queue)
            assert longest <= 2 * self._count + _MAX_STALE + 1, f"{longest} entries are kept"

    def _empty(self, entries: list[CacheEntry]) -> None:
        """Remove the values of these entries while another call holds the lock, which may be the
        call that this one has interrupted.  The next call that takes the lock counts again."""
        for entry in entries:
            entry.empty()
        self._miscounted = True

    def __reduce__(self) -> Never:
        refuse_copy(
            "a block cache", "it belongs to one process: make one of the same capacity there"
        )

    # Deprecated: values under keys

    def put(self, key: K, value: V, charge: int) -> CacheEntry | None:
        """Deprecated: use :meth:`add`.  Insert or replace the value under ``key``.

        Returns its entry, or None if the value is None or too large to be kept.
        """
        _warn_of_keys("put")
        self._forget_key(key)
        entry = self.add(value, charge)
        if entry is not None:
            self._keyed[key] = entry
        if len(self._keyed) > 2 * self._count + _MAX_STALE:
            self._keyed = {
                name: one for name, one in list(self._keyed.items()) if one.value is not None
            }
        return entry

    def get(self, key: K) -> V | None:
        """Deprecated: use :meth:`CacheEntry.take`.  The value under ``key``, which is then spared
        once; None on a miss."""
        _warn_of_keys("get")
        entry = self._keyed.get(key)
        value: V | None = None if entry is None else entry.take()
        return value

    def entry(self, key: K) -> CacheEntry | None:
        """Deprecated: keep what :meth:`add` returns.  The entry of the value under ``key``; None on
        a miss."""
        _warn_of_keys("entry")
        entry = self._keyed.get(key)
        return None if entry is None or entry.value is None else entry

    def discard(self, key: K) -> None:
        """Deprecated: use :meth:`forget`.  Remove the value under ``key``, if there is one."""
        _warn_of_keys("discard")
        self._forget_key(key)

    def _forget_key(self, key: K) -> None:
        entry = self._keyed.pop(key, None)
        if entry is not None:
            self.forget([entry])

    # The caller of the following methods holds the lock

    def _recount(self) -> None:
        """Drop stale entries, and recompute all counts from the queue."""
        self._miscounted = False
        live = _live(self._queue)
        self._queue = deque(live)
        self._count = len(live)
        self.usage = sum(entry.charge for entry in live)

    def _insert(self, entry: CacheEntry, value: Any) -> CacheEntry | None:
        if entry.charge > self.capacity or value is None:
            return None
        while self.usage + entry.charge > self.capacity:
            self._evict_one()
        self._queue.append(entry)
        entry.value = value  # only once it is in the queue: else it would never be evicted
        self._count += 1
        self.usage += entry.charge
        self._limit_stale()
        return entry

    def _limit_stale(self) -> None:
        """Drop stale entries if there are many more of them than entries with a value."""
        if self._miscounted or len(self._queue) > 2 * self._count + _MAX_STALE:
            self._recount()

    def _remove(self, entry: CacheEntry) -> None:
        """Remove the value from an entry, which stays in the queue as a stale one."""
        entry.empty()
        self._count -= 1
        self.usage -= entry.charge

    def _evict_one(self) -> None:
        """Judge the oldest entry: evict it, or spare it."""
        if not self._queue:  # an interrupted recount
            self._recount()
            return
        entry = self._queue[0]
        if entry.value is not None:
            if entry.uses:
                entry.uses = 0
                self._queue.rotate(-1)
                return
            self._remove(entry)
        self._queue.popleft()


def _warn_of_keys(method: str) -> None:
    warnings.warn(
        f"BlockCache.{method} is deprecated: keep the entries that BlockCache.add returns",
        DeprecationWarning,
        stacklevel=1 if IS_COMPILED else 3,  # compiled calls have no frame
    )


def _live(queue: deque[CacheEntry]) -> list[CacheEntry]:
    """The entries of a queue that are not stale; a refilled one may be in it twice."""
    return list(dict.fromkeys([one for one in queue if one.value is not None]))
