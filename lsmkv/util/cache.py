"""A cache bounded in bytes (or in whatever unit its charges are counted)."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Any, Final, Generic, TypeVar

from librt.threading import Lock

_STALE: Final = 64
"""So many removed entries may wait in the queue, beside as many as there are entries."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class CacheEntry:
    """What a cache keeps under a key: a way to it without a look into a dict."""

    __slots__ = ("charge", "key", "used", "value")

    def __init__(self, key: Any, value: Any, charge: int) -> None:
        self.key = key
        self.value = value
        """None once it was removed."""
        self.charge = charge
        self.used = False
        """Whether it is to be spared once more."""

    def take(self) -> Any:
        """The value, which is spared once more; None once it was removed."""
        value = self.value
        if value is not None:
            self.used = True
        return value


class LRUCache(Generic[K, V]):
    """Keeps entries that were used lately while their charges sum to at most ``capacity``.

    What goes is the oldest entry that was not used since it was put in, or since it was spared
    last: *second chance*, which does nearly as well as LRU and lets a hit cost one dict lookup.
    Safe for many threads: a hit takes no lock (it is one dict operation), an insertion does.
    An entry that is larger than the whole capacity is not kept, so a capacity of 0 turns caching
    off.  ``get``, ``put`` and ``discard`` cost O(1) amortised.  A negative capacity raises
    ``ValueError``.

    >>> cache = LRUCache[str, int](capacity=2)
    >>> for name in "abc":
    ...     _ = cache.put(name, ord(name), charge=1)
    >>> cache.get("a") is None, cache.get("c")
    (True, 99)
    >>> cache.discard("c")
    >>> len(cache), cache.usage
    (1, 1)
    >>> cache.check()
    >>> cache.clear()
    >>> cache.usage
    0

    Stores may share one:

    >>> import lsmkv
    >>> blocks = LRUCache(16 << 20)
    >>> with (
    ...     lsmkv.DB(":memory:", block_cache=blocks) as one,
    ...     lsmkv.DB(":memory:", block_cache=blocks) as two,
    ... ):
    ...     one.options.block_cache is two.options.block_cache
    True
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 0:
            raise ValueError(f"a cache cannot hold {capacity} bytes")
        self.capacity = capacity
        self.usage = 0
        self._entries: dict[K, CacheEntry] = {}
        self._queue: deque[CacheEntry] = deque()
        """Oldest first; entries that were removed meanwhile are passed over."""
        self._lock = Lock()

    def __len__(self) -> int:
        """Number of entries."""
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """The value under ``key``, which is spared once more; None on a miss."""
        entry = self._entries.get(key)
        value: V | None = None if entry is None else entry.take()
        return value

    def entry(self, key: K) -> CacheEntry | None:
        """What holds the value under ``key``, for who asks for it again and again; None on a miss.

        >>> cache = LRUCache[str, int](capacity=1)
        >>> cache.put("a", 97, charge=1) is cache.entry("a")
        True
        >>> entry = cache.entry("a")
        >>> entry.take()
        97
        >>> cache.clear()
        >>> entry.take() is None, cache.entry("a") is None
        (True, True)
        """
        return self._entries.get(key)

    def put(self, key: K, value: V, charge: int) -> CacheEntry | None:
        """Insert or replace, then evict what is not used until the capacity is kept.

        Returns what :meth:`entry` would: None if it was not kept.
        """
        with self._lock:
            try:
                self._remove(key)
                if charge > self.capacity:
                    return None
                entry = CacheEntry(key, value, charge)
                self._queue.append(entry)
                self._entries[key] = entry
                self.usage += charge
                while self.usage > self.capacity:
                    self._evict_one()
                if len(self._queue) > 2 * len(self._entries) + _STALE:
                    self._queue = deque(
                        one for one in self._queue if self._entries.get(one.key) is one
                    )
                return entry
            except BaseException:  # Ctrl-C, between any two steps
                self._recount()
                raise

    def discard(self, key: K) -> None:
        """Forget ``key``, if it is here."""
        with self._lock:
            try:
                self._remove(key)
            except BaseException:
                self._recount()
                raise

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            for entry in self._entries.values():
                _empty(entry)
            self._entries.clear()
            self._queue.clear()
            self.usage = 0

    def check(self) -> None:
        """Assert the invariants: usage is the sum of the charges, within the capacity."""
        with self._lock:
            charged = sum(entry.charge for entry in self._entries.values())
            assert charged == self.usage, f"usage {self.usage}, charges {charged}"
            assert self.usage <= self.capacity, f"usage {self.usage} > {self.capacity}"
            queued = len(self._queue)
            assert queued <= 2 * len(self._entries) + _STALE + 1, f"{queued} wait in the queue"
            waiting = {one.key for one in self._queue if self._entries.get(one.key) is one}
            assert len(waiting) == len(self._entries), "an entry that would never be evicted"

    # The lock is held in what follows

    def _recount(self) -> None:
        """Let queue and usage be what the entries say."""
        self._queue = deque(self._entries.values())
        self.usage = sum(entry.charge for entry in self._entries.values())

    def _remove(self, key: K) -> None:
        entry = self._entries.get(key)
        if entry is not None:
            self._drop(entry)

    def _drop(self, entry: CacheEntry) -> None:
        _empty(entry)  # others may keep the entry, but not a file open with it
        del self._entries[entry.key]
        self.usage -= entry.charge

    def _evict_one(self) -> None:
        """Remove the oldest entry that was not used, or pass one over."""
        if not self._queue:  # an interrupted recount
            self._recount()
            return
        entry = self._queue[0]
        if self._entries.get(entry.key) is entry:
            if entry.used:
                entry.used = False
                self._queue.append(entry)
            else:
                self._drop(entry)
        self._queue.popleft()


def _empty(entry: CacheEntry) -> Any:
    """Take the value out.  It is returned so that it lives until it is out: letting go of it may
    close a file, and meanwhile a thread without the lock must not find what is half gone."""
    value = entry.value
    entry.value = None
    return value
