"""The write path: a batch gets its sequences, goes into the log, and then into the memtable.

``DB`` calls :class:`Writer` from any thread.  A write has five parts:

===========  =============================================================  =======================
part         what happens                                                   where
===========  =============================================================  =======================
admission    the comparator takes the keys, and the store is open           ``Writer.write``
turn         one writer leads and commits the batches of those that queue   ``write_queue.py``
room         the memtable may grow, or another one begins                   ``memtable_room.py``
commit       log, memtable, sequences; an interrupt undoes or completes it  ``commit.py``
delay        a write that background work cannot keep up with is delayed    ``write_delays.py``
===========  =============================================================  =======================

The leader holds the writers' lock.  It owns the log, the sequences and the content of the memtable;
the store's lock is taken inside it, and only for the moments in which readers are to see something
new.  A nested call, as by a signal handler, leaves its batch in the queue (``store_lock.py``).
The log files are for ``log_rotation.py``.  (Source: LevelDB, ``DBImpl::Write``.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from lsmkv.engine.counters import BLOCK_READS
from lsmkv.engine.db.compact.background import Background
from lsmkv.engine.db.compact.background_jobs import Publication
from lsmkv.engine.db.tree.store import RangeDrop, Store
from lsmkv.engine.db.write.commit import Commit
from lsmkv.engine.db.write.log_rotation import LogRotation
from lsmkv.engine.db.write.memtable_room import MemtableRoom, WorkFirst
from lsmkv.engine.db.write.unchanged import UnchangedKeys
from lsmkv.engine.db.write.wal import WriteAheadLog
from lsmkv.engine.db.write.write_delays import WriteDelays
from lsmkv.engine.db.write.write_path import WritePath
from lsmkv.engine.db.write.write_queue import PendingWrite, WriteQueue
from lsmkv.engine.errors import ClosedError, ConflictError
from lsmkv.engine.format.batch import Operation
from lsmkv.engine.options import L0_STOP_WRITES_TRIGGER
from lsmkv.engine.util.comparator import equal_means_identical
from lsmkv.engine.util.signals import deferred
from lsmkv.engine.util.threads import get_ident

T = TypeVar("T")

_LONGEST_COMMIT_DELAY: Final = 0.001  # seconds that a sync may be put off for others to share it


class Writer(WritePath):
    """Serializes all writes of a store.  Any thread may call any method."""

    def __init__(self, store: Store, background: Background, wal: WriteAheadLog) -> None:
        self._store = store
        self._background = background
        self._lock = store.lock.writers
        """The writers' lock."""
        store.lock.finish = self.finish_nested
        self._queue = WriteQueue(self._lock)
        self._logs = LogRotation(store, background, wal)
        self._commit = Commit(store, background, self._logs)
        self._room = MemtableRoom(store, background, self._logs)
        self._delays = WriteDelays(store)
        self.ingests: list[tuple[int, Any]] = []
        """Thread of each ingest under way, and a lock that is held until its end."""
        self._closed = False
        self.successor: Callable[[], WritePath] | None = None
        """Returns the writer to use after :meth:`close`, if another process takes over."""
        comparator = store.comparator.user_comparator
        self._probe = None if equal_means_identical(comparator) else comparator.compare

    def write(
        self,
        operations: list[Operation],
        sync: bool,
        condition: Callable[[], None] | None = None,
    ) -> None:
        """Apply a batch, atomically; once this returns, a killed process does not lose it.

        With ``sync`` a power cut does not lose it either.  After an exception the batch is either
        written whole or not at all; after an error of the log or of background work, it is not
        acknowledged, and not visible until the store is reopened.

        ``condition`` is called when nothing else can be written before the batch; if it raises, the
        batch is not written, and this raises the same.
        """
        if self._probe is not None:
            # A key that the user's comparator cannot take must not get into the log.
            for key, _ in operations:
                self._probe(key, key)
        store = self._store
        listener = store.listener
        started = 0 if listener is None else listener.now()
        if store.view is None:
            store.open_view()  # raises
        contended = bool(self._queue.waiting) or self._lock.taken()
        if self._must_not_wait(contended):
            self._write_nested(operations, sync, condition)
        else:
            pending = PendingWrite(operations, sync, condition)
            self._commit_in_turn(pending, contended)
            if pending.error is not None:
                self._pass_on(pending)
                return
            if self._background.threadless:
                if self._background.is_due:
                    self._background.run_next_job()
            else:
                self._delays.after_write(operations)
            if BLOCK_READS.under_way > 0:
                self._delays.give_way()
        if listener is not None:
            listener.wrote(operations, started)

    def _commit_in_turn(self, pending: PendingWrite, contended: bool) -> None:
        """Lead, or have another writer commit the batch; it is done when this returns.

        Caller holds no lock.  Raises what interrupts the wait; then the batch is not in the queue.
        """
        queue = self._queue
        store_lock = self._store.lock
        try:
            if contended:
                queue.wait(pending)
            while not pending.done:
                try:
                    with self._lock.guard:
                        while not pending.done:
                            self._lead(pending)
                except WorkFirst:
                    self._room.work_for_it()
        except BaseException:
            queue.remove(pending)
            try:
                if store_lock.due:
                    store_lock.leave()
            finally:
                queue.wake_first()
            raise
        if store_lock.due:
            store_lock.leave()
        if queue.waiting:
            queue.wake_first()

    def _lead(self, own: PendingWrite) -> None:
        """Commit the batch, and with it those that have queued up.

        Caller holds the writers' lock.
        """
        commit = self._commit
        if commit.batch is not None or commit.publication is not None:
            commit.settle()
            if own.done:
                return
        try:
            self._room.make()
        except WorkFirst:
            raise
        except Exception as error:
            own.finish(error)
            self._queue.remove(own)
            return
        queue = self._queue
        if own.sync and own.condition is None:
            queue.delay_commit(own, min(self._logs.sync_seconds / 2, _LONGEST_COMMIT_DELAY))
        batch = queue.build_group(own) if queue.waiting else own
        commit.write(batch)
        if batch.sync:
            queue.count_writers(own)
        if queue.waiting:
            queue.release_followers(batch)

    # Beyond the tour: nested calls, a store that was handed over, and the other calls of a store

    def _must_not_wait(self, contended: bool) -> bool:
        """True if this is a nested call that must not wait for the locks: a cheap look first."""
        lock = self._store.lock
        return (
            contended
            or lock.taken()
            or lock.directory is not None
            or (bool(lock.threads) and lock.on_own_thread)
        ) and lock.must_not_wait

    def _pass_on(self, pending: PendingWrite) -> None:
        """Raise the error of a batch, unless another process writes to the store since."""
        error = pending.error
        assert error is not None
        if not isinstance(error, ClosedError):
            raise error
        writer = self._next_writer(error)
        if pending.condition is not None:
            raise ConflictError("the owner of the store has gone since the transaction began")
        writer.write(list(pending.operations), pending.sync)

    def _next_writer(self, error: ClosedError) -> WritePath:
        """Return the path for writes after this one was closed, or raise the error."""
        if self.successor is None:
            raise error
        return self.successor()

    def write_unless_changed(
        self, operations: list[Operation], sequence: int, keys: list[bytes]
    ) -> None:
        self.write(operations, False, UnchangedKeys(self._store, sequence, keys).require)

    def finish_nested(self) -> None:
        """Write what nested calls have left in the queue.

        Called when the interrupted call has released its locks.  A thread of the store does not
        wait for the lock, nor for space: what it cannot write now, the next writer does, or its own
        next step.  A batch that cannot be written is reported, since no caller waits for it.
        """
        lock = self._lock
        while True:
            pending = self._queue.first_nested()
            if pending is None:
                return
            if not self._store.lock.must_not_wait:
                try:
                    with lock.guard:
                        self._lead_nested(pending)
                except WorkFirst:
                    self._room.work_for_it()
                    continue
            elif lock.guard.acquire(False):
                try:
                    if self._room.is_there():
                        self._lead_nested(pending)
                finally:
                    lock.guard.release()
            if not pending.done:
                self._store.lock.due = True
                return
            self._queue.remove(pending)
            self._report_nested(pending)

    @property
    def stalled_seconds(self) -> float:
        """For how long writers have been waiting; 0.0 if none waits."""
        return self._room.stalled_seconds

    @property
    def probes_keys(self) -> bool:
        """True if :meth:`write` looks at the keys of a batch before it is in the log."""
        return self._probe is not None

    @property
    def log_is_mapped(self) -> bool:
        """True if the current log is mapped into memory."""
        return self._logs.current.mapped

    def sync(self) -> None:
        """Make every write that has returned durable."""
        store_lock = self._store.lock
        store_lock.refuse_to_wait("sync()")
        try:
            with store_lock.nested, self._lock.guard:
                self._refuse_closed()
                self._commit.settle()
                self._background.raise_error()
                self._logs.sync()
        except ClosedError as error:
            self._next_writer(error).sync()

    def between_writes(self, action: Callable[[WriteAheadLog], T]) -> T:
        """Call ``action`` with the current log while no write is under way; return its result."""
        store_lock = self._store.lock
        store_lock.refuse_to_wait("a checkpoint")
        with store_lock.nested, self._lock.guard:
            self._refuse_closed()
            self._commit.settle()
            return action(self._logs.current)

    def flush_memtable(self) -> None:
        """Make the memtable immutable, unless it is empty, and wait until it is a table.

        Raises what background work raised.
        """
        self._store.lock.refuse_to_wait("a flush")
        try:
            while not self._begin_flush():
                pass  # another thread has been faster
            self._background.wait_for_flush()
        except ClosedError as error:
            self._next_writer(error).flush_memtable()

    def _begin_flush(self) -> bool:
        """Make the memtable immutable, unless it is empty, once the last one is a table.

        Returns False where this would have to flush that one itself, with a lock in its hands.
        """
        store = self._store
        background = self._background
        if background.threadless:
            background.wait_for_flush()
        with store.lock.nested, self._lock.guard:
            self._refuse_closed()
            self._commit.settle()
            background.raise_error()
            view = store.open_view()
            may_wait = view.immutable is None or not background.threadless
            if may_wait:
                background.wait_for_flush()
                if not view.memtable.empty:
                    self._room.switch()
        return may_wait

    def publish(self, make: Callable[[int], Publication]) -> None:
        """Make tables visible, all at once, as the newest of all writes.

        ``make`` is called with the last sequence when nothing else can be written before the
        tables, every earlier write is in a table too, and the log is empty.  When this returns the
        tables are visible and durable; after an exception the publication that ``make`` has
        returned says what became of it.
        """
        store = self._store
        with store.lock.nested, self._lock.guard:
            self._refuse_closed()
            self._commit.settle()
            self._background.raise_error()
            view = store.open_view()
            while len(view.version.levels[0]) >= L0_STOP_WRITES_TRIGGER:
                self._room.stall(view)
                view = store.open_view()
            self._room.empty_log()
            log = self._logs.create()
            try:
                self._commit.publish(make(store.versions.last_sequence), log)
            except BaseException:
                if self._commit.publication is None:
                    self._logs.remove(log)
                self._commit.settle_despite_interrupts()
                raise
            self._commit.settle()

    def drop(self, drop: RangeDrop) -> bool:
        """Drop tables, as one write.  Returns False, and drops none, if a compaction has rewritten
        one of the tables that it expects, or is doing so; ``key`` is deleted all the same."""
        with self._store.lock.nested, self._lock.guard:
            self._refuse_closed()
            self._commit.settle()
            self._background.raise_error()
            mark = PendingWrite([], False, None)
            self._commit.write(mark)
            if mark.error is not None:
                raise mark.error
            return self._commit.drop(drop)

    def is_ingesting(self) -> bool:
        """True if this thread runs an ingest, whose ``progress`` then makes the call."""
        own = get_ident()
        return any(thread == own and under_way.locked() for thread, under_way in list(self.ingests))

    def wait_for_ingests(self) -> None:
        """Wait for the end of other threads' ingests, which look at ``store.closing`` every few
        blocks.  A signal's handler that raises ends the wait."""
        for thread, under_way in list(self.ingests):
            if thread != get_ident():  # else this is called by its progress
                deferred.wait_for(under_way)

    def close(self) -> None:
        """Sync and close the log, after :meth:`wait_for_ingests`.  ``store.closing`` is set, so no
        writer holds the lock for long."""
        with self._lock.guard:
            if self._closed:
                return
            try:
                self._commit.settle()
                pending = self._queue.first_nested()
                while pending is not None:
                    self._commit_nested(pending)
                    self._queue.remove(pending)
                    self._report_nested(pending)
                    pending = self._queue.first_nested()
                self._logs.sync()
            finally:
                self._closed = True
                self._logs.close()

    def _refuse_closed(self) -> None:
        """Raise :class:`ClosedError` once :meth:`close` has closed the log; the view may still be
        there.  Caller holds the writers' lock."""
        self._store.open_view()
        if self._closed:
            raise ClosedError("the database is closed")

    # Nested calls

    def _write_nested(
        self, operations: list[Operation], sync: bool, condition: Callable[[], None] | None
    ) -> None:
        """Leave a batch in the queue, from a call that must not wait for the lock.

        The interrupted call writes it when it has released its locks, at the latest
        (:meth:`finish_nested`).  Where the caller would rely on more, nothing is written.
        """
        store = self._store
        if store.closing or store.lock.closer is not None:
            raise ClosedError("the database is closed")
        if condition is not None:
            store.lock.refuse_to_wait("the commit of a transaction")
        if sync:
            store.lock.refuse_to_wait("a write with sync=True")
        pending = PendingWrite(operations, False, None)
        pending.nested = True
        self._queue.waiting.append(pending)
        store.lock.due = True
        if not store.lock.is_held:
            store.lock.leave()  # a thread of the store, which may write now if it need not wait

    def _lead_nested(self, pending: PendingWrite) -> None:
        """Commit a batch that a nested call has left.  Caller holds the writers' lock."""
        if self._store.closing:
            self._commit_nested(pending)
        while not pending.done:
            self._lead(pending)

    def _commit_nested(self, pending: PendingWrite) -> None:
        """Commit a batch that a nested call has left while the store closes, without making space
        for it.  Caller holds the writers' lock."""
        if self._closed:
            pending.finish(ClosedError("the database is closed"))
        elif not pending.done:
            self._commit.settle()
            self._commit.write(pending)

    def _report_nested(self, pending: PendingWrite) -> None:
        if pending.error is not None:
            self._store.info_log.warn(
                "A write by a signal handler or finalizer, in the middle of another call, was"
                f" lost: {pending.error}"
            )
