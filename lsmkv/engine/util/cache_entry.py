"""The entry of a cache: a way to a cached value without a lookup by key.

A table cache and a block cache return their entries, and the callers keep them: a hit is then one
call of :meth:`CacheEntry.take`, without a lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_extensions import i64


class CacheEntry:
    """A value in a cache, or what remains of one that the cache has evicted.

    Only its cache writes to it, and the code that closes open tables (``descriptors.py``); ``uses``
    is also counted by :meth:`take`, which any thread calls without a lock.
    """

    __slots__ = ("charge", "uses", "value")

    def __init__(self, charge: int) -> None:
        self.value: Any = None
        """None before the value is inserted, and after it is evicted or removed."""
        self.charge = charge
        self.uses: i64 = 0
        """Number of uses of the value since it was inserted, or since the cache last spared it."""

    @property
    def used(self) -> bool:
        """True if the value was used since it was inserted, or since the cache last spared it."""
        return self.uses > 0

    def take(self) -> Any:
        """The value, which the cache then spares once; None if it was evicted."""
        value = self.value
        if value is not None:
            self.uses += 1
        return value

    def empty(self) -> Any:
        """Remove and return the value; a cache calls this.

        The value is returned so that it outlives this call: its destruction may close a file, and
        no thread must find a half-destroyed value.
        """
        value = self.value
        self.value = None
        return value
