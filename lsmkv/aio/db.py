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
from lsmkv.aio.forwarding import forwarded
from lsmkv.aio.openable import Opened
from lsmkv.aio.prefixed import PrefixableDB, PrefixedDB
from lsmkv.aio.readable import Readable
from lsmkv.aio.snapshot import Snapshot
from lsmkv.aio.threads import CallThreads
from lsmkv.aio.transaction import Transaction
from lsmkv.aio.transaction_turns import call
from lsmkv.aio.updating import Change
from lsmkv.aio.watch import ChangeWatch
from lsmkv.engine.db import db as _db
from lsmkv.engine.db.handles.transaction import Isolation, refuse_unknown
from lsmkv.engine.db.handles.transaction_turns import Turns
from lsmkv.engine.db.opening.directory import LockWait
from lsmkv.engine.db.opening.dropped import RecoveryReport
from lsmkv.engine.errors import LockedError
from lsmkv.engine.format import batch as _batch
from lsmkv.engine.options import OptionArguments, Options, checked_lock_timeout
from lsmkv.engine.options.shown import KeywordSignature
from lsmkv.engine.util.arguments import BytesLike, as_bytes
from lsmkv.engine.util.call_site import call_site
from lsmkv.engine.util.copying import refuse_copy

T = TypeVar("T")


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


