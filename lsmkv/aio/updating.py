"""``update`` and ``run``, which call a function of the user and commit what it has written.

``DB`` and ``PrefixedDB`` derive from :class:`Updatable`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import TypeVar, overload

from lsmkv.aio.transaction import Transaction
from lsmkv.engine.db.handles.transaction import Isolation
from lsmkv.engine.util.arguments import BytesLike, as_bytes

T = TypeVar("T")

Change = Callable[[bytes | None], BytesLike | Awaitable[BytesLike | None] | None]
"""Takes the old value of a key, and returns the new one; None is for no value."""


class Updatable(ABC):
    """An object that functions of the user change."""

    async def update(self, key: BytesLike, function: Change, *, sync: bool = False) -> bytes | None:
        """Replace the value of ``key`` by a function's result: :meth:`lsmkv.DB.update`.

        The function, plain or ``async``, runs in the event loop, and may be called more than once.

        >>> import asyncio
        >>> from lsmkv.aio import open_db
        >>> async def main():
        ...     async with open_db(":memory:") as db:
        ...         def more(old):
        ...             return b"%d" % (int(old or 0) + 1)
        ...         await asyncio.gather(*(db.update(b"n", more) for _ in range(20)))
        ...         return await db.get(b"n")
        >>> asyncio.run(main())
        b'20'
        """
        return await self._update(as_bytes(key, "key"), function, sync)

    @overload
    async def run(
        self,
        function: Callable[[Transaction], Awaitable[T]],
        *,
        isolation: Isolation = "serializable",
        sync: bool = False,
    ) -> T: ...

    @overload
    async def run(
        self,
        function: Callable[[Transaction], T],
        *,
        isolation: Isolation = "serializable",
        sync: bool = False,
    ) -> T: ...

    async def run(
        self,
        function: Callable[[Transaction], T | Awaitable[T]],
        *,
        isolation: Isolation = "serializable",
        sync: bool = False,
    ) -> T:
        """Call ``function`` with a transaction, and commit it: :meth:`lsmkv.DB.run`.

        The function, plain or ``async``, runs in the event loop, and may be called more than once.

        >>> import asyncio
        >>> from lsmkv.aio import open_db
        >>> async def move(transaction):
        ...     transaction.put(b"new", await transaction.get(b"old", b""))
        ...     transaction.delete(b"old")
        >>> async def main():
        ...     async with open_db(":memory:") as db:
        ...         await db.put(b"old", b"v")
        ...         await db.run(move)
        ...         return await db.multi_get([b"old", b"new"])
        >>> asyncio.run(main())
        [None, b'v']
        """
        return await self._run(function, isolation, sync)

    @abstractmethod
    async def _update(self, key: bytes, function: Change, sync: bool) -> bytes | None: ...

    @abstractmethod
    async def _run(
        self,
        function: Callable[[Transaction], T | Awaitable[T]],
        isolation: Isolation,
        sync: bool,
    ) -> T: ...
