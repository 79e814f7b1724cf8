"""What a manual compaction asks of background work, one level at a time."""

from __future__ import annotations


class Cancelled(Exception):
    """The manual compaction at hand is not wanted any more."""


class RangeCompaction:
    """A manual compaction of one level, which goes in steps."""

    def __init__(self, level: int, begin: bytes | None, end: bytes | None) -> None:
        self.level = level
        self.begin = begin
        self.end = end
        self.moved = 0
        """Bytes of the level's tables that went down so far; part of a table, while it is read."""
        self.done = False
        self.cancelled = False
        """Set by the one who asked, and nothing more: the thread puts the request away."""
