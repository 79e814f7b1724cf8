"""The write batch of :mod:`lsmkv.aio`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Never, Self

from lsmkv.engine.format import batch as _batch
from lsmkv.engine.util.arguments import BytesLike
from lsmkv.engine.util.copying import refuse_copy


class WriteBatch:
    """:class:`lsmkv.WriteBatch` with an ``async`` :meth:`write`; the rest only touches memory.

    Errors and costs are those of :class:`lsmkv.WriteBatch`.

    >>> import asyncio
    >>> from lsmkv.aio import open_db
    >>> async def main():
    ...     async with open_db(":memory:") as db:
    ...         async with db.write_batch() as batch:
    ...             batch.put(b"a", b"1")
    ...             batch.put(b"b", b"2")
    ...         return [key async for key, _ in db]
    >>> asyncio.run(main())
    [b'a', b'b']

    >>> async def main():
    ...     async with open_db(":memory:") as db:
    ...         first, second = db.write_batch(), db.write_batch()
    ...         first.put(b"a", b"1")
    ...         second.delete(b"a")
    ...         second.append(first)
    ...         await second.write()
    ...         first.clear()
    ...         return len(first), second.approximate_size(), await db.get(b"a")
    >>> asyncio.run(main())
    (0, 20, b'1')
    """

    def __init__(
        self,
        write: Callable[[WriteBatch], Awaitable[None]],
        *,
        transaction: bool = True,
        batch: _batch.WriteBatch | None = None,
    ) -> None:
        """Do not call this: use ``db.write_batch()``.  ``write`` applies the batch.

        ``batch`` collects the operations; the batch of a prefixed part adds a prefix to their keys.
        """
        self._write = write
        self._transaction = transaction
        self._batch = _batch.WriteBatch() if batch is None else batch

    def put(self, key: BytesLike, value: BytesLike) -> None:
        """Set ``key`` to ``value``."""
        self._batch.put(key, value)

    def delete(self, key: BytesLike) -> None:
        """Remove ``key``; no error if it is absent."""
        self._batch.delete(key)

    def append(self, source: _batch.WriteBatch | WriteBatch) -> None:
        """Add all operations of another batch after those of this one."""
        self._batch.append(plain_batch(source))

    def clear(self) -> None:
        """Drop all operations."""
        self._batch.clear()

    def __len__(self) -> int:
        """Number of operations."""
        return len(self._batch)

    def approximate_size(self) -> int:
        """Size in bytes of the batch's record in the log."""
        return self._batch.approximate_size()

    async def write(self) -> None:
        """Apply the batch to the store that made it.  It keeps its operations and may be reused."""
        await self._write(self)

    def __reduce__(self) -> Never:
        refuse_copy("a batch of a store", "it belongs to one event loop")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None or not self._transaction:
            await self.write()
        self.clear()


def plain_batch(batch: _batch.WriteBatch | WriteBatch) -> _batch.WriteBatch:
    """The batch itself, or the one that a batch of this module wraps."""
    return batch._batch if isinstance(batch, WriteBatch) else batch
