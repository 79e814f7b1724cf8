"""A scan that steps over empty ranges, and finds them (:mod:`lsmkv.engine.db.tree.empty_ranges`).

It reads the range of a scan in parts, from one empty range to the next, each with its own
iterators.  A long stretch without a pair becomes an empty range.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from mypy_extensions import mypyc_attr

from lsmkv.engine.db.read.internal_iterator import InternalIterator
from lsmkv.engine.db.read.stretch import Stretch
from lsmkv.engine.db.tree.empty_ranges import EmptyRange
from lsmkv.engine.format.key_order import KeyOrder, Position


class Parts(ABC):
    """Factory of the iterators of a scan."""

    @abstractmethod
    def part(
        self,
        edge: Position | None,
        bound: Position | None,
        back: bool,
        stretch: Stretch | None,
    ) -> InternalIterator:
        """The pairs from an edge to a bound; ``stretch`` learns of empty reads."""


@mypyc_attr(free_list_len=1)
class WatchedScan(InternalIterator):
    """The pairs of a scan in one direction."""

    def __init__(
        self,
        parts: Parts,
        order: KeyOrder,
        stretch: Stretch,
        edge: Position | None,
        bound: Position | None,
        back: bool,
    ) -> None:
        """From an edge to a bound; ``stretch`` has the ranges, and the sequence of the scan."""
        self._parts = parts
        self._order = order
        self._bound = bound
        self._back = back
        self._stretch = stretch
        self._last: list[Any] = []  # the last chunk of this part
        self._begin: Position | None = None  # where the part begins
        self._stop: Position | None = None  # where it ends
        self._next: EmptyRange | None = None  # the range there, if it is not the scan's bound
        self.part = self._part_from(edge)
        """The part that is being read; None at the end."""

    def next_chunk(self) -> list[Any]:
        """The next pairs."""
        stretch = self._stretch
        stretch.next_chunk()
        try:
            while self.part is not None:
                pairs = self.part.next_chunk()
                if stretch.is_long or (not pairs and self._next is not None):
                    self._end_stretch(pairs)
                self._last = pairs
                if pairs:
                    return pairs
                known = self._next
                edge = None if known is None else known.lower if self._back else known.upper
                self.part = None if edge is None else self._part_from(edge)
        except BaseException:
            stretch.give_up()
            raise
        return []

    def _part_from(self, edge: Position | None) -> InternalIterator | None:
        """The part from a position on; None if nothing is left."""
        back = self._back
        bound = self._bound
        known: EmptyRange | None = None
        ranges = self._stretch.ranges
        while ranges.active:
            known = ranges.next_from(edge, self._stretch.sequence, back)
            if known is None:
                break
            near = known.upper if back else known.lower
            far = known.lower if back else known.upper
            if near is not None and (edge is None or self._is_before(edge, near)):
                if bound is None or self._is_before(near, bound):
                    bound = near
                else:
                    known = None
                break
            # The position is in the range.
            if far is None or (bound is not None and not self._is_before(far, bound)):
                return None
            edge = far
        self._begin = edge
        self._stop = bound
        self._next = known
        return self._parts.part(edge, bound, back, self._stretch)

    def _is_before(self, position: Position, other: Position) -> bool:
        """Return True if the scan reaches one position before the other."""
        order = self._order
        return order.is_before(other, position) if self._back else order.is_before(position, other)

    def _end_stretch(self, pairs: list[Any]) -> None:
        """End the stretch at the pairs that were found, or at the end of the part.

        A part before a range in which there is nothing is joined to it, however short.
        """
        back = self._back
        begin = self._begin
        last = self._last
        if last:
            begin = Position(last[0 if back else len(last) - 1][0], after=not back)
        stop = self._stop
        if pairs:
            stop = Position(pairs[len(pairs) - 1 if back else 0][0], after=back)
        if back:
            self._stretch.end(stop, begin)
        else:
            self._stretch.end(begin, stop)
