"""The writes of a transaction in the order of their keys, for its iterators.

They are in the transaction's own memtable, which the merging iterator reads before all sources
of the store, and whose sequences number the transaction's operations.  It is made by the first
iterator: a transaction that iterates over nothing pays nothing for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsmkv.engine.db.read.internal_iterator import InternalIterator
from lsmkv.engine.db.read.memtable_iterator import MemTableIterator
from lsmkv.engine.db.tree.memtable import MemTable
from lsmkv.engine.db.tree.pinned import Pin, PinnedSequences
from lsmkv.engine.db.tree.store_lock import StoreLock
from lsmkv.engine.format.batch import Operation
from lsmkv.engine.format.key_order import KeyOrder, Position
from lsmkv.engine.util.comparator import Comparator

if TYPE_CHECKING:
    from mypy_extensions import i64


class OwnWrites:
    """The writes of a transaction up to one of them, as an iterator sees them."""

    __slots__ = ("_memtable", "_order", "_pin")

    def __init__(self, memtable: MemTable, order: KeyOrder, pin: Pin) -> None:
        """Only this object uses ``pin``."""
        self._memtable = memtable
        self._order = order
        self._pin = pin

    def source(
        self, edge: Position | None, bound: Position | None, back: bool, first_chunk: i64
    ) -> InternalIterator:
        """The writes from an edge to a bound: see :class:`MemTableIterator`."""
        return MemTableIterator(
            self._memtable, self._order, self._pin.sequence, edge, bound, back, first_chunk
        )


class OrderedWrites:
    """The writes of a transaction so far, in order."""

    def __init__(self, comparator: Comparator, order: KeyOrder) -> None:
        self._lock = StoreLock()
        self._memtable = MemTable(comparator, self._lock)
        self._order = order
        self._pinned = PinnedSequences()
        self._count = 0

    def now(self, operations: list[Operation]) -> OwnWrites | None:
        """The writes as they are now, pinned; None if there are none.

        ``operations`` are all operations of the transaction so far, in the order in which it made
        them.  O(n log n) in those that were added since the last call.
        """
        lock = self._lock
        lock.refuse_to_wait("an iterator of the same transaction")
        with lock.nested, lock.guard:
            added = operations[self._count :]
            if added:
                newest = self._pinned.newest()
                self._memtable.add(self._count + 1, added, newest, self._pinned.in_order())
                self._memtable.applying = None
                self._count += len(added)
            if self._count == 0:
                return None
            return OwnWrites(self._memtable, self._order, Pin(self._pinned, self._count))
