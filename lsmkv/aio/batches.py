"""The batches that were committed after a sequence, for ``async for``."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Never, Self

from lsmkv.aio.openable import Closing
from lsmkv.aio.threads import CallThreads
from lsmkv.aio.watch import ChangeWatch
from lsmkv.engine.db.read import batches as _batches
from lsmkv.engine.errors import ClosedError
from lsmkv.engine.util.copying import refuse_copy

_MOST: Final = 256
"""Batches fetched by one trip to a thread."""
_MOST_OPERATIONS: Final = 4096
"""A trip ends once its batches have so many operations."""


class Batches(Closing):
    """:class:`lsmkv.Batches` for ``async for``, which waits for the next batch and never ends.

    Waiting takes no thread of those for calls: one more thread waits for all iterators of a store.
    Tasks that share an iterator take turns.  If a step is cancelled, no batch is lost.  Errors and
    costs are those of :class:`lsmkv.Batches`, with a trip to a thread for up to 256 batches; errors
    of its beginning come with the first step.

    >>> import asyncio
    >>> from lsmkv import aio
    >>> async def main():
    ...     async with aio.DB(":memory:") as db, db.batches(since=0) as batches:
    ...         await db.put(b"k", b"v")
    ...         async for batch in batches:
    ...             return batch.operations, batches.sequence, batches.closed
    >>> asyncio.run(main())
    ([(b'k', b'v')], 1, False)
    """

    def __init__(
        self,
        threads: CallThreads,
        watch: ChangeWatch,
        begin: Callable[[int | None], _batches.Batches],
        since: int | None,
    ) -> None:
        self._threads = threads
        self._watch = watch
        self._begin = begin
        self._from = since
        self._since = -1 if since is None else since
        self._batches: _batches.Batches | None = None
        self._fetched: deque[_batches.CommittedBatch] = deque()
        self._lock = asyncio.Lock()
        self._closed = False

    @property
    def sequence(self) -> int:
        """The sequence of the last operation that was returned, or that it began after; -1 before
        the beginning of one that begins at the last write."""
        return self._since

    @property
    def closed(self) -> bool:
        """True if the iterator was closed."""
        return self._closed

    async def close(self) -> None:
        """Release the logs; a step that waits raises :class:`~lsmkv.ClosedError`, at the next write
        at the latest.

        >>> import asyncio
        >>> from lsmkv import aio
        >>> async def main():
        ...     async with aio.DB(":memory:") as db:
        ...         batches = db.batches(0)
        ...         await batches.close()
        ...         return batches.closed
        >>> asyncio.run(main())
        True
        """
        self._closed = True
        self._fetched.clear()
        if not self._lock.locked():
            self._let_go()

    def __aiter__(self) -> Self:
        """Itself."""
        return self

    async def __anext__(self) -> _batches.CommittedBatch:
        """The next batch, which is waited for."""
        async with self._lock:
            while True:
                self._refuse_if_closed()
                if self._fetched:
                    batch = self._fetched.popleft()
                    self._since = batch.last_sequence
                    return batch
                try:
                    await self._threads.run(self._fetch)
                    if not self._fetched and not self._closed:
                        await self._watch.changed(self._since, self._since)
                finally:
                    if self._closed:
                        self._let_go()

    async def __aenter__(self) -> Self:
        async with self._lock:
            self._refuse_if_closed()
            await self._threads.run(self._open)
        return self

    def __repr__(self) -> str:
        closed = " (closed)" if self._closed else ""
        return f"<lsmkv.aio.Batches after write {self._since}{closed}>"

    def __reduce__(self) -> Never:
        refuse_copy("an iterator over batches", "it belongs to one event loop: begin another one")

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise ClosedError("the iterator is closed")

    def _let_go(self) -> None:
        batches, self._batches = self._batches, None
        if batches is not None:
            batches.close()

    def _open(self) -> _batches.Batches:
        """In a thread: begin, unless it has begun."""
        if self._batches is None:
            self._batches = self._begin(self._from)
            self._since = self._batches.sequence
        return self._batches

    def _fetch(self) -> None:
        """In a thread: fetch what is there.  What it has fetched stays if the task is cancelled."""
        batches = self._open()
        operations = 0
        try:
            for batch in batches:
                self._fetched.append(batch)
                operations += len(batch.operations)
                if len(self._fetched) >= _MOST or operations >= _MOST_OPERATIONS:
                    break
        except Exception:
            if not self._fetched:
                raise  # else the next step raises it again
