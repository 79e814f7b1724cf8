"""DB: the store's handle, with the methods that read and write.

A handle is made of four classes.  Each method checks its arguments and that the store is open, then
calls the module that does the work.  Any thread may call any method.

===============  ==============================================================================
class            its methods
===============  ==============================================================================
``DB``           read: get, multi_get, may_contain, explain, raw_iterator, prefixed_db, snapshot
                 write: put, delete, write, write_batch, transaction, update, run, sync, flush
                 follow: sequence, wait_for_change, batches
``Scannable``    iterator (``handles/scannable.py``; also of snapshots and transactions)
``Maintenance``  compact_range, delete_range, rewrite_tables, checkpoint, ingest, refresh,
                 verify, check, acknowledge_recovery, stats, metrics_text, get_property,
                 approximate_size, approximate_sizes, tables, written_keys
                 (``admin/maintenance.py``)
``Handle``       name, recovery, closed, close (``handle.py``)
===============  ==============================================================================
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from mypy_extensions import mypyc_attr

from lsmkv.engine.db.admin.maintenance import Maintenance
from lsmkv.engine.db.handles.prefixed import PrefixedDB
from lsmkv.engine.db.handles.scannable import Scannable
from lsmkv.engine.db.handles.snapshot import Snapshot
from lsmkv.engine.db.handles.transaction import (
    ConflictCheck,
    Isolation,
    Transaction,
    refuse_unknown,
)
from lsmkv.engine.db.handles.updating import Update
from lsmkv.engine.db.read.iterator import Iterator, IteratorArguments
from lsmkv.engine.db.read.raw_iterator import RawIterator
from lsmkv.engine.db.read.scan import Bounds
from lsmkv.engine.db.tree.log_holds import LogHold
from lsmkv.engine.db.tree.sharing import Sharing
from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.errors import StaleViewError
from lsmkv.engine.format.batch import WriteBatch, as_deletion, as_put
from lsmkv.engine.format.keys import MAX_SEQUENCE
from lsmkv.engine.util.arguments import BytesLike, as_bytes
from lsmkv.engine.util.introspection import described

if TYPE_CHECKING:
    from lsmkv.engine.db.handles.explanation import Explanation
    from lsmkv.engine.db.read.batches import Batches

T = TypeVar("T")

LONGEST_WAIT = 3600.0
"""Seconds of one wait for a change; a longer one is made of several."""
REFRESH_EVERY = 0.05
CLOSED_EVERY = 0.1
"""Seconds after which a waiting call checks whether the store was closed."""


@described
@mypyc_attr(native_class=False)  # so that users may derive from it and refer to it weakly
class DB(Maintenance, Scannable):
    """An ordered key-value store in a directory of files in LevelDB's format.

    ``help(lsmkv.Options)`` explains the keywords of opening, such as ``create_if_missing=True``;
    ``docs/reference/api.md`` lists all options, methods and errors on one page.

    Keys and values are ``bytes`` (other bytes-like objects are copied).  Any number of threads may
    share a handle.  Only one handle, in one process, may have a directory open for writing.  Use it
    in a ``with`` block, or close it.

    Every method raises :class:`ClosedError` once the store is closed (:class:`ForkedError` in a
    child process), and :class:`IOError` when the file system fails.  Writes raise
    :class:`ReadOnlyError` in a store that is open for reading only.

    On a full disk (``ENOSPC``, ``EDQUOT``) reads continue, and so do writes for which the log and
    the memtable have space.  Any other write raises :class:`IOError` and changes nothing.  It
    succeeds once there is space, because flushes and compactions then start again with new files.
    Four failures are final, and every later write raises them until the store is reopened: a failed
    sync of the log, a failure to truncate the log after a failed write, a failed write of the
    MANIFEST, and any other failure of a flush or compaction.

    >>> with DB(":memory:") as db:
    ...     db.put(b"k", b"v")
    ...     db.get(b"k")
    b'v'
    """

    # Reading

    @overload
    def get(
        self,
        key: BytesLike,
        default: None = None,
        *,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> bytes | None: ...

    @overload
    def get(
        self,
        key: BytesLike,
        default: T,
        *,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> bytes | T: ...

    def get(
        self,
        key: BytesLike,
        default: T | None = None,
        *,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> bytes | T | None:
        """The value of ``key``, or ``default``.

        ``fill_cache=False`` leaves the block cache as it is.  Checksums are always verified;
        ``verify_checksums`` exists only for compatibility with plyvel.  Cost: a hash of the key, a
        filter for each table whose range covers it, and usually at most one block.  Raises
        :class:`CorruptionError` if a block that it needs is damaged.

        >>> with DB(":memory:") as db:
        ...     db.put(b"k", b"v")
        ...     db.get(b"k"), db.get(b"no such key"), db.get(b"no such key", b"")
        (b'v', None, b'')
        """
        reader = self._reader
        if reader is None:
            reader = self._open_reader()
        name = key if type(key) is bytes else as_bytes(key, "key")
        while True:
            try:
                value = reader.get(name, MAX_SEQUENCE, fill_cache)
                return default if value is None else value
            except StaleViewError as error:
                reader = self._newer_reader(error)

    def multi_get(
        self, keys: Iterable[BytesLike], *, fill_cache: bool = True
    ) -> list[bytes | None]:
        """The values of many keys, as of one moment, in the order of the keys; None for a missing
        key.

        The lookups run in the order of the store, so that neighboring keys find their blocks in
        the block cache.  Costs as much as the Gets.

        >>> with DB(":memory:") as db:
        ...     db.put(b"a", b"1")
        ...     db.multi_get([b"b", b"a"])
        [None, b'1']
        """
        user_keys = [as_bytes(key, "key") for key in keys]
        reader = self._open_reader()
        while True:
            try:
                values = reader.multi_get(user_keys, fill_cache)
                return [values[key] for key in user_keys]
            except StaleViewError as error:
                reader = self._newer_reader(error)

    def __contains__(self, key: object) -> bool:
        """Return True if ``key`` exists.  Costs as much as a Get.

        >>> with DB(":memory:") as db:
        ...     db.put(b"k", b"")
        ...     b"k" in db, b"no such key" in db
        (True, False)
        """
        name = as_bytes(key, "key")
        reader = self._open_reader()
        while True:
            try:
                return reader.get(name, MAX_SEQUENCE, True) is not None
            except StaleViewError as error:
                reader = self._newer_reader(error)

    def may_contain(self, key: BytesLike) -> bool:
        """False only if the store does not hold ``key``; no data block is searched.

        Asks only memtables and filters.  True may be wrong: about 1 absent key in 100 passes a
        filter, a deletion in a table counts as a key, and without filters a table's range decides.
        Costs a hash of the key, and a filter for each table whose range covers it.

        >>> with DB(":memory:") as db:
        ...     for key in (b"ant", b"cow"):
        ...         db.put(key, b"")
        ...     db.flush()
        ...     db.may_contain(b"ant"), db.may_contain(b"bee"), db.stats().blocks_read
        (True, False, 0)
        """
        name = as_bytes(key, "key")
        reader = self._open_reader()
        while True:
            try:
                return reader.may_contain(name)
            except StaleViewError as error:
                reader = self._newer_reader(error)

    def explain(self, key: BytesLike) -> Explanation:
        """The steps of a Get of ``key``: see :class:`Explanation`.

        Changes neither counters nor caches.  Reads a block of every table whose range covers the
        key.

        >>> with DB(":memory:") as db:
        ...     db.put(b"k", b"value")
        ...     print(db.explain(b"k"))
        get 'k': found, 5 bytes in memtable, write 1
          memtable: answers
          write 1: puts and deletes are numbered from 1 on; the highest number of a key answers
          searched: 0 data blocks
          without filters: 0 data blocks
        """
        from lsmkv.engine.db.handles.explain import Explainer  # noqa: PLC0415 - dataclasses comes with it

        store = self._open_store()
        name = as_bytes(key, "key")
        while True:
            try:
                return Explainer(store).explain(name)
            except StaleViewError as error:
                self._move_on(error)
            except OSError as error:
                store.raise_failure(error)

    def raw_iterator(
        self,
        *,
        prefix: BytesLike | None = None,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> RawIterator:
        """A :class:`RawIterator` over the store as it is now, or over the keys with ``prefix``.

        It is not positioned on an entry at first.  ``verify_checksums`` and ``fill_cache`` are
        those of :meth:`get`; errors and cost are those of :meth:`iterator`.

        >>> with DB(":memory:") as db:
        ...     db.put(b"k", b"v")
        ...     raw = db.raw_iterator()
        ...     raw.seek_to_last()
        ...     raw.valid(), raw.item()
        (True, (b'k', b'v'))
        """
        reader = self._open_reader()
        while True:
            try:
                return reader.raw_iterator(self, prefix, fill_cache)
            except StaleViewError as error:
                reader = self._newer_reader(error)

    def prefixed_db(self, prefix: BytesLike) -> PrefixedDB[Self]:
        """A view of the keys that begin with ``prefix``, in which keys appear without the prefix.

        O(1): nothing is read.

        >>> with DB(":memory:") as db:
        ...     db.put(b"user:ann", b"1")
        ...     db.prefixed_db(b"user:").get(b"ann")
        b'1'
        """
        return PrefixedDB(db=self, prefix=prefix)

    def snapshot(self) -> Snapshot:
        """The store as it is now, for later reads.  O(1); close it when it is no longer needed.

        In a store that is open for reading only, all tables are opened and held open, unless there
        are very many: see :class:`~lsmkv.StaleViewError`.

        >>> with DB(":memory:") as db, db.snapshot() as before:
        ...     db.put(b"k", b"v")
        ...     before.get(b"k"), db.get(b"k")
        (None, b'v')
        """
        reader = self._open_reader()
        while True:
            try:
                alone, read = reader.snapshot_view()
                return Snapshot(alone, read, self)
            except StaleViewError as error:
                reader = self._newer_reader(error)

    # Writing

    def put(self, key: BytesLike, value: BytesLike, *, sync: bool = False) -> None:
        """Set ``key`` to ``value``.

        Once it returns, the write survives a killed process; with ``sync=True`` it also survives a
        power cut.  Cost: one write to the log; with ``sync`` also one wait for the disk, shared
        with the writers that wait at the same time.

        >>> with DB(":memory:") as db:
        ...     db.put(b"k", b"old")
        ...     db.put(b"k", b"new", sync=True)
        ...     db.get(b"k")
        b'new'
        """
        writer = self._writer
        if writer is None:
            writer = self._open_writer()
        writer.write([as_put(key, value)], sync)

    def delete(self, key: BytesLike, *, sync: bool = False) -> None:
        """Remove ``key``; no error if it does not exist.  Costs as much as a put.

        >>> with DB(":memory:") as db:
        ...     db.put(b"k", b"v")
        ...     db.delete(b"k")
        ...     b"k" in db
        False
        """
        writer = self._writer
        if writer is None:
            writer = self._open_writer()
        writer.write([as_deletion(key)], sync)

    def write(self, batch: WriteBatch, /, *, sync: bool = False) -> None:
        """Apply all operations of ``batch``, or none.  The batch keeps its content.

        Cost: one write to the log, whatever the number of operations.

        >>> batch = WriteBatch()
        >>> batch.put(b"new", b"v")
        >>> batch.delete(b"old")
        >>> with DB(":memory:") as db:
        ...     db.put(b"old", b"v")
        ...     db.write(batch)
        ...     list(db)
        [(b'new', b'v')]
        """
        if not isinstance(batch, WriteBatch):
            raise TypeError(f"write takes a WriteBatch, not {type(batch).__name__}")
        writer = self._open_writer()
        if len(batch) > 0:
            writer.write(list(batch.operations), sync)

    def write_batch(self, *, transaction: bool = True, sync: bool = False) -> WriteBatch:
        """A batch that writes to this store: ``write()``, or the end of a ``with`` block.

        With ``transaction`` (the default here, not in plyvel) a block that raises writes nothing.

        >>> with DB(":memory:") as db:
        ...     with db.write_batch() as batch:
        ...         batch.put(b"a", b"1")
        ...         batch.put(b"b", b"2")
        ...     db.stats().log_writes
        1
        """
        self._open_store()
        return WriteBatch(self, transaction=transaction, sync=sync)

    def transaction(
        self, *, isolation: Isolation = "serializable", sync: bool = False
    ) -> Transaction:
        """An optimistic transaction: see :class:`Transaction`.

        Its commit raises :class:`~lsmkv.ConflictError` if another writer wrote a key that it read
        or wrote, or into a range that it iterated over; with ``isolation="snapshot"``, only if
        another writer wrote a key that it wrote.  Raises ``ValueError`` for another isolation.

        >>> with DB(":memory:") as db:
        ...     with db.transaction() as transaction:
        ...         count = int(transaction.get(b"visits", b"0"))
        ...         transaction.put(b"visits", b"%d" % (count + 1))
        ...     db.get(b"visits")
        b'1'
        """
        serializable = isolation == "serializable"
        if not serializable:
            refuse_unknown(isolation)
        snapshot = DB.snapshot(self)  # a subclass may have snapshots of another kind
        return Transaction(
            snapshot,
            snapshot.sequence,
            self._commit_unless_changed,
            sync,
            self.options.comparator,
            serializable,
        )

    def update(
        self,
        key: BytesLike,
        function: Callable[[bytes | None], BytesLike | None],
        *,
        sync: bool = False,
    ) -> bytes | None:
        """Set ``key`` to the result of ``function`` on its value, without a write in between.

        ``function`` gets the value, or None if there is none.  It returns the new value, or None to
        delete the key, and this method returns the same.  ``function`` is called again whenever
        another writer was faster (see :meth:`run`), so it should have no side effects.  If it
        raises, or returns the very object that it got, nothing is written (without ``sync``).
        Cost: a Get and a put for each call of ``function``.

        >>> with DB(":memory:") as db:
        ...     for _ in range(3):
        ...         count = db.update(b"visits", lambda old: b"%d" % (int(old or 0) + 1))
        ...     count, db.update(b"visits", lambda old: None), b"visits" in db
        (b'3', None, False)
        """
        name = as_bytes(key, "key")
        self._open_writer()
        return self._turns.call(name, Update(self, name, function, sync).attempt)

    def run(
        self,
        function: Callable[[Transaction], T],
        *,
        isolation: Isolation = "serializable",
        sync: bool = False,
    ) -> T:
        """Call ``function`` with a new :class:`Transaction`, commit it, and return the result.

        After a :class:`~lsmkv.ConflictError` it starts over with a new transaction.  ``function``
        may thus be called more than once, so it should write only through its transaction.  If it
        raises anything else, the transaction is rolled back.

        No caller starves.  After 5 conflicts, with short pauses, a caller gets a turn among the
        callers of ``run`` and ``update``; a turn lasts at most three seconds.  With n threads,
        ``function`` is called at most n + 5 times, unless other writes cause conflicts or a call
        takes more than a second.  After 1,000 conflicts the last one is raised.  A call inside
        ``function`` takes no turn.  No lock is held while ``function`` runs.

        ``isolation`` is that of :meth:`transaction`.  Cost: one transaction for each call of
        ``function``.

        >>> def move(transaction):
        ...     transaction.put(b"new", transaction.get(b"old", b""))
        ...     transaction.delete(b"old")
        ...     return "moved"
        >>> with DB(":memory:") as db:
        ...     db.put(b"old", b"v")
        ...     db.run(move), list(db)
        ('moved', [(b'new', b'v')])
        """
        self._open_store()
        return self._turns.call(None, partial(self._run_once, function, isolation, sync))

    def sync(self) -> None:
        """Make every write that has returned durable.  Cost: one wait for the disk.

        >>> with DB(":memory:") as db:
        ...     for n in range(3):
        ...         db.put(b"k%d" % n, b"v")
        ...     db.sync()
        ...     db.stats().log_syncs
        1
        """
        self._open_writer().sync()

    def flush(self) -> None:
        """Write the memtable to a table, and wait for it.

        Raises :class:`IOError` on a full disk; nothing is lost, and it can be called again.
        Cost: sorts the memtable, unless a read has done so, writes its bytes, and waits for the
        disk.

        >>> with DB(":memory:") as db:
        ...     db.put(b"k", b"v")
        ...     db.flush()
        ...     sum(level.files for level in db.stats().levels)
        1
        """
        self._open_writer().flush_memtable()

    @property
    def sequence(self) -> int:
        """The sequence of the last write: every put and delete has a higher one than those before.

        >>> with DB(":memory:") as db:
        ...     db.put(b"k", b"v")
        ...     db.delete(b"k")
        ...     db.sequence
        2
        """
        return self._open_store().versions.last_sequence

    def wait_for_change(self, sequence: int, timeout: float | None = None) -> int:
        """Wait until something has been written after ``sequence``, and return the last sequence.

        If ``timeout`` seconds were not enough, that is still ``sequence``, or less.  Cost: nothing
        while it waits, in a store that is open for writing; one that is open for reading only is
        refreshed twenty times a second.

        >>> with DB(":memory:") as db:
        ...     before = db.sequence
        ...     db.put(b"k", b"v")
        ...     db.wait_for_change(before), db.wait_for_change(1, timeout=0.01)
        (1, 1)
        """
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            store = self._open_store()
            left = LONGEST_WAIT if until is None else until - time.monotonic()
            if store.versions.last_sequence > sequence or left <= 0:
                return store.versions.last_sequence
            self._wait_for_write(store, sequence, min(left, LONGEST_WAIT))

    def batches(self, since: int | None = None, *, timeout: float | None = 0.0) -> Batches:
        """The batches that were committed after the sequence ``since``, or from now on: see
        :class:`Batches`.

        They come in their order and whole, none is left out, and they go back as far as the logs
        on disk do: to the last flush, as a rule.  If ``since`` lies within a batch, that batch is
        the first.  The iterator ends when there is nothing more, or has been nothing for
        ``timeout`` seconds; None waits for ever.

        Raises :class:`~lsmkv.SequenceTooOldError` if no log has the write after ``since``, and
        ``ValueError`` if ``since`` is higher than the last sequence.  In a store that is open for
        reading only, whose writer keeps no log for it, each step refreshes the store, and may raise
        :class:`~lsmkv.SequenceTooOldError` after the writer has begun two logs.

        >>> with DB(":memory:") as db:
        ...     db.put(b"a", b"1")
        ...     db.put(b"b", b"2")
        ...     [(batch.sequence, batch.operations) for batch in db.batches(since=1)]
        [(2, [(b'b', b'2')])]
        """
        from lsmkv.engine.db.read.batches import Batches  # noqa: PLC0415 - few follow a store

        return Batches(self, since, timeout)

    def _follow_logs(self, hold: LogHold) -> tuple[Store, int]:
        """See :class:`~lsmkv.engine.db.read.batches.BatchSource`."""
        if self._writer is None:
            self.refresh()
        store = self._open_store()
        store.log_holds.add(hold)
        return store, store.versions.last_sequence

    def _wait_for_write(self, store: Store, sequence: int, seconds: float) -> None:
        """Wait for a write after ``sequence``, or for a part of that time."""
        if self._writer is None:
            time.sleep(min(seconds, REFRESH_EVERY))
            self.refresh()
            return
        store.lock.refuse_to_wait("wait_for_change()")
        with store.lock.nested, store.lock.guard:
            if store.sharing is None:
                store.sharing = Sharing()
            waits = store.versions.last_sequence <= sequence
            ticket = store.sharing.ticket() if waits else None
        if ticket is not None and not ticket.acquire_soon(min(seconds, CLOSED_EVERY)):
            store.sharing.forget(ticket)

    def _iterator(self, arguments: IteratorArguments) -> Iterator[Any]:
        reader = self._reader
        if reader is None:
            reader = self._open_reader()
        while True:
            try:
                return reader.iterator(self, arguments)
            except StaleViewError as error:
                reader = self._newer_reader(error)

    @staticmethod
    def _import_for_methods() -> None:
        import lsmkv.engine.db.handles.explain  # noqa: PLC0415
        import lsmkv.engine.db.read.batches  # noqa: F401, PLC0415

        Maintenance._import_for_methods()

    # Copying and pickling

    def __copy__(self) -> DB:
        """A second handle of a store that is open for reading only: it opens the store again."""
        if self._writer is not None:
            raise _one_of_a_kind("copied")
        reopen, arguments = self.__reduce__()
        return reopen(*arguments)

    def __deepcopy__(self, memo: dict[int, Any]) -> DB:
        """Like a copy: the objects that its options refer to are shared."""
        return self.__copy__()

    def __reduce__(self) -> tuple[Callable[..., DB], tuple[str, dict[str, Any]]]:
        """A store that is open for reading only is pickled as its path and options.

        Unpickling it, in a worker process for example, opens the store again.
        """
        if self._writer is not None:
            raise _one_of_a_kind("pickled")
        arguments = dict(self._arguments)
        for name in ("block_cache", "trace"):  # which belong to one process
            arguments.pop(name, None)
        return _reopen, (self.path, arguments)

    def _run_once(
        self, function: Callable[[Transaction], T], isolation: Isolation, sync: bool
    ) -> T:
        # Any: mypyc cannot enter this class by its type
        made: Any = self.transaction(isolation=isolation, sync=sync)
        with made as transaction:
            return function(transaction)

    def _commit_unless_changed(
        self,
        batch: WriteBatch,
        sequence: int,
        tables: frozenset[int],
        keys: set[bytes],
        ranges: list[Bounds],
        sync: bool,
    ) -> None:
        """Apply ``batch`` unless a key, or one in a range, was written after ``sequence``, when
        there were those tables."""
        check = ConflictCheck(self._open_store(), sequence, tables, keys, ranges)
        writer = self._open_writer()
        if ranges:
            check.look_ahead()
        writer.write(list(batch.operations), sync, check.raise_if_changed)


def _one_of_a_kind(done: str) -> TypeError:
    return TypeError(
        f"a store that is open for writing cannot be {done}: pass its path, or open it with"
        " read_only=True"
    )


def _reopen(path: str, arguments: dict[str, Any]) -> DB:
    return DB(path, **arguments)
