"""The memtable iterator: the part of a scan that reads a memtable.

Each chunk is read under the store's lock; between two chunks the lock is free.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsmkv.engine.db.read.internal_iterator import InternalIterator
from lsmkv.engine.db.tree.memtable import LARGEST_CHUNK, MemTable
from lsmkv.engine.format.key_order import KeyOrder, Position
from lsmkv.engine.table.deletion_run import entries_before, entries_from

if TYPE_CHECKING:
    from mypy_extensions import i64


class MemTableIterator(InternalIterator):
    """The entries of a memtable that are visible at a sequence, from an edge to a bound.

    A write that comes between two chunks has a later sequence, and so is not visible.
    """

    def __init__(
        self,
        memtable: MemTable,
        order: KeyOrder,
        sequence: int,
        edge: Position | None,
        bound: Position | None,
        back: bool,
        first_chunk: i64,
    ) -> None:
        """``first_chunk`` keys are read at first, then twice as many each time; ``back`` says which
        way."""
        self._memtable = memtable
        self._order = order
        self._sequence = sequence
        self._edge = edge
        self._bound = bound
        self._back = back
        self._count: i64 = first_chunk
        self._ended = False
        self._deletions = True

    def read_pairs(self) -> None:
        """Return pairs without deletions.  Call it before the first chunk."""
        self._deletions = False

    def next_chunk(self) -> list[Any]:
        """The next pairs, including deletions, unless only pairs are requested."""
        found: list[Any] = []
        back = self._back
        bound = self._bound
        while not found and not self._ended:
            last = self._memtable.visible(
                self._edge, self._count, self._sequence, back, found, self._deletions
            )
            if last is None:
                self._ended = True
                break
            self._edge = Position(last, not back)
            self._count = min(2 * self._count, LARGEST_CHUNK)
            if bound is not None and self._order.is_at_or_after(last, bound) != back:
                self._ended = True
                cut = entries_from if back else entries_before
                found = cut(found, bound, self._order)
            if not found:
                self.note_empty_read()
        return found
