"""A stretch of a scan without a pair: it becomes an empty range once it is long enough
(:mod:`lsmkv.engine.db.tree.empty_ranges`).

The iterators of a scan share it, and report each empty read to it: one that has found no pair.  It
refers to none of them, so that all are freed as soon as the scan ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from lsmkv.engine.db.tree.empty_ranges import EmptyRange, EmptyRanges
from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.env.interrupts import allow_interrupts
from lsmkv.engine.format.key_order import Position

if TYPE_CHECKING:
    from mypy_extensions import i64


@mypyc_attr(free_list_len=1)
class Stretch:
    """The empty reads since the last pair, for a scan at a sequence."""

    __slots__ = ("_search", "_store", "has_pairs", "later", "ranges", "reads", "sequence")

    def __init__(self, store: Store, ranges: EmptyRanges, sequence: i64) -> None:
        self._store = store
        self.ranges = ranges
        """The empty ranges of the view that the scan reads."""
        self.sequence: i64 = sequence
        self._search: list[bytes] | None = None
        self.reads: i64 = 0
        """Empty reads before the first pair of the chunk that is being read."""
        self.has_pairs = False
        """True if the chunk being read has a pair: empty reads are then those before the next
        chunk."""
        self.later: i64 = 0
        """Empty reads after the last pair of that chunk."""

    @property
    def is_long(self) -> bool:
        """True if the stretch may become a range."""
        return self._search is not None or self.reads >= self.ranges.shortest

    def next_chunk(self) -> None:
        """Begin with another chunk."""
        self.reads = self.later
        self.later = 0
        self.has_pairs = False

    def note_empty_read(self) -> None:
        """Count an empty read, and let signals and other threads in."""
        allow_interrupts()
        if self.has_pairs:
            self.later += 1
            return
        self.reads += 1
        if self._search is None and self.reads == self.ranges.shortest:
            lock = self._store.lock
            if not lock.mine():
                with lock.nested, lock.guard:
                    self._begin()

    def end(self, lower: Position | None, upper: Position | None) -> None:
        """End the stretch, long or not, which lies between these positions."""
        lock = self._store.lock
        if lock.mine():
            return
        found = EmptyRange(lower, upper, self.sequence, self.reads)
        with lock.nested, lock.guard:
            if self._search is None:
                self._begin()
            self._finish(found)

    def give_up(self) -> None:
        """Discard the stretch, since the scan has failed in the middle of it."""
        lock = self._store.lock
        if self._search is not None and not lock.mine():
            with lock.nested, lock.guard:
                self._finish(None)

    def _begin(self) -> None:
        """Have puts noted, unless there were any since the scan was made.  Caller holds the store's
        lock."""
        store = self._store
        if self.ranges is store.empty_ranges and store.versions.last_sequence == self.sequence:
            self._search = []
            self.ranges.begin(self._search)

    def _finish(self, found: EmptyRange | None) -> None:
        """End the search, if there is one.  Caller holds the store's lock."""
        search = self._search
        if search is not None:
            self.ranges.end(search, found if self.ranges is self._store.empty_ranges else None)
            self._search = None
