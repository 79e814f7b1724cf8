"""Transaction: optimistic concurrency control within one process.

``DB.transaction`` makes one.  It holds no lock until it commits; the commit holds the writers' lock
while it checks for conflicts and writes.  What it checks depends on the isolation:

================  ============================================  ================================
isolation         raises ConflictError if another wrote         possible anomalies
================  ============================================  ================================
``serializable``  a key that was read or written by name, or    none
                  any key of a range that was iterated over
``snapshot``      a key that was written                        write skew
================  ============================================  ================================

Commits happen one after the other, so a serializable transaction that passes its check might as
well have run alone at its commit; one that writes nothing might have at its snapshot.  Locks on
ranges, and a search for cycles as in PostgreSQL, are left out; both would abort fewer transactions.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, Never, TypeVar, overload

from mypy_extensions import mypyc_attr

from lsmkv.engine.db.handles.scannable import Scannable
from lsmkv.engine.db.handles.snapshot import Snapshot
from lsmkv.engine.db.read.changes import Changes
from lsmkv.engine.db.read.iterator import Iterator, IteratorArguments
from lsmkv.engine.db.read.scan import Bounds
from lsmkv.engine.db.read.transaction_iterator import TransactionIterators
from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.errors import ClosedError, ConflictError
from lsmkv.engine.format.batch import Operation, WriteBatch
from lsmkv.engine.util.arguments import BytesLike, as_bytes
from lsmkv.engine.util.comparator import Comparator, equal_means_identical
from lsmkv.engine.util.copying import refuse_copy
from lsmkv.engine.util.introspection import described
from lsmkv.engine.util.text import count

T = TypeVar("T")

Isolation = Literal["serializable", "snapshot"]
"""The checks that a commit makes."""


def refuse_unknown(isolation: str) -> None:
    """Raise ``ValueError`` unless this is an isolation."""
    if isolation not in ("serializable", "snapshot"):
        raise ValueError(f"isolation must be 'serializable' or 'snapshot', not {isolation!r}")


class ConflictCheck(Changes):
    """Checks whether another writer wrote what a transaction depends on."""

    def __init__(
        self,
        store: Store,
        sequence: int,
        tables: frozenset[int],
        keys: set[bytes],
        ranges: list[Bounds],
    ) -> None:
        """``keys`` and ``ranges`` are what was read; the rest is as for :class:`Changes`."""
        super().__init__(store, sequence, tables)
        self._keys = keys
        self._ranges = ranges
        self._looked_ahead: Changes | None = None

    def look_ahead(self) -> None:
        """Check the ranges, before the writers' lock is taken: a compaction may have rewritten all
        of their entries, and under the lock only later writes are left to check."""
        self._looked_ahead = self._check_ranges(self)

    def raise_if_changed(self) -> None:
        """Raise :class:`~lsmkv.errors.ConflictError` if anything that was read has changed.  Caller
        holds the writers' lock."""
        for key in sorted(self._keys):
            if self.has(key):
                raise ConflictError(f"{key!r} was written since the transaction began")
        if self._looked_ahead is not None:
            self._check_ranges(self._looked_ahead)

    def _check_ranges(self, changes: Changes) -> Changes:
        """Raise :class:`~lsmkv.errors.ConflictError` if a key in one of the ranges was written;
        otherwise return the changes after this moment."""
        found = changes.first_in(self._ranges)
        if isinstance(found, Changes):
            return found
        key, bounds = found
        raise ConflictError(
            f"{key!r} was written since the transaction began, which has read the range {bounds}"
        )


Commit = Callable[[WriteBatch, int, frozenset[int], set[bytes], list[Bounds], bool], None]
"""Applies a batch, with ``sync`` or without, unless a key, or one in a range, was written after the
sequence; the tables are those that were there at the time."""


