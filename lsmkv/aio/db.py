"""The store of :mod:`lsmkv.aio`, and :func:`open_db`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from inspect import isawaitable
from typing import Any, Never, Self, TypeVar, Unpack, cast, overload

from lsmkv.aio.batch import WriteBatch, plain_batch
from lsmkv.aio.batches import Batches
from lsmkv.aio.prefixed import PrefixedDB
from lsmkv.aio.readable import Openable
from lsmkv.aio.snapshot import Snapshot
from lsmkv.aio.threads import CallThreads
from lsmkv.aio.transaction import Transaction
from lsmkv.aio.turns import call
from lsmkv.aio.watch import ChangeWatch
from lsmkv.db import db as _db
from lsmkv.db.handles.explanation import Explanation
from lsmkv.db.handles.transaction import Isolation, refuse_unknown
from lsmkv.db.handles.turns import Turns
from lsmkv.db.opening.directory import LockWait
from lsmkv.db.opening.dropped import RecoveryReport
from lsmkv.errors import ClosedError, CorruptionError, LockedError
from lsmkv.format import batch as _batch
from lsmkv.options import OptionArguments, Options, checked_lock_timeout
from lsmkv.options.shown import KeywordSignature
from lsmkv.stats import Stats
from lsmkv.util.arguments import BytesLike, as_bytes
from lsmkv.util.copying import refuse_copy

T = TypeVar("T")

Progress = Callable[[int, int, str], None]
"""Called with the work done, the total, and the phase that follows."""


def open_db(path: str | os.PathLike[str], **options: Unpack[OptionArguments]) -> DB:
    """Open a store, with ``async with open_db(path) as db`` or ``db = await open_db(path)``.

    The keywords, errors and costs are those of :class:`lsmkv.DB`.

    >>> import asyncio
    >>> async def main():
    ...     async with open_db(":memory:") as db:
    ...         return await db.get(b"k", b"nothing")
    >>> asyncio.run(main())
    b'nothing'
    """
    return DB(path, **options)


class DB(Openable):
    """:class:`lsmkv.DB` with ``async`` methods.

    ``async with`` or ``await`` opens it.  Any number of tasks may use it, in the event loop that
    opened it.  The caller closes it; ``async with`` does so.  Before it is open and after it is
    closed, methods raise :class:`~lsmkv.ClosedError`.

    >>> import asyncio
    >>> async def main():
    ...     db = await DB(":memory:")
    ...     await db.put(b"k", b"v")
    ...     value = await db.get(b"k")
    ...     await db.close()
    ...     return value, db.closed, db.name
    >>> asyncio.run(main())
    (b'v', True, ':memory:')

    Single writes, and several together:

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

    Work on the files:

    >>> async def main():
    ...     async with open_db(":memory:", compression=None) as db:
    ...         await db.put(b"ant", bytes(9_000))
    ...         await db.put(b"cow", bytes(9_000))
    ...         await db.flush()
    ...         await db.compact_range()
    ...         await db.check()
    ...         explained, stats = await db.explain(b"bee"), await db.stats()
    ...         return (
    ...             (await db.may_contain(b"bee"), explained.blocks_searched, stats.flushes),
    ...             await db.get_property("leveldb.num-files-at-level2"),
    ...             await db.approximate_size(b"bee", b"d") // 1000,
    ...             await db.approximate_sizes((b"x", b"y"), (b"y", b"z")),
    ...             (await db.verify(), db.options.compression),
    ...             'lsmkv_flushes_total{store="zoo"} 1' in await db.metrics_text(store="zoo"),
    ...         )
    >>> asyncio.run(main())
    ((False, 0, 1), '1', 9, [0, 0], ([], 0), True)
    """

    _sync_db: _db.DB | None = None
    _threads: CallThreads | None = None
    _watch: ChangeWatch | None = None
    __signature__: Any = KeywordSignature(OptionArguments)

    def __init__(self, path: str | os.PathLike[str], **options: Unpack[OptionArguments]) -> None:
        """Does not open anything yet.  The keywords are those of :class:`lsmkv.DB`."""
        self.path: str = os.fsdecode(path)
        """The directory, as the caller gave it."""
        self._options = options
        self._turns = Turns()

    async def open(self) -> Self:
        """Open the store, as ``async with`` and ``await`` do.  A second call raises ``ValueError``.

        If it is cancelled, it closes what it opened.  Raises and costs what :class:`lsmkv.DB` does.

        >>> import asyncio
        >>> async def main():
        ...     db = DB("no such directory")
        ...     await db.open()
        >>> asyncio.run(main())
        Traceback (most recent call last):
        lsmkv.errors.NotFoundError: [Errno 2] no database here, ...: 'no such directory'
        """
        if self._threads is not None:
            raise ValueError("a DB can be opened only once: create another one")
        try:
            threads = self._threads = CallThreads()
            await self._open_when_unlocked(threads)
        except BaseException:
            await self.close()
            raise
        return self

    async def _open_when_unlocked(self, threads: CallThreads) -> None:
        """Wait for the store's lock here, so that no thread waits, and a cancellation ends it."""
        wait = LockWait(checked_lock_timeout(self._options.get("lock_timeout", 0.0)))
        while True:
            try:
                return await threads.run(self._open_in_thread)
            except LockedError:
                pause = wait.pause()
                if pause == 0:
                    raise
            await asyncio.sleep(pause)

    def _open_in_thread(self) -> None:
        options = self._options.copy()
        options["lock_timeout"] = 0.0
        self._sync_db = _db.DB(self.path, **options)

    def _close_in_thread(self) -> None:
        if self._sync_db is not None:
            self._sync_db.close()

    def __repr__(self) -> str:
        read_only = " (read-only)" if self._options.get("read_only") else ""
        return f"<lsmkv.aio.DB {self.path!r}{' (closed)' if self.closed else read_only}>"

    def __reduce__(self) -> Never:
        refuse_copy("an lsmkv.aio.DB", "it belongs to one event loop: pass its path")

    @property
    def options(self) -> Options:
        """The settings in force."""
        return self._opened()[1].options

    @property
    def recovery(self) -> RecoveryReport:
        """What the opening left out of a damaged log: :attr:`lsmkv.DB.recovery`.

        >>> import asyncio
        >>> async def main():
        ...     async with open_db(":memory:") as db:
        ...         return bool(db.recovery)
        >>> asyncio.run(main())
        False
        """
        return self._opened()[1].recovery

    @property
    def name(self) -> str:
        """The path, under plyvel's name for it."""
        return self.path

    @property
    def closed(self) -> bool:
        """Whether the store is closed, or not open yet."""
        threads = self._threads
        return self._sync_db is None or self._sync_db.closed or threads is None or threads.ended

    async def close(self) -> None:
        """Close the store and end its threads.  A second close has no effect.

        New calls are refused at once.  Calls that were made before end first, save
        ``compact_range``, which ends with :class:`~lsmkv.ClosedError`; then the log is synced.  If
        it is cancelled, the store is closed before the cancellation goes on.
        """
        if self._threads is not None:
            await self._threads.end(self._close_in_thread)

    def _is_open(self) -> bool:
        return not self.closed

    def _opened(self) -> tuple[CallThreads, _db.DB]:
        if self._threads is None or self._sync_db is None:
            raise ClosedError("the database is not open: use async with, or await")
        return self._threads, self._sync_db

    # Reading

    async def multi_get(
        self, keys: Iterable[BytesLike], *, fill_cache: bool = True
    ) -> list[bytes | None]:
        """The values of many keys at one moment, in one trip: :meth:`lsmkv.DB.multi_get`.

        >>> import asyncio
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
        """Whether the store has ``key``: ``key in db``, which cannot be awaited."""
        threads, db = self._opened()
        return await threads.run(db.__contains__, as_bytes(key, "key"))

    async def may_contain(self, key: BytesLike) -> bool:
        """False only if the store does not have ``key``: :meth:`lsmkv.DB.may_contain`."""
        threads, db = self._opened()
        return await threads.run(db.may_contain, as_bytes(key, "key"))

    async def explain(self, key: BytesLike) -> Explanation:
        """The steps of a Get of ``key``: :meth:`lsmkv.DB.explain`."""
        threads, db = self._opened()
        return await threads.run(db.explain, as_bytes(key, "key"))

    def snapshot(self) -> Snapshot:
        """A snapshot, taken when it is entered: ``async with db.snapshot() as snapshot``.

        ``snapshot = await db.snapshot()`` works, too, followed by ``await snapshot.close()``.
        """
        threads, db = self._opened()
        return Snapshot(threads, db.snapshot)

    def prefixed_db(self, prefix: BytesLike) -> PrefixedDB[Self]:
        """The part of the store whose keys begin with ``prefix``: :meth:`lsmkv.DB.prefixed_db`.

        >>> import asyncio
        >>> async def main():
        ...     async with open_db(":memory:") as db:
        ...         users = db.prefixed_db(b"user:")
        ...         await users.put(b"ann", b"1")
        ...         return await users.get(b"ann"), await db.get(b"user:ann")
        >>> asyncio.run(main())
        (b'1', b'1')
        """
        return PrefixedDB(self, as_bytes(prefix, "prefix"))

    # Writing

    async def put(self, key: BytesLike, value: BytesLike, *, sync: bool = False) -> None:
        """Set ``key`` to ``value``: :meth:`lsmkv.DB.put`."""
        threads, db = self._opened()
        await threads.run(db.put, as_bytes(key, "key"), as_bytes(value, "value"), sync=sync)

    async def delete(self, key: BytesLike, *, sync: bool = False) -> None:
        """Remove ``key``; no error if it is absent: :meth:`lsmkv.DB.delete`."""
        threads, db = self._opened()
        await threads.run(db.delete, as_bytes(key, "key"), sync=sync)

    async def write(self, batch: _batch.WriteBatch | WriteBatch, /, *, sync: bool = False) -> None:
        """Apply all operations of a batch, or none: :meth:`lsmkv.DB.write`.

        The batch is an :class:`lsmkv.WriteBatch` or one of this module.  Its content at the call is
        written, even if the batch changes during it.
        """
        threads, db = self._opened()
        copy = _batch.WriteBatch()
        copy.append(plain_batch(batch))
        await threads.run(db.write, copy, sync=sync)

    def write_batch(self, *, transaction: bool = True, sync: bool = False) -> WriteBatch:
        """A batch that writes to this store: ``async with db.write_batch() as batch``.

        With ``transaction`` (the default), a block that raises or is cancelled writes nothing.
        """
        self._opened()
        return WriteBatch(partial(self.write, sync=sync), transaction=transaction)

    def transaction(
        self, *, isolation: Isolation = "serializable", sync: bool = False
    ) -> Transaction:
        """An optimistic transaction: ``async with db.transaction() as transaction``.

        ``isolation`` is that of :meth:`lsmkv.DB.transaction`.
        """
        threads, db = self._opened()
        refuse_unknown(isolation)
        return Transaction(threads, partial(db.transaction, isolation=isolation, sync=sync))

    async def wait_for_change(self, sequence: int, timeout: float | None = None) -> int:
        """Wait until something was written after ``sequence``: :meth:`lsmkv.DB.wait_for_change`.

        Waiting takes no thread of those for calls: one more thread waits for all tasks.

        >>> import asyncio
        >>> async def main():
        ...     async with open_db(":memory:") as db:
        ...         await db.put(b"k", b"v")
        ...         return await db.wait_for_change(0)
        >>> asyncio.run(main())
        1
        """
        threads, db = self._opened()
        last = await threads.run(db.wait_for_change, sequence, 0.0)
        if last > sequence or (timeout is not None and timeout <= 0):
            return last
        return await self._changes().changed(sequence, last, timeout)

    def batches(self, since: int | None = None) -> Batches:
        """The batches that were committed after a sequence, and those to come:
        :meth:`lsmkv.DB.batches`.

        ``async for`` waits for the next one, and never ends: see :class:`Batches`.  It begins with
        ``async with``, or with the first step: without ``since``, what is written from then on.

        >>> import asyncio
        >>> async def main():
        ...     async with open_db(":memory:") as db:
        ...         await db.put(b"k", b"v")
        ...         return await anext(db.batches(0))
        >>> asyncio.run(main())
        CommittedBatch(sequence=1, operations=[(b'k', b'v')])
        """
        threads, db = self._opened()
        return Batches(threads, self._changes(), db.batches, since)

    def _changes(self) -> ChangeWatch:
        threads, db = self._opened()
        if self._watch is None:
            self._watch = ChangeWatch(threads, db.wait_for_change)
        return self._watch

    async def update(
        self,
        key: BytesLike,
        function: Callable[[bytes | None], BytesLike | Awaitable[BytesLike | None] | None],
        *,
        sync: bool = False,
    ) -> bytes | None:
        """Replace the value of ``key`` by a function's result: :meth:`lsmkv.DB.update`.

        The function, plain or ``async``, runs in the event loop, and may be called more than once.

        >>> import asyncio
        >>> async def main():
        ...     async with open_db(":memory:") as db:
        ...         def more(old):
        ...             return b"%d" % (int(old or 0) + 1)
        ...         await asyncio.gather(*(db.update(b"n", more) for _ in range(20)))
        ...         return await db.get(b"n")
        >>> asyncio.run(main())
        b'20'
        """
        self._opened()
        name = as_bytes(key, "key")
        return await call(self._turns, name, partial(self._update_once, name, function, sync))

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
        self._opened()
        return await call(self._turns, None, partial(self._run_once, function, isolation, sync))

    async def _update_once(
        self,
        key: bytes,
        function: Callable[[bytes | None], BytesLike | Awaitable[BytesLike | None] | None],
        sync: bool,
    ) -> bytes | None:
        async with self.transaction(sync=sync) as transaction:
            old = await transaction.get(key)
            new = await _outcome(function(old))
            value = None if new is None else as_bytes(new, "value")
            if value is not None:
                transaction.put(key, value)
            elif old is not None:
                transaction.delete(key)
            return value

    async def _run_once(
        self,
        function: Callable[[Transaction], T | Awaitable[T]],
        isolation: Isolation,
        sync: bool,
    ) -> T:
        async with self.transaction(isolation=isolation, sync=sync) as transaction:
            return await _outcome(function(transaction))

    async def sync(self) -> None:
        """Make every write that has returned durable: :meth:`lsmkv.DB.sync`."""
        threads, db = self._opened()
        await threads.run(db.sync)

    async def flush(self) -> None:
        """Flush the memtable, and wait until it is flushed: :meth:`lsmkv.DB.flush`."""
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

        If it is cancelled, it continues in its thread until it is done or the store is closed.
        Long calls run one at a time.  ``progress`` is called in that thread.
        """
        threads, db = self._opened()
        await threads.run_long(db.compact_range, start, stop, progress=progress)

    async def rewrite_tables(self, *, progress: Progress | None = None) -> None:
        """Rewrite every table with the present options: :meth:`lsmkv.DB.rewrite_tables`.

        If it is cancelled, it continues in its thread until it is done or the store is closed.
        ``progress`` is called in that thread.

        >>> import asyncio
        >>> from lsmkv import Bloom64Policy, aio
        >>> async def main():
        ...     async with aio.DB(":memory:", filter_policy=Bloom64Policy()) as db:
        ...         await db.put(b"k", b"v")
        ...         await db.rewrite_tables()
        ...         return (await db.stats()).flushes
        >>> asyncio.run(main())
        1
        """
        threads, db = self._opened()
        await threads.run_long(db.rewrite_tables, progress=progress)

    async def verify(self, *, progress: Progress | None = None) -> list[CorruptionError]:
        """Read every block of every table, and return the damage: :meth:`lsmkv.DB.verify`.

        If it is cancelled, it continues in its thread, and ``close`` waits for it.  ``progress`` is
        called in that thread.
        """
        threads, db = self._opened()
        return await threads.run_long(db.verify, progress=progress)

    async def acknowledge_recovery(self) -> list[str]:
        """Record that the user knows of the logs in ``lost/``:
        :meth:`lsmkv.DB.acknowledge_recovery`.

        >>> import asyncio
        >>> async def main():
        ...     async with open_db(":memory:") as db:
        ...         return bool(db.recovery), await db.acknowledge_recovery()
        >>> asyncio.run(main())
        (False, [])
        """
        threads, db = self._opened()
        return await threads.run(db.acknowledge_recovery)

    async def check(self) -> None:
        """Read every table and raise at the first damage: :meth:`lsmkv.DB.check`.

        If it is cancelled, it continues in its thread, and ``close`` waits for it.
        """
        threads, db = self._opened()
        await threads.run_long(db.check)

    async def checkpoint(
        self, path: str | os.PathLike[str], *, progress: Progress | None = None
    ) -> None:
        """Make a second store with the present content: :meth:`lsmkv.DB.checkpoint`.

        ``progress`` is called in a thread.

        >>> import asyncio
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
        """Add tables that ``TableWriter`` wrote: :meth:`lsmkv.DB.ingest`.

        If it is cancelled, it continues in its thread until it is done or the store is closed.
        Either all tables are added or none.  ``progress`` is called in that thread.

        >>> import asyncio
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
        """Bring a read-only store up to date with its files: :meth:`lsmkv.DB.refresh`.

        >>> import asyncio
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
        """A property by LevelDB's name, or None: :meth:`lsmkv.DB.get_property`."""
        threads, db = self._opened()
        return await threads.run(lambda: db.get_property(name))

    async def approximate_size(self, start: BytesLike, stop: BytesLike) -> int:
        """About how many bytes a range uses: :meth:`lsmkv.DB.approximate_size`."""
        threads, db = self._opened()
        return await threads.run(db.approximate_size, start, stop)

    async def approximate_sizes(self, *ranges: tuple[BytesLike, BytesLike]) -> list[int]:
        """About how many bytes each range uses: :meth:`lsmkv.DB.approximate_sizes`."""
        threads, db = self._opened()
        return await threads.run(db.approximate_sizes, *ranges)

    async def stats(self) -> Stats:
        """Counters since the store was opened: :meth:`lsmkv.DB.stats`."""
        threads, db = self._opened()
        return await threads.run(db.stats)

    async def metrics_text(self, *, store: str | None = None) -> str:
        """The counters for Prometheus: :meth:`lsmkv.DB.metrics_text`."""
        threads, db = self._opened()
        return await threads.run(lambda: db.metrics_text(store=store))


async def _outcome(result: T | Awaitable[T]) -> T:
    """The result of a function; that of an ``async`` function is awaited."""
    return cast(T, await result) if isawaitable(result) else result
