"""PrefixedDB: the part of a store whose keys share a prefix, accessed by keys without the prefix.

``DB.prefixed_db`` makes one.  It holds no lock and no state: it adds the prefix to keys that it is
given, and removes it from keys that it returns.  No file records the prefix.  In the bytewise order
keys with a common prefix are neighbors, so an iterator over them is one over a range.  With a
comparator that separates them, gets and writes work, but iterators do not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar, overload

from mypy_extensions import mypyc_attr

from lsmkv.engine.db.handles.readable import Readable
from lsmkv.engine.db.handles.snapshot import Snapshot
from lsmkv.engine.db.handles.transaction import Isolation, Transaction
from lsmkv.engine.db.read.iterator import Iterator, IteratorArguments
from lsmkv.engine.db.read.raw_iterator import RawIterator
from lsmkv.engine.format.batch import WriteBatch
from lsmkv.engine.util.arguments import BytesLike, as_bytes
from lsmkv.engine.util.introspection import described

T = TypeVar("T")


class Iterable(Protocol):
    """An object with iterators: a store, a snapshot of one, or a transaction."""

    def _iterator(self, arguments: IteratorArguments) -> Iterator[Any]:
        """See :class:`~lsmkv.engine.db.handles.scannable.Scannable`."""
        ...


class RawIterable(Iterable, Protocol):
    """An object that also has raw iterators: a store, or a snapshot of one."""

    def raw_iterator(
        self,
        *,
        prefix: BytesLike | None = None,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> RawIterator:
        """See ``DB.raw_iterator``."""
        ...


class PrefixableDB(RawIterable, Protocol):
    """The methods that :class:`PrefixedDB` needs of a store."""

    def get(
        self, key: BytesLike, /, *, verify_checksums: bool = True, fill_cache: bool = True
    ) -> bytes | None:
        """See ``DB.get``."""
        ...

    def __contains__(self, key: object, /) -> bool:
        """See ``DB.__contains__``."""
        ...

    def put(self, key: BytesLike, value: BytesLike, *, sync: bool = False) -> None:
        """See ``DB.put``."""
        ...

    def delete(self, key: BytesLike, *, sync: bool = False) -> None:
        """See ``DB.delete``."""
        ...

    def delete_range(
        self,
        start: BytesLike | None,
        stop: BytesLike | None,
        *,
        prefix: BytesLike | None = None,
        tables_only: bool = False,
    ) -> None:
        """See ``DB.delete_range``."""
        ...

    def write(self, batch: WriteBatch, /, *, sync: bool = False) -> None:
        """See ``DB.write``."""
        ...

    def write_batch(self, *, transaction: bool = True, sync: bool = False) -> WriteBatch:
        """See ``DB.write_batch``."""
        ...

    def update(
        self,
        key: BytesLike,
        function: Callable[[bytes | None], BytesLike | None],
        *,
        sync: bool = False,
    ) -> bytes | None:
        """See ``DB.update``."""
        ...

    def run(
        self,
        function: Callable[[Transaction], T],
        *,
        isolation: Isolation = "serializable",
        sync: bool = False,
    ) -> T:
        """See ``DB.run``."""
        ...

    def snapshot(self) -> Snapshot:
        """See ``DB.snapshot``."""
        ...


D = TypeVar("D", bound=PrefixableDB)


def _iterate(whole: Iterable, prefix: bytes, arguments: IteratorArguments) -> Iterator[Any]:
    """An iterator over a part of a store, whose keys are without the prefix."""
    if not prefix:
        return whole._iterator(arguments)
    inner = arguments.get("prefix")
    start = arguments.get("start")
    stop = arguments.get("stop")
    arguments["prefix"] = prefix if inner is None else prefix + as_bytes(inner, "prefix")
    if start is not None:
        arguments["start"] = prefix + as_bytes(start, "start key")
    if stop is not None:
        arguments["stop"] = prefix + as_bytes(stop, "stop key")
    iterator = whole._iterator(arguments)
    iterator.hide_prefix(prefix)
    return iterator


def _iterate_raw(
    whole: RawIterable, prefix: bytes, inner: BytesLike | None, fill_cache: bool
) -> RawIterator:
    wanted = prefix if inner is None else prefix + as_bytes(inner, "prefix")
    iterator = whole.raw_iterator(prefix=wanted or None, fill_cache=fill_cache)
    iterator.hide_prefix(prefix)
    return iterator


@described
@mypyc_attr(native_class=False)  # weak references and subclasses, as for DB
class PrefixedDB(Readable, Generic[D]):
    """The part of a store whose keys share a prefix, accessed by keys without the prefix.

    Methods, errors and costs are those of :class:`~lsmkv.DB`.  A part has no state and may have
    its own parts; only the store is closed.

    >>> from lsmkv.engine.db.db import DB
    >>> with DB(":memory:") as db:
    ...     users = db.prefixed_db(b"user:")
    ...     users.put(b"ann", b"1")
    ...     b"ann" in users, list(users), list(db)
    (True, [(b'ann', b'1')], [(b'user:ann', b'1')])

    >>> db = DB(":memory:")
    >>> users = db.prefixed_db(b"user:")
    >>> with users.write_batch() as batch:
    ...     batch.put(b"ann:age", b"41")
    ...     batch.put(b"bob:age", b"27")
    >>> ann = users.prefixed_db(b"ann:")
    >>> ann.get(b"age"), ann.prefix, ann.db is db
    (b'41', b'user:ann:', True)
    >>> with users.snapshot() as before:
    ...     users.delete(b"ann:age")
    ...     before.get(b"ann:age"), list(users.iterator(include_value=False))
    (b'41', [b'bob:age'])
    >>> users.delete_range(None, b"b")
    >>> users.update(b"bob:age", lambda age: b"%d" % (int(age) + 1))
    b'28'
    >>> users.run(lambda transaction: transaction.get(b"bob:age"))
    b'28'
    >>> raw = users.raw_iterator()
    >>> raw.seek(b"bob")
    >>> raw.key()
    b'bob:age'
    >>> db.close()
    """

    @classmethod
    def __class_getitem__(cls, item: object) -> object:
        """``PrefixedDB[DB]`` is for type checkers; it is the same class."""
        return cls

    def __init__(self, *, db: D, prefix: BytesLike) -> None:
        """Called by the ``prefixed_db`` of a store, not by users."""
        self._db = db
        self._prefix = as_bytes(prefix, "prefix")

    @property
    def db(self) -> D:
        """The store itself, also if prefixes are nested."""
        return self._db

    @property
    def prefix(self) -> bytes:
        """The prefix of every key in the store; if prefixes are nested, all of them."""
        return self._prefix

    def put(self, key: BytesLike, value: BytesLike, *, sync: bool = False) -> None:
        """As ``DB.put``."""
        self._db.put(self._prefix + as_bytes(key, "key"), value, sync=sync)

    def delete(self, key: BytesLike, *, sync: bool = False) -> None:
        """As ``DB.delete``."""
        self._db.delete(self._prefix + as_bytes(key, "key"), sync=sync)

    def delete_range(
        self,
        start: BytesLike | None,
        stop: BytesLike | None,
        *,
        prefix: BytesLike | None = None,
        tables_only: bool = False,
    ) -> None:
        """As ``DB.delete_range``, of keys of this part."""
        own = self._prefix
        self._db.delete_range(
            None if start is None else own + as_bytes(start, "start key"),
            None if stop is None else own + as_bytes(stop, "stop key"),
            prefix=(own if prefix is None else own + as_bytes(prefix, "prefix")) or None,
            tables_only=tables_only,
        )

    def write_batch(self, *, transaction: bool = True, sync: bool = False) -> WriteBatch:
        """As ``DB.write_batch``; the batch adds the prefix to its keys."""
        self._db.write_batch()  # raises if the store is closed
        return PrefixedWriteBatch(self._db, self._prefix, transaction=transaction, sync=sync)

    def update(
        self,
        key: BytesLike,
        function: Callable[[bytes | None], BytesLike | None],
        *,
        sync: bool = False,
    ) -> bytes | None:
        """As ``DB.update``."""
        return self._db.update(self._prefix + as_bytes(key, "key"), function, sync=sync)

    def run(
        self,
        function: Callable[[Transaction], T],
        *,
        isolation: Isolation = "serializable",
        sync: bool = False,
    ) -> T:
        """As ``DB.run``; the transaction adds the prefix to its keys."""
        call = partial(self._call_within, function)
        return self._db.run(call, isolation=isolation, sync=sync)

    def _call_within(self, function: Callable[[Transaction], T], whole: Transaction) -> T:
        return function(PrefixedTransaction(whole, self._prefix))

    def snapshot(self) -> Snapshot:
        """As ``DB.snapshot``, of this part of the store."""
        return PrefixedSnapshot(self._db.snapshot(), self._prefix)

    def prefixed_db(self, prefix: BytesLike) -> Self:
        """The part whose keys begin with this prefix, followed by ``prefix``."""
        return type(self)(db=self._db, prefix=self._prefix + as_bytes(prefix, "prefix"))

    def __repr__(self) -> str:
        return f"<lsmkv.PrefixedDB {self._prefix!r} of {self._db!r}>"

    def _value(self, key: bytes, fill_cache: bool) -> bytes | None:
        return self._db.get(self._prefix + key, fill_cache=fill_cache)

    def _iterator(self, arguments: IteratorArguments) -> Iterator[Any]:
        return _iterate(self._db, self._prefix, arguments)

    def _raw_iterator(self, prefix: BytesLike | None, fill_cache: bool) -> RawIterator:
        return _iterate_raw(self._db, self._prefix, prefix, fill_cache)


@described
@mypyc_attr(native_class=False)
class PrefixedSnapshot(Snapshot):
    """A part of a store as it was at one sequence."""

    def __init__(self, whole: Snapshot, prefix: bytes) -> None:
        """``whole`` is the store's snapshot; it is closed with this one."""
        self._whole = whole
        self._prefix = prefix

    def _value(self, key: bytes, fill_cache: bool) -> bytes | None:
        return self._whole.get(self._prefix + key, fill_cache=fill_cache)

    def _iterator(self, arguments: IteratorArguments) -> Iterator[Any]:
        return _iterate(self._whole, self._prefix, arguments)

    def _raw_iterator(self, prefix: BytesLike | None, fill_cache: bool) -> RawIterator:
        return _iterate_raw(self._whole, self._prefix, prefix, fill_cache)

    @property
    def sequence(self) -> int:
        """The sequence of the last write that the snapshot sees."""
        return self._whole.sequence

    @property
    def closed(self) -> bool:
        """True if :meth:`close` was called."""
        return self._whole.closed

    def close(self) -> None:
        """Release the versions that the snapshot keeps.  Closing twice is harmless."""
        self._whole.close()

    def __repr__(self) -> str:
        whole = repr(self._whole)
        return f"<lsmkv.PrefixedSnapshot {self._prefix!r} of {whole}>" if self._prefix else whole


