"""The same store for ``asyncio``: nothing here blocks the event loop.

>>> import asyncio
>>> import lsmkv.aio
>>> async def main():
...     async with lsmkv.aio.open_db(":memory:") as db:
...         await db.put(b"k", b"v")
...         return [pair async for pair in db.iterator(prefix=b"k")]
>>> asyncio.run(main())
[(b'k', b'v')]

Names and arguments are those of :class:`lsmkv.DB`, and so are costs and errors; calls run in a few
threads of the store's own.  A call costs a trip to such a thread and back, tens of microseconds on
top of its work, so for many keys prefer ``multi_get``, a batch, or an iterator, which fetches a
chunk a trip.

**Cancellation.**  A cancelled call that no thread has begun is dropped: nothing happens.  One that
a thread is in ends first, and then the cancellation goes on: once ``await db.put(...)`` is over,
the write has happened whole or never will, and an iterator may be used again or closed.  The
exceptions are ``compact_range``, ``ingest``, ``verify`` and ``check``: they are left to their
thread and go on, until ``close`` ends a compaction or an ingest.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, Unpack, overload

from lsmkv.db import db as _db
from lsmkv.db.scan import iterator as _iterator
from lsmkv.db.scan.iterator import IteratorArguments
from lsmkv.db.views import snapshot as _snapshot
from lsmkv.db.views import transaction as _transaction
from lsmkv.db.views.explain import Explanation
from lsmkv.errors import ClosedError, CorruptionError
from lsmkv.format import batch as _batch
from lsmkv.format.batch import BytesLike, as_bytes
from lsmkv.options import OptionArguments, Options
from lsmkv.stats import Stats

__all__ = ["DB", "Iterator", "Snapshot", "Transaction", "WriteBatch", "open_db"]

CALL_THREADS = 3
"""Threads for calls; one more is for ``compact_range`` and the like, which take their time."""
CHUNK = 256
"""Entries that an iterator fetches a trip, unless it is told otherwise ..."""
CHUNK_BYTES = 1 << 20
"""... or fewer, as soon as they have this many bytes."""

Progress = Callable[[int, int, str], None]
"""Told how much is done, of how much, and what comes next."""

P = ParamSpec("P")
T = TypeVar("T")


class _Threads:
    """The threads of one store, and the calls that they are in."""

    def __init__(self) -> None:
        self._calls = ThreadPoolExecutor(CALL_THREADS, thread_name_prefix="lsmkv-aio")
        self._long = ThreadPoolExecutor(1, thread_name_prefix="lsmkv-aio-long")
        self._pending: set[Future[Any]] = set()
        self._end: Future[None] | None = None

    @property
    def ended(self) -> bool:
        """Whether :meth:`end` was called."""
        return self._end is not None

    async def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """What the function returns, in a thread; see the module on cancellation."""
        self._refuse_if_ended()
        call = self._calls.submit(function, *args, **kwargs)
        self._pending.add(call)
        call.add_done_callback(self._pending.discard)
        return await _outcome(call)

    async def run_long(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """The same, save that a cancelled call goes on without its caller."""
        self._refuse_if_ended()
        return await asyncio.wrap_future(self._long.submit(function, *args, **kwargs))

    async def end(self, last: Callable[[], None]) -> None:
        """Let the calls end that were made before, run ``last``, and let the threads go.

        Long calls are not waited for until ``last``, which ends them, has run.  Once begun it is
        done whole, and whoever asks again waits for the same end.
        """
        if self._end is None:
            closer = ThreadPoolExecutor(1, thread_name_prefix="lsmkv-aio-close")
            self._end = closer.submit(self._end_in_thread, last)
            closer.shutdown(wait=False)
        await _outcome(self._end, may_drop=False)

    def _end_in_thread(self, last: Callable[[], None]) -> None:
        wait(list(self._pending))
        try:
            last()
        finally:
            self._calls.shutdown()
            self._long.shutdown()

    def _refuse_if_ended(self) -> None:
        if self._end is not None:
            raise ClosedError("the database is closed")


async def _outcome(call: Future[T], may_drop: bool = True) -> T:
    """What a call in a thread comes to, and not before it is over.

    Cancelled meanwhile, it is dropped if no thread has begun it, and else waited for all the same.
    """
    cancelled: asyncio.CancelledError | None = None
    while True:
        done = asyncio.wrap_future(call)  # cancelled, it takes the call with it if not begun
        try:
            result = await (done if may_drop else asyncio.shield(done))
        except asyncio.CancelledError as error:
            cancelled = error
            if call.done():
                raise
        except BaseException:
            if cancelled is not None:  # whoever is being cancelled cannot be told
                raise cancelled from None
            raise
        else:
            if cancelled is not None:
                raise cancelled
            return result


def open_db(path: str | os.PathLike[str], **options: Unpack[OptionArguments]) -> DB:
    """A store to be opened: ``async with open_db(path) as db``, or ``db = await open_db(path)``.

    The keywords are those of :class:`lsmkv.DB`, and so are errors and costs, when it is opened.

    >>> async def main():
    ...     async with open_db(":memory:") as db:
    ...         return await db.get(b"k", b"nothing")
    >>> asyncio.run(main())
    b'nothing'
    """
    return DB(path, **options)


class DB:
    """:class:`lsmkv.DB` with ``async`` methods.

    It is opened by ``async with`` or ``await``, and used in the event loop that opened it, by any
    number of tasks.  Close it: ``async with`` does.  Until it is open, and after it was closed,
    methods raise :class:`~lsmkv.ClosedError`.

    >>> async def main():
    ...     db = await DB(":memory:")
    ...     await db.put(b"k", b"v")
    ...     value = await db.get(b"k")
    ...     await db.close()
    ...     return value, db.closed, db.name
    >>> asyncio.run(main())
    (b'v', True, ':memory:')

    Writing, one by one and together:

    >>> async def main():
    ...     async with open_db(":memory:") as db:
    ...         async with db.snapshot() as before, db.write_batch() as batch:
    ...             batch.put(b"a", b"1")
    ...             await db.write(batch)
    ...             await db.delete(b"a")
    ...             await db.sync()
    ...             async with db.transaction() as transaction:
    ...                 transaction.put(b"b", b"2")
    ...             now = [pair async for pair in db.iterator()]
    ...             return now, await before.get(b"b"), await db.contains(b"a")
    >>> asyncio.run(main())
    ([(b'b', b'2')], None, False)

    Looking after the files:

    >>> async def main():
    ...     async with open_db(":memory:", compression=None) as db:
    ...         await db.put(b"ant", bytes(9_000))
    ...         await db.put(b"cow", bytes(9_000))
    ...         await db.flush()
    ...         await db.compact_range()
    ...         await db.check()
    ...         told, stats = await db.explain(b"bee"), await db.stats()
    ...         return (
    ...             (await db.may_contain(b"bee"), told.blocks_searched, stats.flushes),
    ...             await db.get_property("leveldb.num-files-at-level2"),
    ...             await db.approximate_size(b"bee", b"d") // 1000,
    ...             await db.approximate_sizes((b"x", b"y"), (b"y", b"z")),
    ...             (await db.verify(), db.options.compression),
    ...         )
    >>> asyncio.run(main())
    ((False, 0, 1), '1', 9, [0, 0], ([], 0))
    """

    _sync_db: _db.DB | None = None
    _threads: _Threads | None = None

    def __init__(self, path: str | os.PathLike[str], **options: Unpack[OptionArguments]) -> None:
        """Nothing is opened yet.  The keywords are those of :class:`lsmkv.DB`."""
        self.path: str = os.fsdecode(path)
        """The directory, as it was given."""
        self._options = options

    async def open(self) -> Self:
        """Open the store; as ``async with`` and ``await`` do.  ``ValueError`` the second time.

        Cancelled, it closes again what it opened.  Raises and costs what :class:`lsmkv.DB` does.

        >>> async def main():
        ...     db = DB("no such directory")
        ...     await db.open()
        >>> asyncio.run(main())
        Traceback (most recent call last):
        lsmkv.errors.NotFoundError: [Errno 2] no database here, ...: 'no such directory'
        """
        if self._threads is not None:
            raise ValueError("this DB was opened already: make another one")
        threads = self._threads = _Threads()
        try:
            await threads.run(self._open_in_thread)
        except BaseException:
            await self.close()
            raise
        return self

    def _open_in_thread(self) -> None:
        self._sync_db = _db.DB(self.path, **self._options)

    def _close_in_thread(self) -> None:
        if self._sync_db is not None:
            self._sync_db.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __await__(self) -> Generator[Any, None, Self]:
        return self.open().__await__()

    def __repr__(self) -> str:
        return f"<lsmkv.aio.DB {self.path!r}{' (closed)' if self.closed else ''}>"

    @property
    def options(self) -> Options:
        """The settings in force."""
        return self._opened()[1].options

    @property
    def name(self) -> str:
        """The path again, under plyvel's name for it."""
        return self.path

    @property
    def closed(self) -> bool:
        """Whether the store is not open: not yet, or no more."""
        threads = self._threads
        return self._sync_db is None or self._sync_db.closed or threads is None or threads.ended

    async def close(self) -> None:
        """Close the store, and let its threads go.  Closing twice is harmless.

        New calls are refused at once.  Calls under way end first, save ``compact_range``, which
        ends with :class:`~lsmkv.ClosedError`; then the log is synced.  Cancelled, it closes whole
        before the cancellation goes on.
        """
        if self._threads is not None:
            await self._threads.end(self._close_in_thread)

    def _opened(self) -> tuple[_Threads, _db.DB]:
        if self._threads is None or self._sync_db is None:
            raise ClosedError("the database is not open: use async with, or await")
        return self._threads, self._sync_db

    # Reading

    @overload
    async def get(
        self,
        key: BytesLike,
        default: None = None,
        *,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> bytes | None: ...

    @overload
    async def get(
        self,
        key: BytesLike,
        default: T,
        *,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> bytes | T: ...

    async def get(
        self,
        key: BytesLike,
        default: T | None = None,
        *,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> bytes | T | None:
        """The value of ``key``, or ``default``: :meth:`lsmkv.DB.get`."""
        threads, db = self._opened()
        read = partial(db.get, as_bytes(key, "key"), fill_cache=fill_cache)
        value = await threads.run(read)
        return default if value is None else value

    async def multi_get(
        self, keys: Iterable[BytesLike], *, fill_cache: bool = True
    ) -> list[bytes | None]:
        """The values of many keys at one moment, in one trip: :meth:`lsmkv.DB.multi_get`.

        >>> async def main():
        ...     async with open_db(":memory:") as db:
        ...         await db.put(b"a", b"1")
        ...         return await db.multi_get([b"b", b"a"])
        >>> asyncio.run(main())
        [None, b'1']
        """
        threads, db = self._opened()
        names = [as_bytes(key, "key") for key in keys]
        return await threads.run(db.multi_get, names, fill_cache=fill_cache)

    async def contains(self, key: BytesLike) -> bool:
        """Whether ``key`` is there: ``key in db``, which cannot be awaited."""
        threads, db = self._opened()
        return await threads.run(db.__contains__, as_bytes(key, "key"))

    async def may_contain(self, key: BytesLike) -> bool:
        """False only if ``key`` is not there: :meth:`lsmkv.DB.may_contain`."""
        threads, db = self._opened()
        return await threads.run(db.may_contain, as_bytes(key, "key"))

    async def explain(self, key: BytesLike) -> Explanation:
        """How a Get of ``key`` goes, step by step: :meth:`lsmkv.DB.explain`."""
        threads, db = self._opened()
        return await threads.run(db.explain, as_bytes(key, "key"))

    def iterator(self, *, chunk: int = CHUNK, **arguments: Unpack[IteratorArguments]) -> Iterator:
        """An iterator over the store, or a range of it: ``async for`` it.

        The keywords are those of :meth:`lsmkv.DB.iterator`; at most ``chunk`` entries, and about a
        megabyte, are fetched in one trip.  It sees the store as it is at its first trip.  Wrong
        arguments raise then, a ``chunk`` below 1 ``ValueError`` at once.
        """
        threads, db = self._opened()
        return Iterator(threads, db.iterator, chunk, arguments)

    def __aiter__(self) -> Iterator:
        """:meth:`iterator` over everything."""
        return self.iterator()

    def snapshot(self) -> Snapshot:
        """The store as it is when this is entered: ``async with db.snapshot() as snapshot``.

        Or ``snapshot = await db.snapshot()``, and ``await snapshot.close()`` later.
        """
        threads, db = self._opened()
        return Snapshot(threads, db.snapshot)

    # Writing

    async def put(self, key: BytesLike, value: BytesLike, *, sync: bool = False) -> None:
        """Set ``key`` to ``value``: :meth:`lsmkv.DB.put`."""
        threads, db = self._opened()
        await threads.run(db.put, as_bytes(key, "key"), as_bytes(value, "value"), sync=sync)

    async def delete(self, key: BytesLike, *, sync: bool = False) -> None:
        """Remove ``key``; no error if it is not there: :meth:`lsmkv.DB.delete`."""
        threads, db = self._opened()
        await threads.run(db.delete, as_bytes(key, "key"), sync=sync)

    async def write(self, batch: _batch.WriteBatch | WriteBatch, /, *, sync: bool = False) -> None:
        """Apply all operations of a batch, of either kind, or none: :meth:`lsmkv.DB.write`.

        What the batch holds now is written, whatever is done with it meanwhile.
        """
        threads, db = self._opened()
        copy = _batch.WriteBatch()
        copy.append(_plain(batch))
        await threads.run(db.write, copy, sync=sync)

    def write_batch(self, *, transaction: bool = True, sync: bool = False) -> WriteBatch:
        """A batch that writes to this store: ``async with db.write_batch() as batch``.

        With ``transaction`` (the default) a block that raises, or is cancelled, writes nothing.
        """
        self._opened()
        return WriteBatch(self, transaction=transaction, sync=sync)

    def transaction(self, *, sync: bool = False) -> Transaction:
        """An optimistic transaction: ``async with db.transaction() as transaction``."""
        threads, db = self._opened()
        return Transaction(threads, partial(db.transaction, sync=sync))

    async def sync(self) -> None:
        """Make every write that has returned durable: :meth:`lsmkv.DB.sync`."""
        threads, db = self._opened()
        await threads.run(db.sync)

    async def flush(self) -> None:
        """Turn the memtable into a table, and wait for it: :meth:`lsmkv.DB.flush`."""
        threads, db = self._opened()
        await threads.run(db.flush)

    # The files

    async def compact_range(
        self,
        start: BytesLike | None = None,
        stop: BytesLike | None = None,
        *,
        progress: Progress | None = None,
    ) -> None:
        """Compact the keys from ``start`` to ``stop``: :meth:`lsmkv.DB.compact_range`.

        Cancelled, it goes on in its thread until it is done or the store is closed.  One at a
        time: others wait for it.  ``progress`` is called in that thread.
        """
        threads, db = self._opened()
        await threads.run_long(db.compact_range, start, stop, progress=progress)

    async def verify(self, *, progress: Progress | None = None) -> list[CorruptionError]:
        """Read every block of every table, and return the damage: :meth:`lsmkv.DB.verify`.

        Cancelled, it goes on in its thread, and ``close`` waits for it.  ``progress`` is called in
        that thread.
        """
        threads, db = self._opened()
        return await threads.run_long(db.verify, progress=progress)

    async def check(self) -> None:
        """Read every table and raise unless all is sound: :meth:`lsmkv.DB.check`.

        Cancelled, it goes on in its thread, and ``close`` waits for it.
        """
        threads, db = self._opened()
        await threads.run_long(db.check)

    async def checkpoint(
        self, path: str | os.PathLike[str], *, progress: Progress | None = None
    ) -> None:
        """Make a second store that holds what this one holds now: :meth:`lsmkv.DB.checkpoint`.

        ``progress`` is called in a thread.

        >>> from lsmkv import MemoryEnv
        >>> async def main(env):
        ...     async with open_db("store", create_if_missing=True, env=env) as db:
        ...         await db.put(b"k", b"v")
        ...         await db.checkpoint("copy")
        ...     async with open_db("copy", env=env) as copy:
        ...         return await copy.get(b"k")
        >>> asyncio.run(main(MemoryEnv()))
        b'v'
        """
        threads, db = self._opened()
        await threads.run(db.checkpoint, path, progress=progress)

    async def ingest(
        self, files: Iterable[str | os.PathLike[str]], *, progress: Progress | None = None
    ) -> None:
        """Write the content of tables made by ``TableWriter``: :meth:`lsmkv.DB.ingest`.

        Cancelled, it goes on in its thread until it is done or the store is closed, which leaves
        all of it or nothing.  ``progress`` is called in that thread.

        >>> from lsmkv import MemoryEnv, TableWriter
        >>> async def main(env):
        ...     with TableWriter("bulk.ldb", env=env) as table:
        ...         table.add(b"k", b"v")
        ...     async with open_db("store", create_if_missing=True, env=env) as db:
        ...         await db.ingest(["bulk.ldb"])
        ...         return await db.get(b"k")
        >>> asyncio.run(main(MemoryEnv()))
        b'v'
        """
        threads, db = self._opened()
        await threads.run_long(db.ingest, files, progress=progress)

    async def refresh(self) -> None:
        """Let a store open for reading only show what is there now: :meth:`lsmkv.DB.refresh`.

        >>> from lsmkv import MemoryEnv
        >>> async def main(env):
        ...     writer = open_db("store", create_if_missing=True, env=env)
        ...     async with writer, open_db("store", read_only=True, env=env) as reader:
        ...         await writer.put(b"k", b"v")
        ...         await reader.refresh()
        ...         return await reader.get(b"k")
        >>> asyncio.run(main(MemoryEnv()))
        b'v'
        """
        threads, db = self._opened()
        await threads.run(db.refresh)

    @overload
    async def get_property(self, name: str) -> str | None: ...

    @overload
    async def get_property(self, name: bytes) -> bytes | None: ...

    async def get_property(self, name: str | bytes) -> str | bytes | None:
        """A property by LevelDB's name for it, or None: :meth:`lsmkv.DB.get_property`."""
        threads, db = self._opened()
        return await threads.run(lambda: db.get_property(name))

    async def approximate_size(self, start: BytesLike, stop: BytesLike) -> int:
        """About how many bytes a range uses: :meth:`lsmkv.DB.approximate_size`."""
        threads, db = self._opened()
        return await threads.run(db.approximate_size, start, stop)

    async def approximate_sizes(self, *ranges: tuple[BytesLike, BytesLike]) -> list[int]:
        """The same of several ranges: :meth:`lsmkv.DB.approximate_sizes`."""
        threads, db = self._opened()
        return await threads.run(db.approximate_sizes, *ranges)

    async def stats(self) -> Stats:
        """Counters since the store was opened: :meth:`lsmkv.DB.stats`."""
        threads, db = self._opened()
        return await threads.run(db.stats)


class Iterator:
    """:class:`lsmkv.Iterator` for ``async for``: fetches entries a chunk at a time.

    It stands between entries as its model does, and goes both ways: :meth:`prev` returns what
    :meth:`next` stepped over.  Close it, or use it in ``async with``, to let go of the versions
    that it keeps alive; forgetting it does the same.  Tasks that share one take turns, and get each
    entry once between them.  Errors are those of its model; a chunk costs one trip to a thread,
    what is left of it nothing.

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
        threads: _Threads,
        source: Callable[..., _iterator.Iterator],
        chunk: int,
        arguments: IteratorArguments,
    ) -> None:
        """Not called by users: they ask a store or a snapshot for an iterator."""
        if chunk < 1:
            raise ValueError(f"a chunk is at least one entry, not {chunk}")
        self._threads = threads
        self._source = source
        self._arguments = arguments
        self._chunk = chunk
        self._lock = asyncio.Lock()  # held on every trip: threads never meet in the iterator
        self._iterator: _iterator.Iterator | None = None
        self._closed = False
        # This object stands before self._window[self._at], the iterator behind the whole window.
        self._window: list[Any] = []
        self._at = 0
        self._arrived: tuple[list[Any], int] | None = None  # both, as a trip left them

    def __aiter__(self) -> Self:
        """The iterator itself: what is left of it."""
        return self

    async def __anext__(self) -> Any:
        """The next entry: ``(key, value)``, or the half asked for."""
        if self._at < len(self._window) and not self._lock.locked():
            return self._take()
        async with self._lock:
            if self._at == len(self._window):
                await self._trip(self._fetch)
            if self._at == len(self._window):
                raise StopAsyncIteration
            return self._take()

    async def next(self) -> Any:
        """As ``anext(iterator)``: raises ``StopAsyncIteration`` at the end."""
        return await self.__anext__()

    async def prev(self) -> Any:
        """The entry before, against the iterator's direction; ``StopAsyncIteration`` at its end.

        Fetches a chunk of them, too.
        """
        async with self._lock:
            if self._at == 0:
                await self._trip(self._fetch_back)
            if self._at == 0:
                raise StopAsyncIteration
            self._refuse_if_closed()  # no trip may have been needed
            self._at -= 1
            return self._window[self._at]

    async def seek(self, target: BytesLike) -> None:
        """Go to the gap before ``target``, or before where it would be; held to the range."""
        name = as_bytes(target, "target")
        await self._move(lambda iterator: iterator.seek(name))

    async def seek_to_start(self) -> None:
        """Go to the lower end of the range, whatever the iterator's direction."""
        await self._move(lambda iterator: iterator.seek_to_start())

    async def seek_to_stop(self) -> None:
        """Go to the upper end of the range, whatever the iterator's direction."""
        await self._move(lambda iterator: iterator.seek_to_stop())

    @property
    def closed(self) -> bool:
        """Whether the iterator, or its store, was closed."""
        return self._closed or self._threads.ended

    async def close(self) -> None:
        """Let go of everything, once a trip under way has ended.  Closing twice is harmless."""
        self._closed = True
        if self._lock.locked():
            async with self._lock:  # cancelled here, the trip that is under way lets go
                pass
        self._let_go()

    async def __aenter__(self) -> Self:
        """Fixes the moment that the iterator sees."""
        async with self._lock:
            await self._trip(self._open_in_thread)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def _take(self) -> Any:
        self._refuse_if_closed()
        entry = self._window[self._at]
        self._at += 1
        return entry

    async def _move(self, move: Callable[[_iterator.Iterator], None]) -> None:
        async with self._lock:
            await self._trip(partial(self._move_in_thread, move))

    async def _trip(self, function: Callable[[], object]) -> None:
        """Run one of the functions below.  Caller holds the lock.

        What it found is kept if the caller is cancelled meanwhile.
        """
        self._refuse_if_closed()
        try:
            await self._threads.run(function)
        finally:
            if self._arrived is not None:
                self._window, self._at = self._arrived
                self._arrived = None
            if self._closed:
                self._let_go()
        self._refuse_if_closed()

    def _let_go(self) -> None:
        if self._iterator is not None:
            self._iterator.close()  # which waits for nothing
            self._iterator = None
        self._window, self._at = [], 0

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise ClosedError("the iterator is closed")
        if self._threads.ended:
            raise ClosedError("the database of this iterator is closed")

    # In a thread

    def _open_in_thread(self) -> _iterator.Iterator:
        if self._iterator is None:
            self._iterator = self._source(**self._arguments)
        return self._iterator

    def _fetch(self) -> None:
        entries = self._collect(self._open_in_thread().next)
        self._arrived = entries, 0

    def _fetch_back(self) -> None:
        iterator = self._open_in_thread()
        self._arrived = [], 0  # should an error end this
        for _ in self._window:
            iterator.prev()
        entries = self._collect(iterator.prev)
        for _ in entries:
            iterator.next()
        entries.reverse()
        self._arrived = entries, len(entries)

    def _move_in_thread(self, move: Callable[[_iterator.Iterator], None]) -> None:
        move(self._open_in_thread())
        self._arrived = [], 0

    def _collect(self, step: Callable[[], Any]) -> list[Any]:
        """A chunk, or what there is before the end or before an error, which comes again."""
        entries: list[Any] = []
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


class Snapshot:
    """:class:`lsmkv.Snapshot` with ``async`` methods: a store as it was when this was entered.

    Errors and costs are those of :class:`DB`; before it is entered and once it is closed, it
    raises :class:`~lsmkv.ClosedError`.

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
    ...         await snapshot.close()
    ...         return pairs, snapshot.closed
    >>> asyncio.run(main())
    ([(b'k', b'v')], True)
    """

    def __init__(self, threads: _Threads, take: Callable[[], _snapshot.Snapshot]) -> None:
        """Not called by users: ``db.snapshot()`` makes one."""
        self._threads = threads
        self._take = take
        self._snapshot: _snapshot.Snapshot | None = None
        self._closed = False

    @overload
    async def get(
        self,
        key: BytesLike,
        default: None = None,
        *,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> bytes | None: ...

    @overload
    async def get(
        self,
        key: BytesLike,
        default: T,
        *,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> bytes | T: ...

    async def get(
        self,
        key: BytesLike,
        default: T | None = None,
        *,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> bytes | T | None:
        """As :meth:`DB.get`, at the time of the snapshot."""
        read = partial(self._opened().get, as_bytes(key, "key"), fill_cache=fill_cache)
        value = await self._threads.run(read)
        return default if value is None else value

    def iterator(self, *, chunk: int = CHUNK, **arguments: Unpack[IteratorArguments]) -> Iterator:
        """As :meth:`DB.iterator`, at the time of the snapshot."""
        return Iterator(self._threads, self._opened().iterator, chunk, arguments)

    def __aiter__(self) -> Iterator:
        """:meth:`iterator` over everything."""
        return self.iterator()

    @property
    def closed(self) -> bool:
        """Whether the snapshot is not there: not entered yet, or closed."""
        return self._snapshot is None

    async def open(self) -> Self:
        """Take the snapshot, unless that was done; as ``async with`` and ``await`` do."""
        if self._closed:
            raise ClosedError("the snapshot is closed")
        if self._snapshot is None:
            await self._threads.run(self._open_in_thread)
        return self

    def _open_in_thread(self) -> None:
        self._snapshot = self._take()

    async def close(self) -> None:
        """Let go of the versions that the snapshot keeps.  Closing twice is harmless."""
        self._closed = True
        if self._snapshot is not None:
            self._snapshot.close()  # which waits for nothing
            self._snapshot = None

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __await__(self) -> Generator[Any, None, Self]:
        return self.open().__await__()

    def _opened(self) -> _snapshot.Snapshot:
        if self._snapshot is None:
            why = "closed" if self._closed else "not taken yet: use async with, or await"
            raise ClosedError(f"the snapshot is {why}")
        return self._snapshot


class WriteBatch:
    """:class:`lsmkv.WriteBatch` whose :meth:`write` is awaited; the rest only touches memory.

    Errors and costs are those of its model.

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

    def __init__(self, db: DB, *, transaction: bool = True, sync: bool = False) -> None:
        """Not called by users: ``db.write_batch()`` makes one."""
        self._db = db
        self._transaction = transaction
        self._sync = sync
        self._batch = _batch.WriteBatch()

    def put(self, key: BytesLike, value: BytesLike) -> None:
        """Set ``key`` to ``value``."""
        self._batch.put(key, value)

    def delete(self, key: BytesLike) -> None:
        """Remove ``key``; no error if it is not there."""
        self._batch.delete(key)

    def append(self, source: _batch.WriteBatch | WriteBatch) -> None:
        """Add all operations of another batch after those of this one."""
        self._batch.append(_plain(source))

    def clear(self) -> None:
        """Forget all operations."""
        self._batch.clear()

    def __len__(self) -> int:
        """Number of operations."""
        return len(self._batch)

    def approximate_size(self) -> int:
        """Bytes of the record that the batch makes in the log."""
        return self._batch.approximate_size()

    async def write(self) -> None:
        """Apply to the store that made the batch, which keeps its content and may be reused."""
        await self._db.write(self, sync=self._sync)

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


class Transaction:
    """:class:`lsmkv.Transaction`; ``get`` and ``commit`` are awaited, the rest touches memory.

    It begins when it is entered.  A block that raises, or is cancelled, writes nothing.  Errors
    and costs are those of its model.

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
    ...             late.rollback()  # to commit would raise ConflictError
    ...         return await db.get(b"k")
    >>> asyncio.run(main())
    b'early'
    """

    def __init__(self, threads: _Threads, begin: Callable[[], _transaction.Transaction]) -> None:
        """Not called by users: ``db.transaction()`` makes one."""
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
        """The value as the transaction sees it: its own writes, else the store as it began."""
        read = partial(self._opened().get, as_bytes(key, "key"))
        async with self._lock:
            value = await self._threads.run(read)
        return default if value is None else value

    def put(self, key: BytesLike, value: BytesLike) -> None:
        """Set ``key`` when the transaction commits."""
        self._opened().put(key, value)

    def delete(self, key: BytesLike) -> None:
        """Remove ``key`` when the transaction commits."""
        self._opened().delete(key)

    async def commit(self) -> None:
        """Write everything, at once, or raise :class:`~lsmkv.ConflictError`.

        The transaction is over either way.  Cancelled, it was committed whole or not at all.
        """
        transaction = self._opened()
        async with self._lock:
            try:
                await self._threads.run(transaction.commit)
            finally:
                self.rollback()

    def rollback(self) -> None:
        """Forget everything.  Harmless on a transaction that is over."""
        self._over = True
        if self._transaction is not None:
            self._transaction.rollback()

    async def __aenter__(self) -> Self:
        if self._transaction is not None:
            raise ClosedError("a transaction begins once: make another one")
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


def _plain(batch: _batch.WriteBatch | WriteBatch) -> _batch.WriteBatch:
    return batch._batch if isinstance(batch, WriteBatch) else batch


def _size_of(entry: Any) -> int:
    """Bytes of what an iterator returns: a pair, the half asked for, or None."""
    if isinstance(entry, tuple):
        return len(entry[0]) + len(entry[1])
    return 0 if entry is None else len(entry)
