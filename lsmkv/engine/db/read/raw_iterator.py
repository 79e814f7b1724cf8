"""RawIterator: LevelDB's own kind of iterator, which is at an entry or is not valid.

``DB.raw_iterator`` and ``Snapshot.raw_iterator`` make it; one thread at a time uses it.
"""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from lsmkv.engine.db.read.base_iterator import BaseIterator
from lsmkv.engine.db.read.scan import Scan, bounds_of
from lsmkv.engine.db.read.window import Window
from lsmkv.engine.db.tree.store import ReadView, Store
from lsmkv.engine.errors import IteratorInvalidError
from lsmkv.engine.format.key_order import Position
from lsmkv.engine.util.arguments import BytesLike, as_bytes
from lsmkv.engine.util.text import shortened


@mypyc_attr(allow_interpreted_subclasses=True)  # users may derive from it
class RawIterator(BaseIterator):
    """Stands *on* an entry of a store as it was when the iterator was made, or is not valid.

    The shape of LevelDB's C++ iterator, and of plyvel's: position it, ask whether it is
    :meth:`valid`, then read and step.  A fresh one is not valid.  :meth:`next`, :meth:`prev`,
    :meth:`key`, :meth:`value` and :meth:`item` raise :class:`IteratorInvalidError` when it is not,
    and every method but :meth:`close` raises :class:`ClosedError` once iterator or store is closed.

    Entries are read ahead, a block or so at a time: a step within what was read costs no IO.
    Not safe for use by several threads at once.

    >>> import lsmkv
    >>> db = lsmkv.DB(":memory:")
    >>> for key in (b"a", b"b", b"c"):
    ...     db.put(key, key.upper())
    >>> raw = db.raw_iterator()
    >>> raw.seek(b"bb")
    >>> raw.key(), raw.value(), raw.item()
    (b'c', b'C', (b'c', b'C'))
    >>> raw.seek_to_last()
    >>> raw.prev()
    >>> raw.key()
    b'b'
    >>> raw.seek_to_first()
    >>> while raw.valid():
    ...     raw.key()
    ...     raw.next()
    b'a'
    b'b'
    b'c'
    >>> raw.close()
    >>> raw.closed
    True
    >>> db.close()
    """

    def __init__(
        self,
        store: Store,
        read: ReadView,
        owner: object,
        prefix: BytesLike | None,
        fill_cache: bool,
    ) -> None:
        """Only this iterator uses ``read``; ``owner`` is kept from being collected.

        Not called by users: they ask a store or a snapshot for an iterator.
        """
        bounds = bounds_of(None, None, True, False, prefix, store.order)
        window = Window(store, False, True, True)
        super().__init__(store, read, owner, bounds, fill_cache, window)

    def valid(self) -> bool:
        """True if it is at an entry.  O(1)."""
        self._open_scan()
        return self._window.at < len(self._window.pairs)

    def seek_to_first(self) -> None:
        """Go to the first entry; not valid if there is none."""
        self._seek_forward(self._open_scan(), self._bounds.lower)

    def seek_to_last(self) -> None:
        """Go to the last entry; not valid if there is none."""
        scan = self._open_scan()
        self._place(self._bounds.upper, at_end=True)
        if self._read_behind(scan):
            self._window.at -= 1

    def seek(self, target: BytesLike) -> None:
        """Go to the first entry whose key is ``target`` or follows it; not valid if none does."""
        scan = self._open_scan()
        position = Position(self._prefix + as_bytes(target, "target"), after=False)
        self._seek_forward(scan, self._within_bounds(position))

    def next(self) -> None:
        """Go to the entry after this one; from the last one, the iterator ceases to be valid."""
        window = self._valid_window()
        if window.at + 1 < len(window.pairs):
            window.at += 1
        elif not self._read_ahead(self._open_scan()):
            self._place(None)

    def prev(self) -> None:
        """Go to the entry before this one; from the first one, the iterator ceases to be valid."""
        window = self._valid_window()
        if window.at == 0 and not self._read_behind(self._open_scan()):
            self._place(None)
        else:
            window.at -= 1

    def key(self) -> bytes:
        """The key at its position."""
        window = self._valid_window()
        key: bytes = window.pairs[window.at][0]
        return key[len(self._prefix) :]

    def value(self) -> bytes:
        """The value at its position."""
        window = self._valid_window()
        value: bytes = window.pairs[window.at][1]
        return value

    def item(self) -> tuple[bytes, bytes]:
        """Key and value."""
        return self.key(), self.value()

    def __repr__(self) -> str:
        window = self._window
        is_valid = window.at < len(window.pairs)
        where = f"on {shortened(window.pairs[window.at][0])}" if is_valid else "on no entry"
        return self._described("RawIterator", f", {where}")

    def _valid_window(self) -> Window:
        self._open_scan()
        if self._window.at >= len(self._window.pairs):
            raise IteratorInvalidError("the iterator is not at an entry: seek first")
        return self._window

    def _seek_forward(self, scan: Scan, start: Position | None) -> None:
        self._place(start)
        self._read_ahead(scan)
