"""The key list of a memtable: its keys in bytewise order, and the newest version of each.

A memtable makes one once scans have read so much that it pays, and keeps it up to date while few
keys are written between two scans.  It is used under the store's lock.

Fast path: versions that lie in the order of their keys cost a scan no lookup in the dict, which is
in the order in which they were written.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from lsmkv.engine.format.key_order import Position

if TYPE_CHECKING:
    from mypy_extensions import i64


class KeyList:
    """Keys in bytewise order, and their tagged values."""

    __slots__ = ("keys", "tagged")

    def __init__(self, keys: list[bytes], content: dict[bytes, bytes]) -> None:
        """``keys`` are those of ``content``, in order, which this list takes over."""
        self.keys = keys
        self.tagged = [content[key] for key in keys]
        """The newest version of each key, as the memtable has it."""

    def span_beyond(self, edge: Position | None, count: i64, back: bool) -> tuple[i64, i64]:
        """First index and end of the next ``count`` keys after a position, or before it if
        ``back``; None is before all keys, or ``back`` after."""
        size: i64 = len(self.keys)
        at: i64 = size if back else 0
        if edge is not None:
            find = bisect_right if edge.after else bisect_left
            at = find(self.keys, edge.user_key)
        return (max(0, at - count), at) if back else (at, min(size, at + count))

    def write(self, key: bytes, tagged: bytes) -> None:
        """Insert a key, or give it a newer version.  An interrupted call can be done again."""
        at = bisect_left(self.keys, key)
        if at < len(self.keys) and self.keys[at] == key:
            self.tagged[at] = tagged
        else:
            self.keys.insert(at, key)
            self.tagged.insert(at, tagged)
