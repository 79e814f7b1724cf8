"""The base of both public iterators: a scan of a store as it was, pinned until it is closed.

A handle or a snapshot makes an iterator; one thread at a time uses it.  It takes the store's lock
only where it reads a memtable.
"""

from __future__ import annotations

from types import TracebackType
from typing import Never, Self

from mypy_extensions import mypyc_attr

from lsmkv.engine.db.read.internal_iterator import InternalIterator, Pair
from lsmkv.engine.db.read.scan import Bounds, Scan
from lsmkv.engine.db.read.window import Window
from lsmkv.engine.db.tree.store import ReadView, Store
from lsmkv.engine.errors import ClosedError, ForkedError, raise_typed
from lsmkv.engine.format.key_order import Position
from lsmkv.engine.util.arguments import as_bytes
from lsmkv.engine.util.copying import refuse_copy


@mypyc_attr(allow_interpreted_subclasses=True)  # users may derive from it
class BaseIterator:
    """Holds a view of a store, and the pin that keeps it readable, until it is closed; and a window
    of pairs, which it moves over the range.

    What its position is in the window, the subclasses say:
    :class:`~lsmkv.engine.db.read.iterator.Iterator` and
    :class:`~lsmkv.engine.db.read.raw_iterator.RawIterator`.
    """

    _prefix: bytes = b""  # every key has it; it is not shown

    def __init__(
        self,
        store: Store,
        read: ReadView,
        owner: object,
        bounds: Bounds,
        fill_cache: bool,
        window: Window,
    ) -> None:
        """Only this iterator uses ``read``.  The iterator keeps ``owner``, the handle that
        made it, from being collected until it is closed.

        In a store that is read-only, the tables of the range are opened now and held, unless there
        are many; that raises what opening a table raises, and ``OSError``.
        """
        self._store: Store | None = store
        self._owner: object = owner
        self._pin = read.pin
        self._samples = read.samples
        self._bounds = bounds
        self._scan: Scan | None = Scan(store, read, bounds, fill_cache)
        self._window = window
        self._gap: Position | None = None  # the gap, while the window is empty
        self._at_end = False  # whether a gap of None is the end of the range, not its start
        self._ahead: InternalIterator | None = None  # continues after the window
        self._behind: InternalIterator | None = None  # continues before the window
        store.counters.iterators += 1
        if store.may_lose_tables:
            self._scan.hold_tables()

    @property
    def closed(self) -> bool:
        """True if the iterator, or its store, was closed."""
        return self._store is None or self._store.view is None

    def close(self) -> None:
        """Release the view and its pin.  Closing twice is harmless."""
        self._store = None
        self._scan = None
        self._place(None)
        self._owner = None
        self._pin.release()

    def hide_prefix(self, prefix: bytes, /) -> None:
        """Show keys without this prefix, which all keys of the range have; targets also lack it.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     db.put(b"user:ann", b"1")
        ...     users = db.raw_iterator(prefix=b"user:")
        ...     users.hide_prefix(b"user:")
        ...     users.seek(b"a")
        ...     users.key()
        b'ann'
        """
        self._prefix = as_bytes(prefix, "prefix")

    def _described(self, name: str, state: str) -> str:
        """The text of ``repr``; its keys are those of the store, a hidden prefix included."""
        closed = " (closed)" if self.closed else ""
        return f"<lsmkv.{name} over {self._bounds} at write {self._pin.sequence:,}{state}{closed}>"

    def __reduce__(self) -> Never:
        refuse_copy("an iterator", "it holds an open store: make another one there")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        self.close()

    def _open_scan(self) -> Scan:
        if self._scan is None:
            raise ClosedError("the iterator is closed")
        if self._store is None or self._store.view is None:
            raise self._store_closed()
        return self._scan

    def _store_closed(self) -> ClosedError:
        """The error of a call after the store was closed, or inherited through a fork."""
        store = self._store
        if store is not None and store.forked:
            return ForkedError("the iterator was opened before a fork")
        return ClosedError("the database of this iterator is closed")

    def _place(self, gap: Position | None, at_end: bool = False) -> None:
        """Put the gap at a position; None means the start of everything, or the end of it."""
        self._window.put([], 0)
        self._gap = gap
        self._at_end = at_end and gap is None
        self._ahead = None
        self._behind = None

    def _read_ahead(self, scan: Scan) -> bool:
        """Replace the window by the pairs after it; False, and no change, if there are none."""
        if self._ahead is None:
            if self._window.pairs:
                self._gap = Position(self._window.pairs[-1][0], after=True)
                self._at_end = False
            elif self._at_end:
                return False
            self._ahead = scan.forward(self._gap)
        source = self._ahead
        # An error or Ctrl-C skips nothing: the next call makes a new source that begins after the
        # window.
        self._ahead = None
        pairs = self._fetch(source)
        if pairs:
            self._window.put(pairs, 0)
            self._behind = None
        self._ahead = source
        return bool(pairs)

    def _read_behind(self, scan: Scan) -> bool:
        """Replace the window by the pairs before it; False, and no change, if there are none."""
        if self._behind is None:
            if self._window.pairs:
                self._gap = Position(self._window.pairs[0][0], after=False)
            elif self._gap is None and not self._at_end:
                return False
            self._behind = scan.backward(self._gap)
        source = self._behind
        self._behind = None
        pairs = self._fetch(source)
        if pairs:
            self._window.put(pairs, len(pairs))
            self._ahead = None
        self._behind = source
        return bool(pairs)

    def _fetch(self, source: InternalIterator) -> list[Pair]:
        """The next pairs; [] at the end."""
        try:
            pairs = source.next_chunk()
        except OSError as error:
            if self.closed:
                raise self._store_closed() from error
            raise_typed(error)
        samples = self._samples
        store = self._store
        if samples is not None and pairs and store is not None:
            view = store.view
            if view is not None:
                samples.read(pairs, view.version, store.order)
        return pairs

    def _within_bounds(self, position: Position) -> Position:
        """The position itself, or the nearest end of the range if it lies outside."""
        assert self._store is not None
        order = self._store.order
        bounds = self._bounds
        if bounds.lower is not None and order.is_before(position, bounds.lower):
            return bounds.lower
        if bounds.upper is not None and order.is_before(bounds.upper, position):
            return bounds.upper
        return position
