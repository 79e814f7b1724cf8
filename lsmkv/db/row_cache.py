"""Single values that are kept in memory, beside the blocks that they are in."""

from __future__ import annotations

from collections import deque
from typing import Final

from librt.threading import Lock

_OVERHEAD: Final = 150  # bytes of Python's for a key, a value and their place in a dict


class RowCache:
    """Values by key, of so many bytes in all; those kept longest make way for others.

    Who reads takes no lock: that is one dict lookup.  Nor does anybody wait for one: while another
    thread keeps a value, nothing else is kept, and what is not kept will be asked for again.
    """

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.usage = 0
        """Bytes that they take, about."""
        self._in_turn: deque[bytes] = deque()  # their keys, the one kept longest first
        self._lock = Lock()

    def keep(self, key: bytes, value: bytes, limit: int) -> None:
        """Keep a value, within ``limit`` bytes of all of them.  O(1) amortised."""
        charge = _charge(key, value)
        if charge > limit or self._lock.locked():
            return
        with self._lock:
            try:
                values = self.values
                if key in values:
                    return
                while self.usage + charge > limit:
                    oldest = self._in_turn.popleft()
                    self.usage -= _charge(oldest, values.pop(oldest))
                self._in_turn.append(key)
                values[key] = value
                self.usage += charge
            except BaseException:  # Ctrl-C, between any two steps
                self._forget()
                raise

    def clear(self) -> None:
        """Let go of all of them, unless another thread keeps one just now."""
        if self._lock.locked():
            return
        with self._lock:
            self._forget()

    def check(self) -> None:
        """Assert the invariants."""
        with self._lock:
            assert set(self._in_turn) == self.values.keys()
            assert len(self._in_turn) == len(self.values)
            assert self.usage == sum(_charge(*row) for row in self.values.items())

    def _forget(self) -> None:
        self.usage = 0
        self._in_turn = deque()
        self.values = {}


def _charge(key: bytes, value: bytes) -> int:
    return len(key) + len(value) + _OVERHEAD
