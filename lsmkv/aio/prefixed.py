"""A part of a store, by prefix, for :mod:`lsmkv.aio`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Generic, Never, TypeVar

from lsmkv.aio.batch import WriteBatch
from lsmkv.aio.readable import Readable
from lsmkv.aio.snapshot import Snapshot
from lsmkv.aio.threads import CallThreads
from lsmkv.aio.transaction import PrefixedTransaction, Transaction
from lsmkv.aio.updating import Change, Updatable
from lsmkv.engine.db import db as _db
from lsmkv.engine.db.handles import prefixed as _prefixed
from lsmkv.engine.db.handles.transaction import Isolation
from lsmkv.engine.util.arguments import BytesLike, as_bytes
from lsmkv.engine.util.copying import refuse_copy

T = TypeVar("T")


class PrefixableDB(Updatable):
    """The methods that :class:`PrefixedDB` needs of a store."""

    @abstractmethod
    async def put(self, key: BytesLike, value: BytesLike, *, sync: bool = False) -> None:
        """See ``DB.put``."""

    @abstractmethod
    async def delete(self, key: BytesLike, *, sync: bool = False) -> None:
        """See ``DB.delete``."""

    @abstractmethod
    async def write(self, batch: WriteBatch, /, *, sync: bool = False) -> None:
        """See ``DB.write``."""

    @abstractmethod
    def _opened(self) -> tuple[CallThreads, _db.DB]: ...


D = TypeVar("D", bound=PrefixableDB)


class PrefixedDB(Readable, Updatable, Generic[D]):
    """:class:`lsmkv.PrefixedDB` with ``async`` methods: the keys with a prefix, without the prefix.

    A part is open while its store is open; only the store is opened and closed.  Errors and costs
    are those of :class:`DB`.

    >>> import asyncio
    >>> from lsmkv.aio import open_db
    >>> async def main():
    ...     async with open_db(":memory:") as db:
    ...         users = db.prefixed_db(b"user:")
    ...         async with users.write_batch() as batch:
    ...             batch.put(b"ann:age", b"41")
    ...             batch.put(b"bob:age", b"27")
    ...         ann = users.prefixed_db(b"ann:")
    ...         async with ann.snapshot() as before:
    ...             await ann.put(b"age", b"42")
    ...             await users.delete(b"bob:age")
    ...             ages = await before.get(b"age"), await ann.get(b"age")
    ...         assert ann.db is db and await users.contains(b"ann:age")
    ...         older = await ann.update(b"age", lambda age: b"%d" % (int(age) + 1))
    ...         assert older == await users.run(lambda transaction: transaction.get(b"ann:age"))
    ...         await users.delete_range(b"bob", None)
    ...         return ages, ann.prefix, [pair async for pair in users]
    >>> asyncio.run(main())
    ((b'41', b'42'), b'user:ann:', [(b'ann:age', b'43')])
    """

    def __init__(self, db: D, prefix: bytes) -> None:
        """Do not call this: use ``db.prefixed_db()``."""
        self._db = db
        self._prefix = prefix

    @property
    def db(self) -> D:
        """The store itself, even if prefixes are nested."""
        return self._db

    @property
    def prefix(self) -> bytes:
        """The prefix of every key in the store; all prefixes, if they are nested."""
        return self._prefix

    async def put(self, key: BytesLike, value: BytesLike, *, sync: bool = False) -> None:
        """Set ``key`` to ``value``: :meth:`DB.put`."""
        await self._db.put(self._prefix + as_bytes(key, "key"), value, sync=sync)

    async def delete(self, key: BytesLike, *, sync: bool = False) -> None:
        """Remove ``key``; no error if it is absent: :meth:`DB.delete`."""
        await self._db.delete(self._prefix + as_bytes(key, "key"), sync=sync)

    async def delete_range(
        self,
        start: BytesLike | None,
        stop: BytesLike | None,
        *,
        prefix: BytesLike | None = None,
        tables_only: bool = False,
    ) -> None:
        """Delete the keys from ``start`` up to ``stop``: :meth:`DB.delete_range`."""
        threads, part = self._opened()
        await threads.run_long(
            part.delete_range, start, stop, prefix=prefix, tables_only=tables_only
        )

    def write_batch(self, *, transaction: bool = True, sync: bool = False) -> WriteBatch:
        """Like :meth:`DB.write_batch`; the batch adds the prefix to its keys."""
        part = self._opened()[1]
        write = partial(self._db.write, sync=sync)
        return WriteBatch(write, transaction=transaction, batch=part.write_batch())

    def snapshot(self) -> Snapshot:
        """Like :meth:`DB.snapshot`, but of this part of the store."""
        threads, part = self._opened()
        return Snapshot(threads, part.snapshot)

    def prefixed_db(self, prefix: BytesLike) -> PrefixedDB[D]:
        """The part of this part whose keys begin with ``prefix``."""
        return PrefixedDB(self._db, self._prefix + as_bytes(prefix, "prefix"))

    async def _update(self, key: bytes, function: Change, sync: bool) -> bytes | None:
        return await self._db._update(self._prefix + key, function, sync)

    async def _run(
        self,
        function: Callable[[Transaction], T | Awaitable[T]],
        isolation: Isolation,
        sync: bool,
    ) -> T:
        return await self._db._run(partial(self._call_within, function), isolation, sync)

    def _call_within(
        self, function: Callable[[Transaction], T | Awaitable[T]], whole: Transaction
    ) -> T | Awaitable[T]:
        return function(PrefixedTransaction(whole, self._prefix))

    def __repr__(self) -> str:
        return f"<lsmkv.aio.PrefixedDB {self._prefix!r} of {self._db!r}>"

    def __reduce__(self) -> Never:
        refuse_copy("a part of a store", "it belongs to one event loop")

    def _opened(self) -> tuple[CallThreads, _prefixed.PrefixedDB[_db.DB]]:
        threads, db = self._db._opened()
        return threads, db.prefixed_db(self._prefix)