@described
@mypyc_attr(native_class=False)
class PrefixedWriteBatch(WriteBatch):
    """A batch that adds a prefix to every key."""

    def __init__(
        self, db: PrefixableDB, prefix: bytes, *, transaction: bool = True, sync: bool = False
    ) -> None:
        super().__init__(db, transaction=transaction, sync=sync)
        self._prefix = prefix

    def put(self, key: BytesLike, value: BytesLike) -> None:
        """Set ``key``, under the prefix, to ``value``."""
        super().put(self._prefix + as_bytes(key, "key"), value)

    def delete(self, key: BytesLike) -> None:
        """Remove ``key``, under the prefix; no error if it is not there."""
        super().delete(self._prefix + as_bytes(key, "key"))


@described
@mypyc_attr(native_class=False)
class PrefixedTransaction(Transaction):
    """A transaction of a store that adds a prefix to every key."""

    def __init__(self, whole: Transaction, prefix: bytes) -> None:
        """``whole`` is the store's transaction, which is over when this one is."""
        self._whole = whole
        self._prefix = prefix

    @overload
    def get(self, key: BytesLike, default: None = None) -> bytes | None: ...

    @overload
    def get(self, key: BytesLike, default: T) -> bytes | T: ...

    def get(self, key: BytesLike, default: T | None = None) -> bytes | T | None:
        """The value of the key under the prefix, as the transaction sees it."""
        value = self._whole.get(self._prefix + as_bytes(key, "key"))
        return default if value is None else value

    def put(self, key: BytesLike, value: BytesLike) -> None:
        """Set ``key``, under the prefix, when the transaction commits."""
        self._whole.put(self._prefix + as_bytes(key, "key"), value)

    def delete(self, key: BytesLike) -> None:
        """Remove ``key``, under the prefix, when the transaction commits."""
        self._whole.delete(self._prefix + as_bytes(key, "key"))

    def _iterator(self, arguments: IteratorArguments) -> Iterator[Any]:
        return _iterate(self._whole, self._prefix, arguments)

    def commit(self) -> None:
        """Write the transaction's batch, or raise :class:`~lsmkv.errors.ConflictError`."""
        self._whole.commit()

    def rollback(self) -> None:
        """Discard the writes.  Harmless on a transaction that is over."""
        self._whole.rollback()

    def __enter__(self) -> Transaction:
        self._whole.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._whole.__exit__(kind, error, trace)

    def __repr__(self) -> str:
        return f"<lsmkv.PrefixedTransaction {self._prefix!r} of {self._whole!r}>"
