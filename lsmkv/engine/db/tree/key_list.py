"""The key list of a memtable: its keys in bytewise order, and which are known to be deleted.

A memtable makes one once scans have read so much that it pays, and keeps it up to date while few
keys are written between two scans.  It is used under the store's lock.

Fast path: the marks are bytes, so that a scan steps over any number of deleted keys by one search
in C.  A program that uses a store as a queue, and so begins each scan before all that it has
deleted, does not look at these keys again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from lsmkv.engine.format.key_order import Position

if TYPE_CHECKING:
    from mypy_extensions import i64

_LEFT = b"\0"


class KeyList:
    """Keys in bytewise order, each with a mark."""

    __slots__ = ("_marks", "keys")

    def __init__(self, keys: list[bytes]) -> None:
        """``keys`` are in order, and become this list's own."""
        self.keys = keys
        self._marks = bytearray(len(keys))

    def index_at(self, edge: Position | None, back: bool) -> i64:
        """Index of the first key after a position; None is before all keys, or ``back`` after."""
        if edge is None:
            return len(self.keys) if back else 0
        if edge.after:
            return bisect_right(self.keys, edge.user_key)
        return bisect_left(self.keys, edge.user_key)

    def first_left(self, at: i64) -> i64:
        """Index of the first key from index ``at`` on without a mark; else the number of keys."""
        found: i64 = self._marks.find(_LEFT, at)
        return len(self.keys) if found < 0 else found

    def end_of_left(self, stop: i64) -> i64:
        """Index after the last key before index ``stop`` without a mark; else 0."""
        found: i64 = self._marks.rfind(_LEFT, 0, stop)
        return found + 1

    def span_beyond(
        self, edge: Position | None, count: i64, back: bool, deletions: bool
    ) -> tuple[i64, i64]:
        """First index and end of the next ``count`` keys after a position, or before it if
        ``back``.  Without ``deletions``, marked keys next to the position are not counted."""
        at = self.index_at(edge, back)
        if back:
            stop = at if deletions else self.end_of_left(at)
            return max(0, stop - count), stop
        if not deletions:
            at = self.first_left(at)
        return at, min(len(self.keys), at + count)

    def marks(self, at: i64, stop: i64) -> bytes:
        """The marks of these keys: a byte for each, 1 if it is marked."""
        return bytes(self._marks[at:stop])

    def mark(self, at: i64) -> None:
        """Mark a key: its newest version is a deletion, and no older version is kept."""
        self._marks[at] = 1

    def write(self, key: bytes) -> None:
        """Insert a key, or take its mark away: it was written to."""
        at = bisect_left(self.keys, key)
        if at < len(self.keys) and self.keys[at] == key:
            self._marks[at] = 0
        else:
            self.keys.insert(at, key)
            self._marks.insert(at, 0)