@described
@mypyc_attr(native_class=False)  # weak references and subclasses, as for DB
class Transaction(Scannable):
    """Reads from a snapshot, collects writes, and commits them if nothing it used has changed.

    The keys that the transaction read or wrote are remembered, and the exact ranges that its
    iterators passed over.  If another writer wrote one of these keys, or any key in one of these
    ranges, since it began, ``commit`` raises :class:`~lsmkv.errors.ConflictError` and writes
    nothing; in that case run it again.  With ``isolation="snapshot"`` only the keys that it wrote
    are checked.  A transaction that writes nothing never conflicts.  Transactions do not wait for
    each other.  A ``with`` block commits at its end, and discards the transaction if it raises.
    After commit or rollback the methods, and the iterators, raise
    :class:`~lsmkv.errors.ClosedError`.

    Not safe for use by several threads at once.

    >>> import lsmkv
    >>> db = lsmkv.DB(":memory:")
    >>> db.put(b"stock", b"3")
    >>> with db.transaction() as transaction:
    ...     left = int(transaction.get(b"stock")) - 1
    ...     transaction.put(b"stock", b"%d" % left)
    >>> db.get(b"stock")
    b'2'

    >>> transaction = db.transaction()
    >>> total = sum(int(value) for _, value in transaction.iterator(prefix=b"order:"))
    >>> transaction.put(b"total", b"%d" % total)
    >>> db.put(b"order:1", b"10")
    >>> transaction.commit()
    Traceback (most recent call last):
    lsmkv.errors.ConflictError: b'order:1' was written since the transaction began, which has read \
the range b'order:' <= key < b'order;'
    >>> db.close()
    """

    def __init__(
        self,
        snapshot: Snapshot,
        sequence: int,
        commit: Commit,
        sync: bool,
        comparator: Comparator,
        checks_reads: bool,
    ) -> None:
        """Called by ``db.transaction()``, not by users.  The transaction closes the snapshot."""
        self._snapshot: Snapshot | None = snapshot
        self._sequence = sequence
        self._commit = commit
        self._sync = sync
        self._checks_reads = checks_reads
        self._touched: set[bytes] = set()
        self._batch = WriteBatch()
        self._written: dict[bytes, bytes | None] = {}
        self._compare = comparator.compare
        self._identical = equal_means_identical(comparator)
        self._iterators: TransactionIterators | None = None  # made for the first one

    @overload
    def get(self, key: BytesLike, default: None = None) -> bytes | None: ...

    @overload
    def get(self, key: BytesLike, default: T) -> bytes | T: ...

    def get(self, key: BytesLike, default: T | None = None) -> bytes | T | None:
        """The value that the transaction sees: that of its own last write, or the snapshot's.

        Costs as much as ``DB.get``, or no read at all for a key that the transaction wrote.
        """
        name = as_bytes(key, "key")
        snapshot = self._open()
        if self._checks_reads:
            self._touched.add(name)
        own = self._own_write(name)
        value = snapshot.get(name) if own is None else own[1]
        return default if value is None else value

    def put(self, key: BytesLike, value: BytesLike) -> None:
        """Set ``key`` when the transaction commits."""
        self._write(as_bytes(key, "key"), as_bytes(value, "value"))

    def delete(self, key: BytesLike) -> None:
        """Remove ``key`` when the transaction commits.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     db.put(b"k", b"v")
        ...     with db.transaction() as transaction:
        ...         transaction.delete(b"k")
        ...         transaction.get(b"k"), db.get(b"k")
        ...     b"k" in db
        (None, b'v')
        False
        """
        self._write(as_bytes(key, "key"), None)

    def commit(self) -> None:
        """Write the transaction's batch, or raise :class:`~lsmkv.errors.ConflictError`.

        The transaction is over in both cases.  Cost, in addition to one write: under the writers'
        lock a lookup of each key that it read or wrote, in memory and in the tables that came since
        it began.  If it has iterated, a step for each key of the ranges in a memtable that was
        written to since, and for each of their entries in tables that came since; under the lock
        only for those that came during the commit.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     transaction = db.transaction()
        ...     transaction.put(b"k", b"mine")
        ...     db.put(b"k", b"theirs")
        ...     transaction.commit()
        Traceback (most recent call last):
        lsmkv.errors.ConflictError: b'k' was written since the transaction began
        """
        tables = self._open()._tables
        try:
            if len(self._batch) > 0:
                iterators = self._iterators
                ranges = [] if iterators is None else iterators.consumed()
                self._commit(self._batch, self._sequence, tables, self._touched, ranges, self._sync)
        finally:
            self.rollback()

    def rollback(self) -> None:
        """Discard the writes.  Harmless on a transaction that is over.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     transaction = db.transaction()
        ...     transaction.put(b"k", b"v")
        ...     transaction.rollback()
        ...     b"k" in db
        False
        """
        if self._snapshot is not None:
            self._snapshot.close()
            self._snapshot = None
            if self._iterators is not None:
                self._iterators.over = True

    def __repr__(self) -> str:
        if self._snapshot is None:
            return "<lsmkv.Transaction (over)>"
        operations = count(len(self._batch), "operation")
        return f"<lsmkv.Transaction of {operations} since write {self._sequence:,}>"

    def __reduce__(self) -> Never:
        refuse_copy("a transaction", "it holds an open store: make another one there")

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.rollback()
        elif self._snapshot is not None:
            self.commit()

    def _iterator(self, arguments: IteratorArguments) -> Iterator[Any]:
        snapshot = self._open()
        if self._iterators is None:
            self._iterators = TransactionIterators(snapshot._open().store, self._checks_reads)
        return snapshot._transaction_iterator(arguments, self._iterators, self._batch.operations)

    def _write(self, key: bytes, value: bytes | None) -> None:
        self._open()
        self._touched.add(key)
        self._written[key] = value
        if value is None:
            self._batch.delete(key)
        else:
            self._batch.put(key, value)

    def _own_write(self, key: bytes) -> Operation | None:
        """The transaction's last write to ``key``; O(n) if unequal bytes may be the same key."""
        if self._identical:
            return (key, self._written[key]) if key in self._written else None
        for operation in reversed(self._batch.operations):
            if self._compare(operation[0], key) == 0:
                return operation
        return None

    def _open(self) -> Snapshot:
        if self._snapshot is None:
            raise ClosedError("the transaction is over")
        return self._snapshot
