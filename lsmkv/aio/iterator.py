"""The iterator of :mod:`lsmkv.aio`, which fetches a chunk of entries per trip to a thread.

An asyncio lock is held during a trip, so only one thread at a time uses the wrapped iterator.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, Never, Protocol, Self

from lsmkv.aio.openable import Closing
from lsmkv.aio.threads import CallThreads
from lsmkv.engine.db.read.iterator import IteratorArguments, checked_arguments
from lsmkv.engine.errors import ClosedError
from lsmkv.engine.util.arguments import BytesLike, as_bytes
from lsmkv.engine.util.copying import refuse_copy
from lsmkv.engine.util.entry_type import Entry_co

CHUNK = 256
"""The most entries per trip, unless the iterator has another ``chunk``."""
CHUNK_BYTES = 1 << 20
"""A trip ends once its entries have this many bytes."""


class Steps(Protocol):
    """The wrapped iterator: an :class:`lsmkv.Iterator`, or the iterator of a shard set."""

    def next(self) -> Any:
        """The next entry."""

    def prev(self) -> Any:
        """The previous entry."""

    def seek(self, target: BytesLike) -> None:
        """Go before ``target``."""

    def seek_to_start(self) -> None:
        """Go to the lower end."""

    def seek_to_stop(self) -> None:
        """Go to the upper end."""

    def close(self) -> None:
        """Close it."""


class Iterator(Closing, Generic[Entry_co]):
    """:class:`lsmkv.Iterator` for ``async for``: fetches entries a chunk at a time.

    It stands between entries, like :class:`lsmkv.Iterator`, and moves both ways: :meth:`prev`
    returns the entry that :meth:`next` stepped over.  ``close`` or ``async with`` releases the
    versions of keys that it keeps alive; so does its deletion.  Tasks that share an iterator take
    turns, and each entry goes to one of them.  Errors are those of :class:`lsmkv.Iterator`.  A
    chunk costs one trip to a thread; the entries in it cost none.

    >>> import asyncio
    >>> from lsmkv.aio import open_db
    >>> async def main():
    ...     async with open_db(":memory:") as db:
    ...         for key in (b"a", b"b", b"c"):
    ...             await db.put(key, b"")
    ...         async with db.iterator(include_value=False, start=b"b") as keys:
    ...             return await keys.next(), await keys.prev(), [key async for key in keys]
    >>> asyncio.run(main())
    (b'b', b'b', [b'b', b'c'])

    >>> async def main():
    ...     async with open_db(":memory:") as db:
    ...         for key in (b"a", b"b", b"c"):
    ...             await db.put(key, b"")
    ...         keys = db.iterator(include_value=False)
    ...         await keys.seek_to_stop()
    ...         last = await keys.prev()
    ...         await keys.seek_to_start()
    ...         first = await keys.next()
    ...         await keys.seek(b"bb")
    ...         third = await keys.next()
    ...         await keys.close()
    ...         return first, last, third, keys.closed
    >>> asyncio.run(main())
    (b'a', b'c', b'c', True)
    """

    def __init__(
        self,
        threads: CallThreads,
        source: Callable[..., Steps],
        chunk: int,
        arguments: IteratorArguments,
        lock: asyncio.Lock | None = None,
    ) -> None:
        """Do not call this: use the method ``iterator`` of a store, snapshot or transaction.

        ``lock`` is one that other trips to the same object take too, if one thread at a time may be
        in it.
        """
        if chunk < 1:
            raise ValueError(f"chunk must be 1 or more, not {chunk}")
        self._threads = threads
        self._source = source
        self._arguments = checked_arguments(arguments)
        self._chunk = chunk
        # Held during every trip: one thread at a time uses the iterator.
        self._lock = asyncio.Lock() if lock is None else lock
        self._iterator: Steps | None = None
        self._closed = False
        # This object is before self._chunk_entries[self._at]; the wrapped iterator is after all of
        # them.
        self._chunk_entries: list[Entry_co] = []
        self._at = 0
        self._arrived: tuple[list[Entry_co], int] | None = None  # both as set by a trip

    def __aiter__(self) -> Self:
        """The iterator itself, at its current position."""
        return self

    async def __anext__(self) -> Entry_co:
        """The next entry: ``(key, value)``, or the key or value alone if the caller chose that."""
        if self._at < len(self._chunk_entries) and not self._lock.locked():
            return self._take()
        async with self._lock:
            if self._at == len(self._chunk_entries):
                await self._trip(self._fetch)
            if self._at == len(self._chunk_entries):
                raise StopAsyncIteration
            return self._take()

    async def next(self) -> Entry_co:
        """Like ``anext(iterator)``: raises ``StopAsyncIteration`` at the end."""
        return await self.__anext__()

    async def prev(self) -> Entry_co:
        """The previous entry, against the iterator's direction; ``StopAsyncIteration`` at the
        beginning.

        It fetches a chunk of entries, like ``next``.
        """
        async with self._lock:
            if self._at == 0:
                await self._trip(self._fetch_back)
            if self._at == 0:
                raise StopAsyncIteration
            self._refuse_if_closed()  # perhaps no trip was needed
            self._at -= 1
            return self._chunk_entries[self._at]

    async def seek(self, target: BytesLike) -> None:
        """Move to the position before ``target``, or where it would be, within the range."""
        name = as_bytes(target, "target")
        await self._move(lambda iterator: iterator.seek(name))

    async def seek_to_start(self) -> None:
        """Move to the lower end of the range, whatever the iterator's direction."""
        await self._move(lambda iterator: iterator.seek_to_start())

    async def seek_to_stop(self) -> None:
        """Move to the upper end of the range, whatever the iterator's direction."""
        await self._move(lambda iterator: iterator.seek_to_stop())

    @property
    def closed(self) -> bool:
        """True if the iterator or its store is closed."""
        return self._closed or self._threads.ended

    async def close(self) -> None:
        """Close the iterator, after any trip under way.  A second close has no effect."""
        self._closed = True
        if self._lock.locked():
            async with self._lock:  # if this is cancelled, the trip under way releases it
                pass
        self._let_go()

    def __reduce__(self) -> Never:
        refuse_copy("an iterator", "it belongs to one event loop")

    async def __aenter__(self) -> Self:
        """Open the iterator: it sees the store as it is now."""
        async with self._lock:
            await self._trip(self._open_in_thread)
        return self

    def _take(self) -> Entry_co:
        self._refuse_if_closed()
        entry = self._chunk_entries[self._at]
        self._at += 1
        return entry

    async def _move(self, move: Callable[[Steps], None]) -> None:
        async with self._lock:
            await self._trip(partial(self._move_in_thread, move))

    async def _trip(self, function: Callable[[], object]) -> None:
        """Run one of the functions below in a thread.  The caller holds the lock.

        Its entries are kept if the caller is cancelled during the trip.
        """
        self._refuse_if_closed()
        try:
            await self._threads.run(function)
        finally:
            if self._arrived is not None:
                self._chunk_entries, self._at = self._arrived
                self._arrived = None
            if self._closed:
                self._let_go()
        self._refuse_if_closed()

    def _let_go(self) -> None:
        if self._iterator is not None:
            self._iterator.close()  # waits for nothing
            self._iterator = None
        self._chunk_entries, self._at = [], 0

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise ClosedError("the iterator is closed")
        if self._threads.ended:
            raise ClosedError("the database of this iterator is closed")

    # In a thread

    def _open_in_thread(self) -> Steps:
        if self._iterator is None:
            self._iterator = self._source(**self._arguments)
        return self._iterator

    def _fetch(self) -> None:
        entries = self._collect(self._open_in_thread().next)
        self._arrived = entries, 0

    def _fetch_back(self) -> None:
        iterator = self._open_in_thread()
        self._arrived = [], 0  # the state if an error ends this
        for _ in self._chunk_entries:
            iterator.prev()
        entries = self._collect(iterator.prev)
        for _ in entries:
            iterator.next()
        entries.reverse()
        self._arrived = entries, len(entries)

    def _move_in_thread(self, move: Callable[[Steps], None]) -> None:
        move(self._open_in_thread())
        self._arrived = [], 0

    def _collect(self, step: Callable[[], Entry_co]) -> list[Entry_co]:
        """A chunk, or fewer entries up to the end or an error, which the next step raises again."""
        entries: list[Entry_co] = []
        size = 0
        try:
            while len(entries) < self._chunk and size < CHUNK_BYTES:
                entry = step()
                entries.append(entry)
                size += _size_of(entry)
        except StopIteration:
            pass
        except Exception:
            if not entries:
                raise
        return entries


def _size_of(entry: Any) -> int:
    """Bytes of an entry as an iterator returns it: a pair, a key, a value, or None."""
    if isinstance(entry, tuple):
        return len(entry[0]) + len(entry[1])
    return 0 if entry is None else len(entry)
