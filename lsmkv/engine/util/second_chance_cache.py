"""A cache of a fixed number of values by key; the table cache keeps its open tables in one.

The policy is *second chance* (also called CLOCK): entries form a queue, and the oldest one is
evicted unless it was used since it joined the queue; then it is spared once.  That does nearly as
well as least-recently-used order, and a hit changes nothing but a flag: it takes no lock.  All
values count the same; :class:`lsmkv.engine.util.block_cache.BlockCache` is a cache of values of
different sizes.

Other code may also empty an entry: the cache drops it when its turn comes.

It has no lock.  User code (a signal handler, a finalizer) may enter a cache in the middle of any
call, so a thread could end up waiting for a lock that it holds itself.  Each step on
the queue is one call of ``OrderedDict``, which is atomic; threads that evict at once may evict one
value more than they need to.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from lsmkv.engine.util.cache_entry import CacheEntry

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SecondChanceCache(Generic[K, V]):
    """Keeps the values that were used recently, at most ``capacity`` of them.

    Safe for many threads, and for code that interrupts any of its calls.  A value is not None.
    Each method costs O(1) amortized, except :meth:`clear` and :meth:`check`.  ``ValueError`` for a
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
            raise ValueError(f"a cache cannot have a capacity of {capacity} values")
        self.capacity = capacity
        # The order of the keys is that of the queue, the next entry to be judged first.
        self._entries: OrderedDict[K, CacheEntry] = OrderedDict()

    def __len__(self) -> int:
        """Number of values, including those that other code has taken out of their entries."""
        return len(self._entries)

    def in_order(self) -> list[K]:
        """The keys of all values, the next one to be judged first."""
        return list(self._entries)

    def get(self, key: K) -> V | None:
        """The value under ``key``, which is spared once; None on a miss."""
        entry = self._entries.get(key)
        value: V | None = None if entry is None else entry.take()
        return value

    def peek(self, key: K) -> V | None:
        """The value under ``key``, which is not spared for that; None on a miss."""
        entry = self._entries.get(key)
        value: V | None = None if entry is None else entry.value
        return value

    def entry(self, key: K) -> CacheEntry | None:
        """The entry under ``key``, which can be used repeatedly without a lookup; None on a
        miss."""
        return self._entries.get(key)

    def put(self, key: K, value: V) -> CacheEntry:
        """Insert or replace a value, and return its entry.  The oldest unused values are evicted
        for it.

        While another call has the lock, the value is not kept, and only the entry has it.
        """
        entry = CacheEntry(1)
        entry.value = value
        self.discard(key)
        self._evict_to(self.capacity - 1)
        self._entries[key] = entry
        self._evict_to(self.capacity)  # other threads may have added some
        return entry

    def discard(self, key: K) -> None:
        """Remove the value under ``key``, if there is one."""
        entry = self._entries.get(key)
        if entry is not None:
            # First, so that a Ctrl-C between the two leaves no value that the cache does not count.
            entry.empty()
            removed = self._entries.pop(key, None)
            if removed is not None:
                removed.empty()  # a new one, if a thread has just inserted it

    def evict_one(self) -> K | None:
        """Remove the value that is the next to go, and return its key; None if the value was spared
        instead, if another thread has changed the queue, or if there is none."""
        try:
            key, entry = next(iter(self._entries.items()))
            if entry.uses and entry.value is not None:
                entry.uses = 0
                self._entries.move_to_end(key)
                return None
            self.discard(key)
            return key
        except (KeyError, RuntimeError, StopIteration):
            return None

    def clear(self) -> None:
        """Remove every value."""
        for key in self.in_order():
            self.discard(key)

    def check(self) -> None:
        """Assert that the cache holds at most as many values as its capacity."""
        count = len(self._entries)
        assert count <= self.capacity, f"{count} values, capacity {self.capacity}"

    def _evict_to(self, count: int) -> None:
        """Remove values until that many are left."""
        while len(self._entries) > count:
            self.evict_one()
