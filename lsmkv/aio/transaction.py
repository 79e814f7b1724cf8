"""The optimistic transaction of :mod:`lsmkv.aio`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any, Never, Self, TypeVar, overload

from lsmkv.aio.iterator import Iterator
from lsmkv.aio.readable import Scannable
from lsmkv.aio.threads import CallThreads
from lsmkv.engine.db.handles import prefixed as _prefixed
from lsmkv.engine.db.handles import transaction as _transaction
from lsmkv.engine.db.read.iterator import IteratorArguments
from lsmkv.engine.errors import ClosedError
from lsmkv.engine.util.arguments import BytesLike, as_bytes
from lsmkv.engine.util.copying import refuse_copy

T = TypeVar("T")


class Transaction(Scannable):
    """:class:`lsmkv.Transaction` with ``async`` ``get``, ``iterator`` and ``commit``; the rest
    only uses memory.

    It begins when the block is entered.  A block that raises, or is cancelled, writes nothing.
    Errors and costs are those of :class:`lsmkv.Transaction`.  An iterator sees the writes before
    its first trip to a thread.  It has consumed what its trips have fetched, up to ``chunk``
    entries more than it returned: with ``chunk=1`` none.

    >>> import asyncio
    >>> from lsmkv.aio import open_db
    >>> async def main():
    ...     async with open_db(":memory:") as db:
    ...         async with db.transaction() as transaction:
    ...             count = int(await transaction.get(b"n", b"0"))
    ...             transaction.put(b"n", b"%d" % (count + 1))
    ...         return await db.get(b"n")
    >>> asyncio.run(main())
    b'1'

    >>> async def main():
    ...     async with open_db(":memory:") as db:
    ...         async with db.transaction() as early, db.transaction() as late:
    ...             early.put(b"k", b"early")
    ...             await early.commit()
    ...             late.delete(b"k")
    ...             late.rollback()  # a commit would raise ConflictError
    ...         return await db.get(b"k")
    >>> asyncio.run(main())
    b'early'

    >>> async def main():
    ...     async with open_db(":memory:") as db:
    ...         await db.put(b"order:1", b"10")
    ...         async with db.transaction() as transaction:
    ...             orders = [key async for key, _ in transaction.iterator(prefix=b"order:")]
    ...             transaction.put(b"orders", b"%d" % len(orders))
    ...         return await db.get(b"orders")
    >>> asyncio.run(main())
    b'1'
    """

    def __init__(self, threads: CallThreads, begin: Callable[[], _transaction.Transaction]) -> None:
        """Do not call this: use ``db.transaction()``."""
        self._threads = threads
        self._begin = begin
        self._lock = asyncio.Lock()  # one thread at a time
        self._over = False
        self._transaction: _transaction.Transaction | None = None

    @overload
    async def get(self, key: BytesLike, default: None = None) -> bytes | None: ...

    @overload
    async def get(self, key: BytesLike, default: T) -> bytes | T: ...

    async def get(self, key: BytesLike, default: T | None = None) -> bytes | T | None:
        """The value that the transaction sees: its own, or the store's from when it began."""
        read = partial(self._opened().get, as_bytes(key, "key"))
        async with self._lock:
            value = await self._threads.run(read)
        return default if value is None else value

    def _iterator(self, chunk: int, arguments: IteratorArguments) -> Iterator[Any]:
        source = self._opened().iterator
        return Iterator(self._threads, source, chunk, arguments, self._lock)

    def put(self, key: BytesLike, value: BytesLike) -> None:
        """Set ``key`` when the transaction commits."""
        self._opened().put(key, value)

    def delete(self, key: BytesLike) -> None:
        """Remove ``key`` when the transaction commits."""
        self._opened().delete(key)

    async def commit(self) -> None:
        """Write everything as one batch, or raise :class:`~lsmkv.ConflictError`.

        The transaction is over either way.  If the call is cancelled, everything was written or
        nothing.
        """
        transaction = self._opened()
        async with self._lock:
            try:
                await self._threads.run(transaction.commit)
            finally:
                self.rollback()

    def rollback(self) -> None:
        """Drop all writes.  No effect on a transaction that is over."""
        self._over = True
        if self._transaction is not None:
            self._transaction.rollback()

    def __reduce__(self) -> Never:
        refuse_copy("a transaction", "it belongs to one event loop")

    async def __aenter__(self) -> Self:
        if self._transaction is not None:
            raise ClosedError("a transaction can be used only once: create another one")
        await self._threads.run(self._begin_in_thread)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.rollback()
        elif not self._over:
            await self.commit()

    def _begin_in_thread(self) -> None:
        self._transaction = self._begin()

    def _opened(self) -> _transaction.Transaction:
        if self._transaction is None:
            raise ClosedError("the transaction has not begun: use async with")
        return self._transaction


class PrefixedTransaction(Transaction):
    """A transaction of a store that adds a prefix to every key."""

    def __init__(self, whole: Transaction, prefix: bytes) -> None:
        """``whole`` is the store's transaction, which has begun; it is over when this one is."""
        super().__init__(whole._threads, whole._begin)
        self._whole = whole
        self._lock = whole._lock
        self._transaction = _prefixed.PrefixedTransaction(whole._opened(), prefix)

    async def commit(self) -> None:
        """:meth:`Transaction.commit` of the store's transaction."""
        await self._whole.commit()

    def rollback(self) -> None:
        """:meth:`Transaction.rollback` of the store's transaction."""
        self._whole.rollback()
