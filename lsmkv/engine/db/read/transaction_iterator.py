"""TransactionIterator: the iterator of a transaction, which sees its snapshot and its own writes.

``Transaction.iterator`` makes it; one thread at a time uses it.  The transaction's writes are one
more source of the scan.  A serializable transaction also remembers which ranges were consumed.
"""

from __future__ import annotations

from typing import Any, Final, cast

from mypy_extensions import mypyc_attr

from lsmkv.engine.db.read.consumed import ConsumedRange, ConsumedRanges
from lsmkv.engine.db.read.iterator import IteratorArguments, LimitedIterator, checked_limit
from lsmkv.engine.db.read.own_writes import OrderedWrites, OwnWrites
from lsmkv.engine.db.read.scan import Bounds
from lsmkv.engine.db.tree.store import ReadView, Store, View
from lsmkv.engine.errors import ClosedError
from lsmkv.engine.format.batch import Operation
from lsmkv.engine.format.key_order import Position
from lsmkv.engine.util.entry_type import Entry_co

_NO_LIMIT: Final = 1 << 60
"""More entries than a store can have."""


class TransactionIterators:
    """State shared by the iterators of one transaction: its writes in order, and the ranges that
    they have consumed."""

    def __init__(self, store: Store, recorded: bool) -> None:
        """``recorded`` says whether a commit will check the ranges."""
        self._store = store
        self._writes = OrderedWrites(store.options.comparator, store.order)
        self.ranges = ConsumedRanges(store.order) if recorded else None
        self.over = False
        """True if the transaction has ended."""

    def make(
        self,
        owner: object,
        arguments: IteratorArguments,
        sequence: int,
        fixed: View | None,
        operations: list[Operation],
    ) -> TransactionIterator[Any]:
        """An iterator over the store as it was at a ``sequence`` (see :meth:`Reader.iterator`), and
        over the operations of the transaction so far."""
        store = self._store
        own_writes = self._writes.now(operations)
        read = store.read_view(sequence, fixed)
        try:
            # Any: compiled, a limit of another type would fail here, with mypyc's own words.
            given = cast(dict[str, Any], arguments).get("limit")
            limit = _NO_LIMIT if given is None else checked_limit(given)
            return TransactionIterator(store, read, owner, arguments, limit, own_writes, self)
        except BaseException as error:
            store.give_up(read, error)
            raise

    def consumed(self) -> list[Bounds]:
        """The ranges that a commit checks."""
        return [] if self.ranges is None else self.ranges.join()


@mypyc_attr(allow_interpreted_subclasses=True)  # as what it derives from
class TransactionIterator(LimitedIterator[Entry_co]):
    """Iterates over a range as the transaction saw it when the iterator was made.

    Each step adds the key that it passes to the consumed range, and a step that finds the end of
    the iterator's range adds what is left of it.  What was read ahead is not consumed.
    """

    def __init__(
        self,
        store: Store,
        read: ReadView,
        owner: object,
        arguments: IteratorArguments,
        limit: int,
        own_writes: OwnWrites | None,
        shared: TransactionIterators,
    ) -> None:
        super().__init__(store, read, owner, arguments, limit)
        self._open_scan().own_writes = own_writes
        self._shared = shared
        self._consumed = ConsumedRange(store.order, self._gap, self._at_end)

    def __next__(self) -> Entry_co:
        """As in the base class, without its fast path, which would pass keys unseen."""
        if self._left <= 0:
            self._open_scan()
            raise StopIteration
        pair = self._step_back() if self._window.reverse else self._step()
        if pair is None:
            raise StopIteration
        self._left -= 1
        return cast(Entry_co, self._window.shape(pair))

    def _was_placed(self) -> None:
        super()._was_placed()
        self._consumed = ConsumedRange(self._consumed.order, self._gap, self._at_end)

    def _step(self) -> Any:
        self._refuse_over()
        pair = super()._step()
        if self._shared.ranges is not None:
            upper = self._bounds.upper if pair is None else Position(pair[0], after=True)
            self._consumed.rise(upper)
            self._shared.ranges.add(self._consumed)
        return pair

    def _step_back(self) -> Any:
        self._refuse_over()
        pair = super()._step_back()
        if self._shared.ranges is not None:
            lower = self._bounds.lower if pair is None else Position(pair[0], after=False)
            self._consumed.sink(lower)
            self._shared.ranges.add(self._consumed)
        return pair

    def _refuse_over(self) -> None:
        if self._shared.over:
            raise ClosedError("the transaction of this iterator is over")
