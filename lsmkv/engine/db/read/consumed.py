"""Consumed ranges: how far the iterators of a serializable transaction have read.

A write into such a range by another writer would have changed what the transaction saw, even if the
key was not there before (a phantom).  So the commit checks them
(:mod:`lsmkv.engine.db.handles.transaction`).  One thread at a time uses these objects.
"""

from __future__ import annotations

from typing import Any, Final

from lsmkv.engine.db.read.scan import Bounds
from lsmkv.engine.format.key_order import KeyOrder, Position

_MOST_APART: Final = 256
"""The least number of separate ranges before they are joined."""


class ConsumedRange:
    """The keys that one iterator has passed since it was placed: the hull of its positions.

    It is empty while the iterator has not moved, and never shrinks: a step back passes keys that
    are already in it.
    """

    __slots__ = ("_below_all", "_beyond_all", "_high", "_low", "listed", "order")

    def __init__(self, order: KeyOrder, gap: Position | None, at_end: bool) -> None:
        """``gap`` is the position of the iterator; None is before all keys, or ``at_end`` after
        them."""
        self.order = order
        self._low = gap
        self._high = gap
        self._beyond_all = gap is None and at_end
        """True while the lower end is after all keys.  If it is False and ``_low`` is None, the
        lower end is before all keys."""
        self._below_all = gap is None and not at_end
        """True while the upper end is before all keys."""
        self.listed = False
        """True if this object is among the ranges of the transaction."""

    def rise(self, position: Position | None) -> None:
        """Extend the range to a position to which the iterator has moved up; None is after all
        keys."""
        if self._below_all:
            self._below_all = False
            self._high = position
        elif self._high is not None and (
            position is None or self.order.is_before(self._high, position)
        ):
            self._high = position

    def sink(self, position: Position | None) -> None:
        """Extend the range to a position to which the iterator has moved down; None is before all
        keys."""
        if self._beyond_all:
            self._beyond_all = False
            self._low = position
        elif self._low is not None and (
            position is None or self.order.is_before(position, self._low)
        ):
            self._low = position

    def bounds(self) -> Bounds | None:
        """The range as it is now; None if no key can be in it."""
        low = self._low
        high = self._high
        if self._beyond_all or self._below_all:
            return None
        if low is not None and high is not None and not self.order.is_before(low, high):
            return None
        return Bounds(low, high)


class ConsumedRanges:
    """The ranges that the iterators of one transaction have consumed."""

    def __init__(self, order: KeyOrder) -> None:
        self.order = order
        self._joined: list[Bounds] = []  # ascending and disjoint
        self._added: list[ConsumedRange] = []

    def add(self, consumed: ConsumedRange) -> None:
        """Add the range of an iterator, which may grow until the ranges are joined.

        :attr:`ConsumedRange.listed` says until when: an iterator that moves later adds its range
        again.  So a transaction that seeks a million times in the same range keeps few ranges.
        """
        if consumed.listed:
            return
        consumed.listed = True
        self._added.append(consumed)
        if len(self._added) > _MOST_APART + len(self._joined):
            self.join()

    def join(self) -> list[Bounds]:
        """All ranges so far, in ascending order; those that overlap or touch are merged.  O(n log
        n)."""
        found = self._joined
        for consumed in self._added:
            consumed.listed = False
            bounds = consumed.bounds()
            if bounds is not None:
                found.append(bounds)
        self._added = []
        found.sort(key=self._lower_end)
        joined: list[Bounds] = []
        for bounds in found:
            last = joined[-1] if joined else None
            if last is None or not self._touches(last, bounds):
                joined.append(Bounds(bounds.lower, bounds.upper))
            elif last.upper is not None and (
                bounds.upper is None or self.order.is_before(last.upper, bounds.upper)
            ):
                last.upper = bounds.upper
        self._joined = joined
        return joined

    def _touches(self, bounds: Bounds, following: Bounds) -> bool:
        """Return True if no key lies between two ranges, of which the second begins no earlier."""
        upper, lower = bounds.upper, following.lower
        return upper is None or lower is None or not self.order.is_before(upper, lower)

    def _lower_end(self, bounds: Bounds) -> tuple[Any, ...]:
        lower = bounds.lower
        return () if lower is None else (self.order.of(lower.user_key), lower.after)
