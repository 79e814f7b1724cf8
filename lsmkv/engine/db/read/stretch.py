"""A stretch of a scan without a pair: it becomes an empty range once it is long enough
(:mod:`lsmkv.engine.db.tree.empty_ranges`).

The iterators of a scan share it, and tell it of each empty read: one that has brought no pair.  It
refers to none of them, so that all are freed as soon as the scan ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from lsmkv.engine.db.tree.empty_ranges import EmptyRange
from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.env.interrupts import allow_interrupts
from lsmkv.engine.format.key_order import Position

if TYPE_CHECKING:
    from mypy_extensions import i64


@mypyc_attr(free_list_len=1)
class Stretch:
    """The empty reads since the last pair, for a scan at a sequence."""

    __slots__ = ("_search", "_sequence", "_store", "reads")

    def __init__(self, store: Store, sequence: i64) -> None:
        self._store = store
        self._sequence: i64 = sequence
        self._search: list[bytes] | None = None
        self.reads: i64 = 0

    @property
    def is_long(self) -> bool:
        """Whether puts are noted, since the stretch may become a range."""
        return self._search is not None

    def note_empty_read(self) -> None:
        """Count it, and let signals and other threads in."""
        allow_interrupts()
        self.reads += 1
        store = self._store
        if self.reads == store.empty_ranges.shortest:
            lock = store.lock
            if not lock.mine():
                with lock.nested, lock.guard:
                    self._begin()

    def end(self, lower: Position | None, upper: Position | None) -> None:
        """The stretch, long or not, was between these positions."""
        store = self._store
        lock = store.lock
        if lock.mine():
            return
        found = EmptyRange(lower, upper, self._sequence, self.reads)
        with lock.nested, lock.guard:
            if self._search is None:
                self._begin()
            search = self._search
            if search is not None:
                self._search = None
                store.empty_ranges.end(search, found)

    def give_up(self) -> None:
        """The scan has failed in the middle of it."""
        search = self._search
        lock = self._store.lock
        if search is not None and not lock.mine():
            self._search = None
            with lock.nested, lock.guard:
                self._store.empty_ranges.end(search, None)

    def _begin(self) -> None:
        """Have puts noted, unless there were any since the scan was made.  Caller holds the store's
        lock."""
        store = self._store
        if store.versions.last_sequence == self._sequence:
            self._search = store.empty_ranges.begin()
