"""The snapshot of :mod:`lsmkv.aio`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Never, Self

from lsmkv.aio.openable import Openable
from lsmkv.aio.readable import Readable
from lsmkv.aio.threads import CallThreads
from lsmkv.engine.db.handles import snapshot as _snapshot
from lsmkv.engine.errors import ClosedError
from lsmkv.engine.util.copying import refuse_copy


class Snapshot(Openable, Readable):
    """:class:`lsmkv.Snapshot` with ``async`` methods: the store as it was when the block was
    entered.

    Errors and costs are those of :class:`DB`; before it is taken and after it is closed, methods
    raise :class:`~lsmkv.ClosedError`.

    >>> import asyncio
    >>> from lsmkv.aio import open_db
    >>> async def main():
    ...     async with open_db(":memory:") as db, db.snapshot() as before:
    ...         await db.put(b"k", b"v")
    ...         return await before.get(b"k"), await db.get(b"k")
    >>> asyncio.run(main())
    (None, b'v')

    >>> async def main():
    ...     async with open_db(":memory:") as db:
    ...         await db.put(b"k", b"v")
    ...         snapshot = await db.snapshot().open()  # or: await db.snapshot()
    ...         await db.delete(b"k")
    ...         pairs = [pair async for pair in snapshot.iterator()]
    ...         sequence = snapshot.sequence
    ...         await snapshot.close()
    ...         return pairs, sequence, snapshot.closed
    >>> asyncio.run(main())
    ([(b'k', b'v')], 1, True)
    """

    def __init__(self, threads: CallThreads, take: Callable[[], _snapshot.Snapshot]) -> None:
        """Do not call this: use ``db.snapshot()``."""
        self._threads = threads
        self._take = take
        self._snapshot: _snapshot.Snapshot | None = None
        self._closed = False

    @property
    def sequence(self) -> int:
        """The sequence of the last write that the snapshot sees."""
        return self._opened()[1].sequence

    @property
    def closed(self) -> bool:
        """True if the snapshot is closed, or not taken yet."""
        return self._snapshot is None

    async def open(self) -> Self:
        """Take the snapshot, as ``async with`` and ``await`` do.  A second call has no effect."""
        if self._closed:
            raise ClosedError("the snapshot is closed")
        if self._snapshot is None:
            await self._threads.run(self._open_in_thread)
        return self

    def __reduce__(self) -> Never:
        refuse_copy("a snapshot", "it belongs to one event loop")

    def _open_in_thread(self) -> None:
        self._snapshot = self._take()

    def _is_open(self) -> bool:
        return self._snapshot is not None

    async def close(self) -> None:
        """Release the versions that the snapshot keeps.  A second close has no effect."""
        self._closed = True
        if self._snapshot is not None:
            self._snapshot.close()  # waits for nothing
            self._snapshot = None

    def _opened(self) -> tuple[CallThreads, _snapshot.Snapshot]:
        if self._snapshot is None:
            why = "closed" if self._closed else "not taken yet: use async with, or await"
            raise ClosedError(f"the snapshot is {why}")
        return self._threads, self._snapshot
