"""A running average that many processes add to: :class:`Averager`."""

from __future__ import annotations

from typing import Any

from lsmkv.cache.cache import Cache


class Averager:
    """The average of all numbers that any process has added under a key.

    The key may not be evicted: the cache should have ``eviction="none"``.  With ``expire`` or
    ``tag``, the entry has them.  Raises what the cache raises.

    >>> import lsmkv
    >>> with lsmkv.Cache(shared=False, eviction="none") as cache:
    ...     latency = Averager(cache, "latency")
    ...     for seconds in (0.25, 0.75):
    ...         latency.add(seconds)
    ...     latency.get(), latency.pop(), latency.get()
    (0.5, 0.5, None)
    """

    def __init__(
        self, cache: Cache, key: Any, expire: float | None = None, tag: Any = None
    ) -> None:
        self._cache = cache
        self._key = key
        self._expire = expire
        self._tag = tag

    def add(self, value: float) -> None:
        """Add a number.  Cost: a transaction of the cache, with a read and a write."""
        with self._cache.transact(retry=True):
            total, count = self._cache.get(self._key, default=(0.0, 0))
            pair = total + value, count + 1
            self._cache.set(self._key, pair, expire=self._expire, tag=self._tag)

    def get(self) -> float | None:
        """The average; None before the first number.  Cost: a read."""
        return _average(self._cache.get(self._key, default=(0.0, 0)))

    def pop(self) -> float | None:
        """Return the average, and start again.  Cost: a read and a write."""
        with self._cache.transact(retry=True):
            return _average(self._cache.pop(self._key, default=(0.0, 0)))


def _average(pair: Any) -> float | None:
    total, count = pair
    return None if count == 0 else float(total / count)
