"""Transaction: optimistic concurrency control within one process.

``DB.transaction`` makes one.  It holds no lock until it commits; the commit holds the writers' lock
while it checks for conflicts and writes.  Ranges are not checked: only keys that were read or
written by name are.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Never, TypeVar, overload

from mypy_extensions import mypyc_attr

from lsmkv.db.handles.snapshot import Snapshot
from lsmkv.db.read.reader import Reader
from lsmkv.errors import ClosedError, ConflictError
from lsmkv.format.batch import Operation, WriteBatch
from lsmkv.util.arguments import BytesLike, as_bytes
from lsmkv.util.comparator import Comparator, equal_means_identical
from lsmkv.util.copying import refuse_copy
from lsmkv.util.introspection import described
from lsmkv.util.text import count

T = TypeVar("T")

Commit = Callable[[WriteBatch, set[bytes], int, bool], None]
"""Applies a batch, with ``sync`` or without, unless a key was written after the sequence."""


class ConflictCheck:
    """Checks, under the writers' lock, whether a key was written after the sequence."""

    def __init__(self, reader: Reader, keys: set[bytes], sequence: int) -> None:
        self._reader = reader
        self._keys = keys
        self._sequence = sequence

    def raise_if_changed(self) -> None:
        """Raise :class:`~lsmkv.errors.ConflictError` if one was."""
        for key in sorted(self._keys):
            if self._reader.newest_sequence(key) > self._sequence:
                raise ConflictError(f"{key!r} was written since the transaction began")


@described
@mypyc_attr(native_class=False)  # weak references and subclasses, as for DB
class Transaction:
    """Reads from a snapshot, collects writes, and commits them if no key it used has changed.

    The keys that the transaction read or wrote are remembered.  If another writer wrote one of them
    since it began, ``commit`` raises :class:`~lsmkv.errors.ConflictError` and writes nothing; run
    it again then.  Transactions do not wait for each other.  A ``with`` block commits at its end,
    and discards the transaction if it raises.  Ranges that were iterated over are not checked.
    After commit or rollback the methods raise :class:`~lsmkv.errors.ClosedError`.

    Not safe for use by several threads at once.

    >>> import lsmkv
    >>> db = lsmkv.DB(":memory:")
    >>> db.put(b"stock", b"3")
    >>> with db.transaction() as transaction:
    ...     left = int(transaction.get(b"stock")) - 1
    ...     transaction.put(b"stock", b"%d" % left)
    >>> db.get(b"stock")
    b'2'
    >>> db.close()
    """

    def __init__(
        self,
        snapshot: Snapshot,
        sequence: int,
        commit: Commit,
        sync: bool,
        comparator: Comparator,
    ) -> None:
        """Called by ``db.transaction()``, not by users.  The transaction closes the snapshot."""
        self._snapshot: Snapshot | None = snapshot
        self._sequence = sequence
        self._commit = commit
        self._sync = sync
        self._touched: set[bytes] = set()
        self._batch = WriteBatch()
        self._written: dict[bytes, bytes | None] = {}
        self._compare = comparator.compare
        self._identical = equal_means_identical(comparator)

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

        The transaction is over in both cases.  Cost: a lookup of each key that it read or wrote,
        under the writers' lock, and one write.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     transaction = db.transaction()
        ...     transaction.put(b"k", b"mine")
        ...     db.put(b"k", b"theirs")
        ...     transaction.commit()
        Traceback (most recent call last):
        lsmkv.errors.ConflictError: b'k' was written since the transaction began
        """
        self._open()
        try:
            if len(self._batch) > 0:
                self._commit(self._batch, self._touched, self._sequence, self._sync)
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
