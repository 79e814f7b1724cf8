"""An LRU cache bounded in bytes (or in whatever unit its charges are counted)."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LRUCache(Generic[K, V]):
    """Keeps the entries used last while their charges sum to at most ``capacity``.

    Safe for many threads: a hit takes no lock (each dict operation is atomic), an insertion does.
    An entry that is larger than the whole capacity is not kept, so a capacity of 0 turns caching
    off.  ``get``, ``put`` and ``discard`` cost O(1) amortised.  A negative capacity raises
    ``ValueError``.

    >>> cache = LRUCache[str, int](capacity=2)
    >>> for name in "abc":
    ...     cache.put(name, ord(name), charge=1)
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
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Number of entries."""
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """The value under ``key``, which is now the one used last; None on a miss."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        try:
            self._entries.move_to_end(key)
        except KeyError:
            pass  # another thread evicted it meanwhile; the value in hand is still good
        return entry[0]

    def put(self, key: K, value: V, charge: int) -> None:
        """Insert or replace, then evict from the cold end until the capacity is kept."""
        with self._lock:
            self._remove(key)
            if charge > self.capacity:
                return
            self._entries[key] = (value, charge)
            self.usage += charge
            while self.usage > self.capacity:
                _, (_, freed) = self._entries.popitem(last=False)
                self.usage -= freed

    def discard(self, key: K) -> None:
        """Forget ``key``, if it is here."""
        with self._lock:
            self._remove(key)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
            self.usage = 0

    def check(self) -> None:
        """Assert the invariants: usage is the sum of the charges, within the capacity."""
        with self._lock:
            entries = list(self._entries.values())  # a hit, which takes no lock, moves its entry
            charged = sum(charge for _, charge in entries)
            assert charged == self.usage, f"usage {self.usage}, charges {charged}"
            assert self.usage <= self.capacity, f"usage {self.usage} > {self.capacity}"

    def _remove(self, key: K) -> None:
        """Caller holds the lock."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.usage -= entry[1]
