"""Snapshot: a store as it was at one sequence.

``DB.snapshot`` makes one.  It pins its sequence, so that flushes and compactions keep the versions
that it sees.  It reads by the same :class:`~lsmkv.engine.db.read.reader.Reader` as the store, and
never takes the writers' lock.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Never, Self

from mypy_extensions import mypyc_attr

from lsmkv.engine.db.handles.readable import Readable
from lsmkv.engine.db.read.iterator import Iterator, IteratorArguments
from lsmkv.engine.db.read.raw_iterator import RawIterator
from lsmkv.engine.db.read.reader import Reader
from lsmkv.engine.db.read.transaction_iterator import TransactionIterators
from lsmkv.engine.db.tree.store import ReadView, View
from lsmkv.engine.errors import ClosedError
from lsmkv.engine.format.batch import Operation
from lsmkv.engine.table.reader import Table
from lsmkv.engine.util.arguments import BytesLike
from lsmkv.engine.util.copying import refuse_copy
from lsmkv.engine.util.introspection import described


@described
@mypyc_attr(native_class=False)  # weak references and subclasses, as for DB
class Snapshot(Readable):
    """A store as it was when the snapshot was taken, whatever is written later.

    Taking a snapshot costs O(1).  While it is open, the versions that it sees are kept on disk.
    Close it, or use it in a ``with`` block; it is also closed when it is garbage-collected.  Its
    methods have the errors and costs of DB's, and raise :class:`~lsmkv.ClosedError` once it is
    closed.

    >>> import lsmkv
    >>> db = lsmkv.DB(":memory:")
    >>> db.put(b"k", b"old")
    >>> snapshot = db.snapshot()
    >>> db.put(b"k", b"new")
    >>> snapshot.get(b"k"), list(snapshot.iterator()), snapshot.sequence
    (b'old', [(b'k', b'old')], 1)
    >>> raw = snapshot.raw_iterator()
    >>> raw.seek_to_first()
    >>> raw.value()
    b'old'
    >>> snapshot.close()
    >>> snapshot.closed
    True
    >>> db.close()
    """

    _reader: Reader | None = None
    _view: View | None = None
    _held: dict[int, Table] = {}  # noqa: RUF012 - replaced, never changed
    _tables: frozenset[int] = frozenset()
    """The numbers of the tables that existed when the snapshot was taken."""

    def __init__(self, reader: Reader, read: ReadView, owner: object) -> None:
        """Called by ``db.snapshot()``, not by users.  ``owner`` lives as long as the snapshot."""
        self._reader = reader
        self._pin = read.pin
        # A writer in another process does not know the pin: only this view has what the snapshot
        # shows, and only an open table is sure to stay.
        self._view = read.view if reader.store.options.read_only else None
        self._held = read.held
        self._tables = read.view.version.numbers
        self._owner: object = owner

    def _value(self, key: bytes, fill_cache: bool) -> bytes | None:
        reader = self._open()
        view = reader.store.view_at(self._pin.sequence)
        if self._view is not None:
            view = self._view
        return reader.get(key, self._pin.sequence, fill_cache, view)

    def _iterator(self, arguments: IteratorArguments) -> Iterator[Any]:
        return self._open().iterator(self._owner, arguments, self._pin.sequence, self._view)

    def _transaction_iterator(
        self,
        arguments: IteratorArguments,
        iterators: TransactionIterators,
        operations: list[Operation],
    ) -> Iterator[Any]:
        """An iterator of a transaction that reads this snapshot and has made these operations."""
        self._open()
        return iterators.make(self._owner, arguments, self._pin.sequence, self._view, operations)

    def _raw_iterator(self, prefix: BytesLike | None, fill_cache: bool) -> RawIterator:
        return self._open().raw_iterator(
            self._owner, prefix, fill_cache, self._pin.sequence, self._view
        )

    @property
    def sequence(self) -> int:
        """The sequence of the last write that the snapshot sees."""
        return self._pin.sequence

    @property
    def closed(self) -> bool:
        """True if :meth:`close` was called."""
        return self._reader is None

    def close(self) -> None:
        """Release the versions that the snapshot keeps.  Closing twice is harmless."""
        self._reader = None
        self._view = None
        self._held = {}
        self._owner = None
        self._pin.release()

    def release(self) -> None:
        """LevelDB's name for :meth:`close`.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     snapshot = db.snapshot()
        ...     snapshot.release()
        ...     snapshot.closed
        True
        """
        self.close()

    def __repr__(self) -> str:
        reader = self._reader
        store = "" if reader is None else f" of {reader.store.directory.path!r}"
        closed = " (closed)" if reader is None or reader.store.view is None else ""
        return f"<lsmkv.Snapshot{store} at write {self._pin.sequence:,}{closed}>"

    def __reduce__(self) -> Never:
        refuse_copy("a snapshot", "it holds an open store: make another one there")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _open(self) -> Reader:
        reader = self._reader
        if reader is None:
            raise ClosedError("the snapshot is closed")
        return reader
