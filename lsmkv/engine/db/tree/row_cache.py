"""The row cache: whole values by user key, in memory, in addition to the block cache.

Each version has one, for the values that Gets found in its tables; the reader fills it.  Left out:
an order by last use, which every read would have to update.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from librt.threading import Lock

_OVERHEAD: Final = 150  # bytes that Python takes for a key, a value and their dict entry


class RowCache:
    """Values by key, up to a total number of bytes; the one cached longest is evicted first.

    A read is one dict lookup in ``values``, without a lock.  No thread ever waits for the lock:
    while one thread keeps a value, :meth:`keep` in another does nothing, and a later read keeps
    that value.
    """

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.usage = 0
        """About how many bytes the values take."""
        self._oldest_first: deque[bytes] = deque()  # the keys of the values
        self._lock = Lock()

    def keep(self, key: bytes, value: bytes, limit: int) -> None:
        """Keep a value, and evict others until all take at most ``limit`` bytes.  O(1)
        amortized."""
        charge = _charge(key, value)
        if charge > limit or self._lock.locked():
            return
        with self._lock:
            try:
                values = self.values
                if key in values:
                    return
                while self.usage + charge > limit:
                    oldest = self._oldest_first.popleft()
                    self.usage -= _charge(oldest, values.pop(oldest))
                self._oldest_first.append(key)
                values[key] = value
                self.usage += charge
            except BaseException:  # Ctrl-C, between any two steps
                self._forget()
                raise

    def clear(self) -> None:
        """Drop all values, unless another thread is keeping one just now."""
        if self._lock.locked():
            return
        with self._lock:
            self._forget()

    def check(self) -> None:
        """Assert the invariants."""
        with self._lock:
            assert set(self._oldest_first) == self.values.keys()
            assert len(self._oldest_first) == len(self.values)
            assert self.usage == sum(_charge(*item) for item in self.values.items())

    def _forget(self) -> None:
        self.usage = 0
        self._oldest_first = deque()
        self.values = {}


def _charge(key: bytes, value: bytes) -> int:
    return len(key) + len(value) + _OVERHEAD
