"""Removed records that are still in the store: a queue of ranges, swept in bounded steps.

The queue's entries are numbered and its two ends are stored, so a Get finds the first entry.  No
scan walks over entries that were deleted before it.  For the same reason an entry stores the
position of its sweep.
"""

from __future__ import annotations

from lsmkv.server.encoding import GARBAGE, GARBAGE_ENDS, TWO_U64, U32, U64
from lsmkv.server.records import Records


class GarbageQueue:
    """A first-in, first-out queue of prefixes whose keys are all to be deleted."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self.reload()

    def reload(self) -> None:
        """Use the ends that are stored."""
        stored = self._records.get(GARBAGE_ENDS)
        self._first: int = 0
        self._next: int = 0
        if stored is not None:
            self._first, self._next = TWO_U64.unpack(stored)

    def __len__(self) -> int:
        return self._next - self._first

    def add(self, prefix: bytes) -> None:
        """Queue all keys that begin with ``prefix`` for deletion.  None may be written after this
        call."""
        self._put(self._next, prefix, b"")
        self._next += 1
        self._put_ends()

    def first(self) -> tuple[bytes, bytes] | None:
        """The prefix that is being swept, and the key to continue from; None if the queue is empty.

        The key is empty before the first step.
        """
        if self._first == self._next:
            return None
        record = self._records.get(GARBAGE + U64.pack(self._first))
        assert record is not None
        prefix = prefix_of(record)
        return prefix, record[4 + len(prefix) :]

    def move(self, prefix: bytes, position: bytes) -> None:
        """Record that the first prefix is swept up to ``position``."""
        self._put(self._first, prefix, position)

    def drop_first(self) -> None:
        """Remove the first prefix, which is swept."""
        self._records.delete(GARBAGE + U64.pack(self._first))
        self._first += 1
        self._put_ends()

    def _put(self, number: int, prefix: bytes, position: bytes) -> None:
        record = U32.pack(len(prefix)) + prefix + position
        self._records.put(GARBAGE + U64.pack(number), record)

    def _put_ends(self) -> None:
        self._records.put(GARBAGE_ENDS, TWO_U64.pack(self._first, self._next))


def prefix_of(record: bytes) -> bytes:
    """The prefix that an entry's record names."""
    (length,) = U32.unpack_from(record)
    return record[4 : 4 + length]
