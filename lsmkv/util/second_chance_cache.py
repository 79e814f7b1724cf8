"""A cache of a fixed number of values by key; the table cache keeps its open tables in one.

The policy is *second chance* (also called CLOCK): entries stand in a queue, and the oldest one is
evicted unless it was used since it came to the end of the queue, which then spares it once.  That
does nearly as well as least-recently-used order, and a hit changes nothing but a flag: it takes no
lock.  Values all count the same; a cache of values of different sizes is
:class:`lsmkv.util.block_cache.BlockCache`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from librt.threading import Lock

from lsmkv.util.cache_entry import CacheEntry

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SecondChanceCache(Generic[K, V]):
    """Keeps the values that were used lately, at most ``capacity`` of them.

    Safe for many threads: :meth:`get` takes no lock, the other methods do, but wait for none: the
    thread that holds it may be the caller's, which a finalizer has interrupted.  A value is not
    None.
    Each method costs O(1) amortised, save :meth:`clear` and :meth:`check`.  ``ValueError`` for a
    capacity below 1.

    >>> cache = SecondChanceCache[str, int](capacity=2)
    >>> for name in "abc":
    ...     entry = cache.put(name, ord(name))
    >>> cache.get("a") is None, cache.get("c"), entry.take(), len(cache)
    (True, 99, 99, 2)
    >>> cache.discard("c")
    >>> entry.take() is None, len(cache)
    (True, 1)
    >>> cache.check()
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"a cache of {capacity} values holds none")
        self.capacity = capacity
        # The order of the keys is that of the queue, the next entry to be judged first.
        self._entries: OrderedDict[K, CacheEntry] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        """Number of values."""
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """The value under ``key``, which is spared once; None on a miss."""
        entry = self._entries.get(key)
        value: V | None = None if entry is None else entry.take()
        return value

    def entry(self, key: K) -> CacheEntry | None:
        """The entry under ``key``, to be asked again and again without a lookup; None on a miss."""
        return self._entries.get(key)

    def put(self, key: K, value: V) -> CacheEntry:
        """Insert or replace a value, and return its entry.  The oldest unused values make room.

        While another call has the lock, the value is not kept, and only the entry has it.
        """
        entry = CacheEntry(1)
        entry.value = value
        if self._lock.locked():
            self.discard(key)
            return entry
        with self._lock:
            self._remove(key)
            while len(self._entries) >= self.capacity:
                self._evict_one()
            self._entries[key] = entry
        return entry

    def discard(self, key: K) -> None:
        """Remove the value under ``key``, if there is one."""
        if self._lock.locked():
            found = self._entries.get(key)
            if found is not None:
                found.empty()
            return
        with self._lock:
            self._remove(key)

    def clear(self) -> None:
        """Remove every value."""
        if self._lock.locked():
            for entry in list(self._entries.values()):
                entry.empty()
            return
        with self._lock:
            for entry in self._entries.values():
                entry.empty()
            self._entries.clear()

    def check(self) -> None:
        """Assert that the cache holds at most as many values as its capacity."""
        with self._lock:
            count = len(self._entries)
            assert count <= self.capacity, f"{count} values, capacity {self.capacity}"

    # The lock is held in what follows.  An entry loses its value before the cache loses the entry:
    # so a Ctrl-C between the two leaves no value that the cache does not count.

    def _remove(self, key: K) -> None:
        entry = self._entries.get(key)
        if entry is not None:
            entry.empty()
            del self._entries[key]

    def _evict_one(self) -> None:
        """Remove the oldest value if it was not used, else move it to the end of the queue."""
        key, entry = next(iter(self._entries.items()))
        if entry.used:
            entry.used = False
            self._entries.move_to_end(key)
        else:
            entry.empty()
            del self._entries[key]
