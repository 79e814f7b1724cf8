"""The two halves of a sorted set: member -> score, and the members in the order of their scores.

The order is walked from one of its ends, or from a score.  Entries that were removed at an end stay
in the store as deletions until they are compacted.  So the key's entry stores a bound for each end.
A bound is moved past the deletions after every 64 removed entries.

``ranks.py`` keeps how many members stand in each part of the order.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

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
from lsmkv.server.ranks import Blocks, Cut, Ranks, separator
from lsmkv.server.records import Records

_TIGHTEN_AFTER = 64
_FEW = 64
"""Members up to which a count does not look at ranks."""
_NEGATIVE_ZERO = b"-"

Scored = tuple[bytes, float]
"""A member with its score."""


class SortedSet:
    """A view of a sorted set and its entry, which it changes but does not save.  Costs are in Gets
    (of members) and steps (of the order)."""

    def __init__(self, records: Records, entry: Entry, ranks: Ranks) -> None:
        self.records = records
        self.entry = entry
        self._ranks = ranks
        self._members = element_prefix(entry)
        self._order = ranked_prefix(entry)

    def score(self, member: bytes) -> float | None:
        """The score of a member, or None.  One Get."""
        stored = self.records.get(self._members + member)
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
        self.records.put(self._members + member, DOUBLE.pack(score))
        negative_zero = score == 0 and DOUBLE.pack(score)[0] != 0
        self.records.put(self._order + place, _NEGATIVE_ZERO if negative_zero else b"")
        if entry.size == 1 or place[:MAX_BOUND] < entry.low:
            entry.low = place[:MAX_BOUND]
        if entry.size == 1 or place >= entry.high:
            entry.high = _bound_behind(place)
        blocks = self._ranks.get(entry.version)
        if blocks is not None:
            blocks.add(place)
        self._tighten()

    def remove(self, member: bytes, score: float) -> None:
        """Remove a member with this score."""
        self.records.delete(self._members + member)
        self._remove_place(ordered_score(score) + member)
        self.entry.size -= 1
        self._tighten()

    def _remove_place(self, place: bytes) -> None:
        self.records.delete(self._order + place)
        self.entry.removed += 1
        blocks = self._ranks.get(self.entry.version)
        if blocks is not None:
            blocks.remove(place, self._ranks.block_length(self.entry.size))

    def _tighten(self) -> None:
        """Move the bounds past what was removed at the ends, if that is enough."""
        entry = self.entry
        if entry.removed < _TIGHTEN_AFTER or entry.size == 0:
            return
        entry.removed = 0
        start, stop = self._ends()
        skip = len(self._order)
        for name, _ in self.records.scan(start, stop):
            entry.low = name[skip:][:MAX_BOUND]
            break
        for name, _ in self.records.scan(start, stop, reverse=True):
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
        for name, value in self.records.scan(first, last, reverse):
            score = -0.0 if value else score_of(name[skip : skip + 8])
            yield name[skip + 8 :], score

    def slice(self, start: int, stop: int, reverse: bool = False) -> list[Scored]:
        """The members of ranks ``start`` up to ``stop``: O(their number), and what :meth:`rank`
        costs."""
        size = self.entry.size
        stop = min(stop, size)
        if start >= stop:
            return []
        if reverse:
            start, stop = size - stop, size - start
        count = stop - start
        near = self._ranks.block_length(size)
        if start <= near:
            found = list(islice(self.walk(), start, stop))
        elif size - stop <= near:
            found = list(islice(self.walk(reverse=True), size - stop, size - start))[::-1]
        else:
            found = list(islice(self.walk(self._place_at(start)), count))
        return found[::-1] if reverse else found

    def rank(self, member: bytes) -> int | None:
        """The number of members before this one.

        O(the distance from the nearer end), or a block at most where the order is cut into blocks.
        """
        score = self.score(member)
        return None if score is None else self._rank_of(place_of(score, member))

    def count(self, start: bytes = b"", stop: bytes | None = None) -> int:
        """The number of members from one place up to another.

        As :meth:`rank` for each of the places, but O(their number) if that is less.
        """
        if stop is not None and start >= stop:
            return 0
        blocks = self._ranks.get(self.entry.version)
        spent = 0 if blocks is None else blocks.walked
        most = max(_FEW, self._cost_of_rank(start) + self._cost_of_rank(stop) - spent)
        number = sum(1 for _ in islice(self._places(start, stop), most))
        if number == most:
            number = self._rank_of(stop) - self._rank_of(start)
            spent = 0
        elif number > _FEW:
            spent += number
        if spent:
            self._ranks.learn(self.entry.version, self.entry.size).walked = spent
        elif blocks is not None:
            blocks.walked = 0
        return number

    # Ranks

    def _places(self, start: bytes, stop: bytes | None, reverse: bool = False) -> Iterator[bytes]:
        """The places of the members from one place up to another."""
        first, last = self._ends()
        skip = len(self._order)
        first = max(first, self._order + start)
        if stop is not None:
            last = min(last, self._order + stop)
        if first < last:
            # Not timed: a walk for a rank that is not finished would teach nothing.
            for name, _ in self.records.scan(first, last, reverse, timed=False):
                yield name[skip:]

    def _walk_places(self, start: bytes, stop: bytes | None, reverse: bool = False) -> _Walk:
        length = self._ranks.block_length(self.entry.size)
        return _Walk(self._places(start, stop, reverse), length, reverse)

    def _cost_of_rank(self, place: bytes | None) -> int:
        """About how many steps :meth:`_rank_of` would take."""
        if place is None or place >= self.entry.high or place <= self.entry.low:
            return 0
        blocks = self._ranks.get(self.entry.version)
        return (self.entry.size if blocks is None else blocks.counts[blocks.at(place)]) // 2

    def _rank_of(self, place: bytes | None) -> int:
        """The number of members before a place, or of all if it is None."""
        if place is None:
            return self.entry.size
        blocks = self._ranks.get(self.entry.version) or Blocks(self.entry.size)
        at = blocks.at(place)
        count = blocks.counts[at]
        front = self._walk_places(blocks.starts[at], place)
        back = self._walk_places(place, blocks.end(at), reverse=True)
        while True:
            if not front.step():
                rank = front.passed
                break
            if not back.step():
                rank = count - back.passed
                break
        rank += blocks.before(at)
        self._cut(at, front.cuts, back.cuts)
        return rank

    def _place_at(self, rank: int) -> bytes:
        """The place of the member of a rank, which exists."""
        blocks = self._ranks.get(self.entry.version) or Blocks(self.entry.size)
        at, before = blocks.holding(rank)
        behind = blocks.counts[at] - before - 1
        reverse = behind < before
        walk = self._walk_places(blocks.starts[at], blocks.end(at), reverse)
        for _ in range(1 + (behind if reverse else before)):
            walk.step()
        if reverse:
            self._cut(at, [], walk.cuts)
        else:
            self._cut(at, walk.cuts, [])
        return walk.place

    def _cut(self, at: int, front: list[Cut], back: list[Cut]) -> None:
        if front or back:
            self._ranks.learn(self.entry.version, self.entry.size).cut(at, front, back)


class _Walk:
    """A walk over places that notes where it cuts a block."""

    def __init__(self, places: Iterator[bytes], length: int, reverse: bool) -> None:
        self._places = places
        self._length = length
        self._reverse = reverse
        self._since = 0
        """Members that were passed over since the last cut."""
        self.place = b""
        self.passed = 0
        self.cuts: list[Cut] = []

    def step(self) -> bool:
        """Move to the next member.  Returns whether there is one."""
        place = next(self._places, None)
        if place is None:
            return False
        if self._since >= self._length:
            low, high = (place, self.place) if self._reverse else (self.place, place)
            cut = separator(low, high)
            if len(cut) <= MAX_BOUND:
                self.cuts.append((cut, self._since))
                self._since = 0
        self.place = place
        self.passed += 1
        self._since += 1
        return True


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
