"""Ranges of large sets in which every member was removed.

Random places in a set lead to the members after its gaps again and again.  So that is where
removed members gather, and every later place in such a gap would pass over all of them.
"""

from __future__ import annotations

from sortedcontainers import SortedDict

_MOST_SETS = 16
_MOST_RANGES = 4096


class RemovedRanges:
    """Ranges without a record, in memory, by the version of a set.

    A range holds until a member is added, for which :meth:`fill` must be called, or until a removal
    is undone, for which :meth:`forget` must be called.
    """

    def __init__(self) -> None:
        self._ranges: dict[int, SortedDict] = {}
        """The end of each range, which is outside it, by its start."""

    def forget(self) -> None:
        """Forget all ranges."""
        self._ranges.clear()

    def skip(self, version: int, place: bytes) -> bytes:
        """Return the place from which a scan may start instead of a given one.  O(log n)."""
        ranges = self._ranges.get(version)
        if ranges is not None:
            at = ranges.bisect_right(place) - 1
            if at >= 0:
                end: bytes = ranges.peekitem(at)[1]
                return max(place, end)
        return place

    def learn(self, version: int, start: bytes, end: bytes) -> None:
        """Note that no record is at ``start`` or after it, up to ``end``."""
        if start >= end:
            return
        ranges = self._ranges.get(version)
        if ranges is None:
            if len(self._ranges) >= _MOST_SETS:
                self.forget()
            ranges = self._ranges[version] = SortedDict()
        elif len(ranges) >= _MOST_RANGES:
            ranges.clear()
        at = ranges.bisect_right(start) - 1
        if at >= 0 and ranges.peekitem(at)[1] >= start:
            start, known = ranges.popitem(at)
            end = max(end, known)
        else:
            at += 1
        while at < len(ranges) and ranges.peekitem(at)[0] <= end:
            end = max(end, ranges.popitem(at)[1])
        ranges[start] = end

    def fill(self, version: int, name: bytes) -> None:
        """Note that a record is added."""
        ranges = self._ranges.get(version)
        if ranges is not None:
            at = ranges.bisect_right(name) - 1
            if at >= 0 and name < ranges.peekitem(at)[1]:
                ranges.popitem(at)
