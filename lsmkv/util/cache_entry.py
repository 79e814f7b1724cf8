"""The entry of a cache: the way to a cached value that takes no lookup by key.

A table cache and a block cache hand their entries out, and their callers keep them: a hit is then
one call of :meth:`CacheEntry.take`, without a lock.
"""

from __future__ import annotations

from typing import Any


class CacheEntry:
    """A value in a cache, or the place of one that the cache has evicted.

    Only its cache writes to it, and what closes open tables (``descriptors.py``); ``used`` is also
    set by :meth:`take`, which any thread calls without a lock.
    """

    __slots__ = ("charge", "evicted_at", "on_probation", "used", "value")

    def __init__(self, charge: int) -> None:
        self.value: Any = None
        """None before the value is put in, and once it is evicted or removed."""
        self.charge = charge
        self.used = False
        """Whether the value was used since it came, or since the cache spared it last."""
        self.on_probation = False
        """In a block cache: whether the entry waits in the probation queue, if it has a value."""
        self.evicted_at = 0
        """In a block cache: its count of evictions from the probation queue when it evicted this
        entry from there; 0 if it did not."""

    def take(self) -> Any:
        """The value, which the cache then spares once; None if it was evicted."""
        value = self.value
        if value is not None:
            self.used = True
        return value

    def empty(self) -> Any:
        """Take the value out; a cache calls this.

        The value is returned, so that it outlives this call: its end may close a file, and a thread
        must not find a value that is half gone.
        """
        value = self.value
        self.value = None
        return value
