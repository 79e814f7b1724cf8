"""The sequences that someone still looks at."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque


class LiveSequences:
    """A multiset of sequences, held by snapshots and iterators.

    ``register``, ``newest`` and ``oldest`` are called under the store's lock.  ``release`` takes
    no lock at all, since finalizers call it and may run at any moment: what is released is noted,
    and taken into account by the next call under the lock.
    """

    def __init__(self) -> None:
        self._sequences: list[int] = []  # rising: sequences are registered as they are made
        self._released: deque[int] = deque()

    def register(self, sequence: int) -> None:
        """Keep what is visible at ``sequence``.  Caller holds the lock."""
        self._settle()
        at = len(self._sequences)
        if at > 0 and self._sequences[-1] > sequence:
            at = bisect_left(self._sequences, sequence)
        self._sequences.insert(at, sequence)

    def release(self, sequence: int) -> None:
        """Undo one :meth:`register`.  Any thread, any time."""
        self._released.append(sequence)

    def newest(self) -> int:
        """The newest live sequence, or -1.  Caller holds the lock."""
        if self._released:
            self._settle()
        return self._sequences[-1] if self._sequences else -1

    def oldest(self, otherwise: int) -> int:
        """The oldest live sequence, or ``otherwise``.  Caller holds the lock."""
        if self._released:
            self._settle()
        return self._sequences[0] if self._sequences else otherwise

    def all(self) -> list[int]:
        """The live sequences, rising, each once.  Caller holds the lock."""
        self._settle()
        return sorted(set(self._sequences))

    def __len__(self) -> int:
        return len(self._sequences) - len(self._released)

    def _settle(self) -> None:
        while self._released:
            sequence = self._released.popleft()
            at = bisect_left(self._sequences, sequence)
            if at < len(self._sequences) and self._sequences[at] == sequence:
                del self._sequences[at]