class DB(Opened[_db.DB], Readable, PrefixableDB):
    """:class:`lsmkv.DB` with ``async`` methods.

    ``async with`` or ``await`` opens it.  Any number of tasks may use it, in the event loop that
    opened it.  The caller closes it; ``async with`` does so.  Before it is open and after it is
    closed, methods raise :class:`~lsmkv.ClosedError`.  Costs are those of :class:`lsmkv.DB`, and of
    a trip to a thread.

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
    ...             await db.written_keys(await db.tables()),
    ...         )
    >>> asyncio.run(main())
    ((False, 0, 1), '1', 9, [0, 0], ([], 0), True, [b'ant', b'cow'])
    """

    _ONLY_ONCE = "a DB can be opened only once: create another one"
    _NOT_OPEN = "the database is not open: use async with, or await"

    _watch: ChangeWatch | None = None
    __signature__: Any = KeywordSignature(OptionArguments)

    def __init__(self, path: str | os.PathLike[str], **options: Unpack[OptionArguments]) -> None:
        """Does not open anything yet.  The keywords are those of :class:`lsmkv.DB`."""
        self.path: str = os.fsdecode(path)
        """The directory, as the caller gave it."""
        self._options = options
        self._turns = Turns()
        self._site = call_site()

    async def _open(self, threads: CallThreads) -> None:
        """Wait for the store's lock here, so that no thread waits, and a cancellation ends it."""
        wait = LockWait(checked_lock_timeout(self._options.get("lock_timeout", 0.0)))
        while True:
            try:
                await super()._open(threads)
                turns = self._opened()[1]._turns
                self._turns = Turns(turns.store, turns.shared)
                return
            except LockedError:
                pause = wait.pause()
                if pause == 0:
                    raise
            await asyncio.sleep(pause)

    def _made(self) -> _db.DB:
        options = self._options.copy()
        options["lock_timeout"] = 0.0
        return _db.DB(self.path, **options)

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
        """Report of what the opening left out of a damaged log: :attr:`lsmkv.DB.recovery`.

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

    @forwarded(_db.DB.may_contain, "key")
    def may_contain(self) -> None:
        """False only if the store does not have ``key``: :meth:`lsmkv.DB.may_contain`."""

    @forwarded(_db.DB.explain, "key")
    def explain(self) -> None:
        """The steps of a Get of ``key``: :meth:`lsmkv.DB.explain`."""

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

    @forwarded(_db.DB.put, "key", "value")
    def put(self) -> None:
        """Set ``key`` to ``value``: :meth:`lsmkv.DB.put`."""

    @forwarded(_db.DB.delete, "key")
    def delete(self) -> None:
        """Remove ``key``; no error if it is absent: :meth:`lsmkv.DB.delete`."""

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

    async def sequence(self) -> int:
        """The sequence of the last write: :attr:`lsmkv.DB.sequence`, which may ask the store's
        owner.

        >>> import asyncio
        >>> async def main():
        ...     async with open_db(":memory:") as db:
        ...         before = await db.sequence()
        ...         await db.put(b"k", b"v")
        ...         return before, await db.wait_for_change(before)
        >>> asyncio.run(main())
        (0, 1)
        """
        threads, db = self._opened()
        return await threads.run(lambda: db.sequence)

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

    async def _update(self, key: bytes, function: Change, sync: bool) -> bytes | None:
        threads, _ = self._opened()
        attempt = partial(self._update_once, key, function, sync)
        return await call(self._turns, key, attempt, threads.run)

    async def _run(
        self,
        function: Callable[[Transaction], T | Awaitable[T]],
        isolation: Isolation,
        sync: bool,
    ) -> T:
        threads, _ = self._opened()
        attempt = partial(self._run_once, function, isolation, sync)
        return await call(self._turns, None, attempt, threads.run)

    async def _update_once(self, key: bytes, function: Change, sync: bool) -> bytes | None:
        async with self.transaction(sync=sync) as transaction:
            old = await transaction.get(key)
            new = await _outcome(function(old))
            if new is old and not sync:
                return old
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

    @forwarded(_db.DB.sync)
    def sync(self) -> None:
        """Make every write that has returned durable: :meth:`lsmkv.DB.sync`."""

    @forwarded(_db.DB.flush)
    def flush(self) -> None:
        """Flush the memtable, and wait until it is flushed: :meth:`lsmkv.DB.flush`."""

    # The files

    @forwarded(_db.DB.compact_range, long=True)
    def compact_range(self) -> None:
        """Compact the keys from ``start`` to ``stop``: :meth:`lsmkv.DB.compact_range`.

        If it is cancelled, it continues in its thread until it is done or the store is closed.
        Long calls run one at a time.  ``progress`` is called in that thread.
        """

    @forwarded(_db.DB.delete_range, long=True)
    def delete_range(self) -> None:
        """Delete the keys from ``start`` up to ``stop``: :meth:`lsmkv.DB.delete_range`.

        If it is cancelled, it continues in its thread until it is done or the store is closed.

        >>> import asyncio
        >>> async def main():
        ...     async with open_db(":memory:") as db:
        ...         await db.put(b"k", b"v")
        ...         await db.delete_range(b"a", b"z")
        ...         return await db.get(b"k")
        >>> asyncio.run(main()) is None
        True
        """

    @forwarded(_db.DB.rewrite_tables, long=True)
    def rewrite_tables(self) -> None:
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

    @forwarded(_db.DB.verify, long=True)
    def verify(self) -> None:
        """Read every block of every table, and return the damage: :meth:`lsmkv.DB.verify`.

        If it is cancelled, it continues in its thread, and ``close`` waits for it.  ``progress`` is
        called in that thread.
        """

    @forwarded(_db.DB.acknowledge_recovery)
    def acknowledge_recovery(self) -> None:
        """Record that the user knows of the logs in ``lost/``:
        :meth:`lsmkv.DB.acknowledge_recovery`.

        >>> import asyncio
        >>> async def main():
        ...     async with open_db(":memory:") as db:
        ...         return bool(db.recovery), await db.acknowledge_recovery()
        >>> asyncio.run(main())
        (False, [])
        """

    @forwarded(_db.DB.check, long=True)
    def check(self) -> None:
        """Read every table and raise at the first damage: :meth:`lsmkv.DB.check`.

        If it is cancelled, it continues in its thread, and ``close`` waits for it.
        """

    @forwarded(_db.DB.checkpoint)
    def checkpoint(self) -> None:
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

    @forwarded(_db.DB.ingest, long=True)
    def ingest(self) -> None:
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

    @forwarded(_db.DB.refresh)
    def refresh(self) -> None:
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

    @overload
    async def get_property(self, name: str) -> str | None: ...

    @overload
    async def get_property(self, name: bytes) -> bytes | None: ...

    async def get_property(self, name: str | bytes) -> str | bytes | None:
        """A property by LevelDB's name, or None: :meth:`lsmkv.DB.get_property`."""
        threads, db = self._opened()
        return await threads.run(lambda: db.get_property(name))

    @forwarded(_db.DB.approximate_size)
    def approximate_size(self) -> None:
        """About how many bytes a range uses: :meth:`lsmkv.DB.approximate_size`."""

    @forwarded(_db.DB.approximate_sizes)
    def approximate_sizes(self) -> None:
        """About how many bytes each range uses: :meth:`lsmkv.DB.approximate_sizes`."""

    @forwarded(_db.DB.tables)
    def tables(self) -> None:
        """The tables of the store: :meth:`lsmkv.DB.tables`."""

    @forwarded(_db.DB.written_keys)
    def written_keys(self) -> None:
        """The keys that some of its tables have: :meth:`lsmkv.DB.written_keys`."""

    @forwarded(_db.DB.stats)
    def stats(self) -> None:
        """Counters since the store was opened: :meth:`lsmkv.DB.stats`."""

    @forwarded(_db.DB.metrics_text)
    def metrics_text(self) -> None:
        """The counters for Prometheus: :meth:`lsmkv.DB.metrics_text`."""


async def _outcome(result: T | Awaitable[T]) -> T:
    """The result of a function; that of an ``async`` function is awaited."""
    return cast(T, await result) if isawaitable(result) else result
