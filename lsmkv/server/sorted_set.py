"""The two halves of a sorted set: member -> score, and the members in the order of their scores.

The order is walked from one of its ends, or from a score.  Entries that were removed at an end stay
in the store as deletions until they are compacted.  So the key's entry stores a bound for each end.
A bound is moved past the deletions after every 64 removed entries.
"""

from __future__ import annotations

from collections.abc import Iterator

from lsmkv.server.encoding import (
    DOUBLE,
    MAX_BOUND,
    Entry,
    element_prefix,
    ordered_score,
    ranked_prefix,
    score_of,
    successor,
)
from lsmkv.server.overlay import Overlay

_TIGHTEN_AFTER = 64
_NEGATIVE_ZERO = b"-"

Scored = tuple[bytes, float]
"""A member with its score."""


class SortedSet:
    """A view of a sorted set and its entry, which it changes but does not save.  Costs are in Gets
    (of members) and steps (of the order)."""

    def __init__(self, overlay: Overlay, entry: Entry) -> None:
        self.overlay = overlay
        self.entry = entry
        self._members = element_prefix(entry)
        self._order = ranked_prefix(entry)

    def score(self, member: bytes) -> float | None:
        """The score of a member, or None.  One Get."""
        stored = self.overlay.get(self._members + member)
        if stored is None:
            return None
        score: float = DOUBLE.unpack(stored)[0]
        return score

    def put(self, member: bytes, score: float, old: float | None) -> None:
        """Give a member a score.  ``old`` is its current score; None for a new member."""
        entry = self.entry
        place = ordered_score(score) + member
        if old is None:
            entry.size += 1
        else:
            self._remove_place(ordered_score(old) + member)
        self.overlay.put(self._members + member, DOUBLE.pack(score))
        negative_zero = score == 0 and DOUBLE.pack(score)[0] != 0
        self.overlay.put(self._order + place, _NEGATIVE_ZERO if negative_zero else b"")
        if entry.size == 1 or place[:MAX_BOUND] < entry.low:
            entry.low = place[:MAX_BOUND]
        if entry.size == 1 or place >= entry.high:
            entry.high = _bound_behind(place)
        self._tighten()

    def remove(self, member: bytes, score: float) -> None:
        """Remove a member, which has this score."""
        self.overlay.delete(self._members + member)
        self._remove_place(ordered_score(score) + member)
        self.entry.size -= 1
        self._tighten()

    def _remove_place(self, place: bytes) -> None:
        self.overlay.delete(self._order + place)
        self.entry.removed += 1

    def _tighten(self) -> None:
        """Move the bounds past what was removed at the ends, if that is enough."""
        entry = self.entry
        if entry.removed < _TIGHTEN_AFTER or entry.size == 0:
            return
        entry.removed = 0
        start, stop = self._ends()
        skip = len(self._order)
        for name, _ in self.overlay.scan(start, stop):
            entry.low = name[skip:][:MAX_BOUND]
            break
        for name, _ in self.overlay.scan(start, stop, reverse=True):
            entry.high = _bound_behind(name[skip:])
            break

    def _ends(self) -> tuple[bytes, bytes]:
        return self._order + self.entry.low, self._order + self.entry.high

    def walk(
        self, start: bytes = b"", stop: bytes | None = None, reverse: bool = False
    ) -> Iterator[Scored]:
        """The members from one place in the order up to another: see :func:`place_of`."""
        first, last = self._ends()
        skip = len(self._order)
        if start:
            first = max(first, self._order + start)
        if stop is not None:
            last = min(last, self._order + stop)
        if first >= last:
            return
        for name, value in self.overlay.scan(first, last, reverse):
            score = -0.0 if value else score_of(name[skip : skip + 8])
            yield name[skip + 8 :], score

    def slice(self, start: int, stop: int, reverse: bool = False) -> list[Scored]:
        """The members of ranks ``start`` up to ``stop``: O(the nearer end's distance)."""
        size = self.entry.size
        stop = min(stop, size)
        if start >= stop:
            return []
        turned = size - stop < start
        if turned:
            start, stop = size - stop, size - start
        found: list[Scored] = []
        for at, one in enumerate(self.walk(reverse=reverse is not turned)):
            if at >= stop:
                break
            if at >= start:
                found.append(one)
        return found[::-1] if turned else found

    def rank(self, member: bytes) -> int | None:
        """How many members come before this one; O(the nearer end's distance)."""
        if self.score(member) is None:
            return None
        backward = self.walk(reverse=True)
        for rank, (other, _) in enumerate(self.walk()):
            if other == member:
                return rank
            if next(backward)[0] == member:
                return self.entry.size - 1 - rank
        raise AssertionError("a member has no place in the order")


def place_of(score: float, member: bytes = b"") -> bytes:
    """The place of a member of this score; without a member, the place before all of this score."""
    return ordered_score(score) + member


def place_behind(score: float) -> bytes:
    """The place after all members of this score."""
    behind = successor(ordered_score(score))
    assert behind is not None  # only NaN has eight bytes of 255
    return behind


def _bound_behind(place: bytes) -> bytes:
    """A bound after a place, of at most 73 bytes."""
    if len(place) <= MAX_BOUND:
        return place + b"\0"
    behind = successor(place[:MAX_BOUND])
    assert behind is not None
    return behind
