"""PrefixedDB: the part of a store whose keys share a prefix, under keys without it.

The prefix is put before every key on its way down, and taken off on its way up; nothing on disk
says that it is one.  In the store's order (bytewise, unless it has a comparator of its own) such
keys lie together, so an iterator over them is one over a range.  With a comparator that does not
keep them together, gets and writes work, and iterators do not.
"""

from __future__ import annotations

from typing import Generic, Protocol, Self, TypeVar, Unpack, overload

from mypy_extensions import mypyc_attr

from lsmkv.db.scan.iterator import Iterator, IteratorArguments
from lsmkv.db.scan.raw_iterator import RawIterator
from lsmkv.db.scan.scan import after_prefix
from lsmkv.db.views.snapshot import Snapshot
from lsmkv.format.batch import BytesLike, WriteBatch, as_bytes
from lsmkv.util.introspection import described

T = TypeVar("T")


class Iterable(Protocol):
    """What can be iterated over, under a prefix or not: a store, or a snapshot of one."""

    # One by one, not as IteratorArguments: so a store may take more, as plyvel's takes None.
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: BytesLike | None = None,
        stop: BytesLike | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: BytesLike | None = None,
        include_key: bool = True,
        include_value: bool = True,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> Iterator:
        """See ``DB.iterator``."""
        ...

    def raw_iterator(
        self,
        *,
        prefix: BytesLike | None = None,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> RawIterator:
        """See ``DB.raw_iterator``."""
        ...


class PrefixableDB(Iterable, Protocol):
    """What :class:`PrefixedDB` needs of a store."""

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

    def write(self, batch: WriteBatch, /, *, sync: bool = False) -> None:
        """See ``DB.write``."""
        ...

    def write_batch(self, *, transaction: bool = True, sync: bool = False) -> WriteBatch:
        """See ``DB.write_batch``."""
        ...

    def snapshot(self) -> Snapshot:
        """See ``DB.snapshot``."""
        ...


D = TypeVar("D", bound=PrefixableDB)


def _iterate(whole: Iterable, prefix: bytes, arguments: IteratorArguments) -> Iterator:
    """An iterator over a part of a store, which shows keys without the prefix."""
    if not prefix:
        return whole.iterator(**arguments)
    start = arguments.get("start")
    stop = arguments.get("stop")
    inner = arguments.get("prefix")
    if inner is not None:
        if start is None and stop is None:
            arguments["prefix"] = prefix + as_bytes(inner, "prefix")
    else:
        if start is None:
            arguments["start"] = prefix
            arguments["include_start"] = True
        else:
            arguments["start"] = prefix + as_bytes(start, "start key")
        if stop is None:
            arguments["stop"] = after_prefix(prefix)
            arguments["include_stop"] = False
        else:
            arguments["stop"] = prefix + as_bytes(stop, "stop key")
    iterator = whole.iterator(**arguments)
    iterator.hide_prefix(prefix)
    return iterator


def _iterate_raw(
    whole: Iterable, prefix: bytes, inner: BytesLike | None, fill_cache: bool
) -> RawIterator:
    wanted = prefix if inner is None else prefix + as_bytes(inner, "prefix")
    iterator = whole.raw_iterator(prefix=wanted or None, fill_cache=fill_cache)
    iterator.hide_prefix(prefix)
    return iterator


@described
@mypyc_attr(native_class=False)  # weak references and subclasses, as for DB
class PrefixedDB(Generic[D]):
    """A store in a store: the keys with a common prefix, shown and asked for without it.

    Methods are those of :class:`~lsmkv.DB`, with its errors and costs.  It holds no state: make as
    many as you like, one within another too, and close the store itself.

    >>> from lsmkv.db.db import DB
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
    >>> raw = users.raw_iterator()
    >>> raw.seek(b"bob")
    >>> raw.key()
    b'bob:age'
    >>> db.close()
    """

    @classmethod
    def __class_getitem__(cls, item: object) -> object:
        """``PrefixedDB[DB]``: said to a type checker alone, the class is the same."""
        return cls

    def __init__(self, *, db: D, prefix: BytesLike) -> None:
        """Not called by users: they ask a store for it, by ``prefixed_db``."""
        self._db = db
        self._prefix = as_bytes(prefix, "prefix")

    @property
    def db(self) -> D:
        """The store itself, however deep the prefixes are nested."""
        return self._db

    @property
    def prefix(self) -> bytes:
        """What stands before every key in the store: all of it, if nested."""
        return self._prefix

    @overload
    def get(
        self,
        key: BytesLike,
        default: None = None,
        *,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> bytes | None: ...

    @overload
    def get(
        self,
        key: BytesLike,
        default: T,
        *,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> bytes | T: ...

    def get(
        self,
        key: BytesLike,
        default: T | None = None,
        *,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> bytes | T | None:
        """As ``DB.get``."""
        value = self._db.get(self._prefix + as_bytes(key, "key"), fill_cache=fill_cache)
        return default if value is None else value

    def put(self, key: BytesLike, value: BytesLike, *, sync: bool = False) -> None:
        """As ``DB.put``."""
        self._db.put(self._prefix + as_bytes(key, "key"), value, sync=sync)

    def delete(self, key: BytesLike, *, sync: bool = False) -> None:
        """As ``DB.delete``."""
        self._db.delete(self._prefix + as_bytes(key, "key"), sync=sync)

    def write_batch(self, *, transaction: bool = True, sync: bool = False) -> WriteBatch:
        """As ``DB.write_batch``: the batch puts the prefix before the keys that it is given."""
        self._db.write_batch()  # raises if the store is closed
        return PrefixedWriteBatch(self._db, self._prefix, transaction=transaction, sync=sync)

    def iterator(self, **arguments: Unpack[IteratorArguments]) -> Iterator:
        """As ``DB.iterator``: ``start``, ``stop`` and ``prefix`` are without this prefix."""
        return _iterate(self._db, self._prefix, arguments)

    def raw_iterator(
        self,
        *,
        prefix: BytesLike | None = None,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> RawIterator:
        """As ``DB.raw_iterator``."""
        return _iterate_raw(self._db, self._prefix, prefix, fill_cache)

    def __iter__(self) -> Iterator:
        """:meth:`iterator` over all of this part."""
        return self.iterator()

    def __contains__(self, key: object) -> bool:
        """As ``key in db``."""
        return self._prefix + as_bytes(key, "key") in self._db

    def snapshot(self) -> Snapshot:
        """As ``DB.snapshot``, of this part of the store."""
        return PrefixedSnapshot(self._db.snapshot(), self._prefix)

    def prefixed_db(self, prefix: BytesLike) -> Self:
        """A part of this part: its keys begin with this prefix, and then with that one."""
        return type(self)(db=self._db, prefix=self._prefix + as_bytes(prefix, "prefix"))

    def __repr__(self) -> str:
        return f"<lsmkv.PrefixedDB {self._prefix!r} of {self._db!r}>"


@described
@mypyc_attr(native_class=False)
class PrefixedSnapshot(Snapshot):
    """A part of a store, as it was."""

    def __init__(self, whole: Snapshot, prefix: bytes) -> None:
        """Closes the snapshot of the whole when it is closed itself."""
        self._whole = whole
        self._prefix = prefix

    @overload
    def get(
        self,
        key: BytesLike,
        default: None = None,
        *,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> bytes | None: ...

    @overload
    def get(
        self,
        key: BytesLike,
        default: T,
        *,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> bytes | T: ...

    def get(
        self,
        key: BytesLike,
        default: T | None = None,
        *,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> bytes | T | None:
        """As ``DB.get``, at the time of the snapshot."""
        value = self._whole.get(self._prefix + as_bytes(key, "key"), fill_cache=fill_cache)
        return default if value is None else value

    def iterator(self, **arguments: Unpack[IteratorArguments]) -> Iterator:
        """As ``PrefixedDB.iterator``, at the time of the snapshot."""
        return _iterate(self._whole, self._prefix, arguments)

    def raw_iterator(
        self,
        *,
        prefix: BytesLike | None = None,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> RawIterator:
        """As ``PrefixedDB.raw_iterator``, at the time of the snapshot."""
        return _iterate_raw(self._whole, self._prefix, prefix, fill_cache)

    def __contains__(self, key: object) -> bool:
        """Whether the key had a value at the time of the snapshot.  Costs what a get costs."""
        return self._prefix + as_bytes(key, "key") in self._whole

    @property
    def sequence(self) -> int:
        """The number of the last write that the snapshot sees."""
        return self._whole.sequence

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._whole.closed

    def close(self) -> None:
        """Let go of the versions that the snapshot keeps.  Closing twice is harmless."""
        self._whole.close()


@described
@mypyc_attr(native_class=False)
class PrefixedWriteBatch(WriteBatch):
    """A batch that puts a prefix before every key."""

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
