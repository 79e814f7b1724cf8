"""Snapshots, and the sequences that someone still looks at."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from types import TracebackType
from typing import Any, Protocol

from lsmkv.errors import ClosedError


class LiveSequences:
    """A multiset of sequences, held by snapshots, iterators and running flushes.

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

    def __len__(self) -> int:
        return len(self._sequences) - len(self._released)

    def _settle(self) -> None:
        while self._released:
            sequence = self._released.popleft()
            at = bisect_left(self._sequences, sequence)
            del self._sequences[at]


class SnapshotSource(Protocol):
    """What a snapshot reads from: the store's handle."""

    def get_at(
        self, sequence: int, key: bytes, default: bytes | None, fill_cache: bool, /
    ) -> bytes | None:
        """The value that ``key`` had at ``sequence``."""
        ...

    def iterator_at(self, sequence: int, /, **arguments: Any) -> Any:
        """An iterator over the store as it was at ``sequence``."""
        ...

    def release_at(self, sequence: int, /) -> None:
        """The sequence is no longer looked at by its snapshot."""
        ...


class Snapshot:
    """A store as it was when the snapshot was taken, whatever is written after.

    Costs next to nothing to take; while it is held, versions that it sees are kept on disk.
    Close it, or use it in a ``with`` block; forgetting it does the same.
    """

    def __init__(self, db: SnapshotSource, sequence: int) -> None:
        """``sequence`` is registered already; the snapshot releases it."""
        self._db: SnapshotSource | None = db
        self._sequence = sequence

    def get(
        self,
        key: bytes,
        default: bytes | None = None,
        *,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> bytes | None:
        """As ``DB.get``, at the time of the snapshot."""
        return self._open().get_at(self._sequence, key, default, fill_cache)

    def iterator(self, **arguments: Any) -> Any:
        """As ``DB.iterator``, at the time of the snapshot."""
        return self._open().iterator_at(self._sequence, **arguments)

    def __iter__(self) -> Any:
        return self.iterator()

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._db is None

    def close(self) -> None:
        """Let go of the versions that the snapshot keeps.  Closing twice is harmless."""
        db = self._db
        if db is not None:
            self._db = None
            db.release_at(self._sequence)

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def _open(self) -> SnapshotSource:
        if self._db is None:
            raise ClosedError("the snapshot is closed")
        return self._db
