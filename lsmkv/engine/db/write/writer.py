"""The write path: a batch gets its sequences, goes into the log, and then into the memtable.

``DB`` calls :class:`Writer` from any thread.  Writers exclude each other by the writers' lock: its
holder leads, and commits with its own batch the batches of the followers that have queued up
meanwhile (``write_queue.py``).  It owns the log, the sequences and the content of the memtable; the
store's lock is taken inside the writers' lock, and only for the moments in which readers are to see
something new.  (Source: LevelDB, ``DBImpl::Write`` and ``DBImpl::MakeRoomForWrite``.)

What an interrupt leaves is for ``commit.py``, and the log files are for ``log_rotation.py``.  A
nested call, by a signal handler or finalizer that has interrupted another call of its thread,
leaves its batch in the queue (``store_lock.py``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from lsmkv.engine.counters import BLOCK_READS
from lsmkv.engine.db.compact.background import Background
from lsmkv.engine.db.compact.background_jobs import Publication
from lsmkv.engine.db.tree.store import Store, View
from lsmkv.engine.db.write.commit import Commit
from lsmkv.engine.db.write.log_rotation import LogRotation
from lsmkv.engine.db.write.unchanged import UnchangedKeys
from lsmkv.engine.db.write.wal import WriteAheadLog
from lsmkv.engine.db.write.write_path import WritePath
from lsmkv.engine.db.write.write_queue import PendingWrite, WriteQueue
from lsmkv.engine.errors import ClosedError
from lsmkv.engine.format.batch import Operation, encoded_size
from lsmkv.engine.options import L0_STOP_WRITES_TRIGGER
from lsmkv.engine.util.comparator import equal_means_identical
from lsmkv.engine.util.delay_debt import DelayDebt
from lsmkv.engine.util.signals import deferred
from lsmkv.engine.util.threads import get_ident, pause

if TYPE_CHECKING:
    from mypy_extensions import i64

T = TypeVar("T")


class _WorkFirst(Exception):
    """A write has to do background work before there is space for it, and must release its lock."""


_LONGEST_COMMIT_DELAY = 0.001  # seconds that a sync may be put off for others to share it
_FLUSH_DELAY = 60e-9  # seconds a byte for a full memtable while the one before is flushed
_SMALL_BATCH = 16 * 1024  # bytes; a larger one takes long in any case
_LONGEST_DELAY = 0.001  # seconds for which a write sleeps because level 0 has many files
_TURN = 0.002  # seconds after which writers give way to readers again
_WAY = 0.00005  # seconds of a pause that is long enough for a thread that waits for the interpreter


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
        self.ingests: list[tuple[int, Any]] = []
        """Thread of each ingest under way, and a lock that is held until its end."""
        self._write_buffer_size: int = store.options.write_buffer_size
        self._mark = self._write_buffer_size // 8
        """Up to this usage a memtable needs no attention: an eighth of its size, then a quarter,
        then seven eighths, then all of it (:meth:`_pass_mark`)."""
        self._closed = False
        self._eighth_full = 0.0
        """When the memtable was an eighth full."""
        self._stalled_since = 0.0
        """When the write stall under way began (``time.monotonic``); 0.0 if there is none."""
        self._delays = DelayDebt(_LONGEST_DELAY)
        """What writes owe that are delayed."""
        self._turn_ends = 0.0
        """When writers give way to readers again."""
        self._reads_before: i64 = 0
        """How many block reads had ended when they did last."""
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
        lock = self._lock
        store_lock = store.lock
        queue = self._queue
        thread = lock.ident()
        contended = bool(queue.waiting) or lock.taken()
        if (
            contended
            or store_lock.taken()
            or store_lock.directory is not None
            or (store_lock.threads and thread in store_lock.threads)
        ) and store_lock.must_not_wait:
            self._write_nested(operations, sync, condition)
            if listener is not None:
                listener.wrote(operations, started)
            return
        pending = PendingWrite(operations, sync, condition)
        try:
            if contended:
                queue.wait(pending)
            while not pending.done:
                try:
                    with lock.guard:
                        lock.owner = thread  # as claim() does
                        while not pending.done:
                            self._lead(pending)
                        lock.owner = None
                except _WorkFirst:
                    self._work_for_room()
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
        if pending.error is not None:
            raise pending.error
        if self._background.threadless:
            if self._background.is_due:
                self._background.run_next_job()
        else:
            view = store.view
            if view is not None and (
                view.delay > 0.0
                or (
                    view.immutable is not None and 2 * view.memtable.usage > self._write_buffer_size
                )
            ):
                seconds = self._delay_of(view, operations)
                view = None  # a sleep must not keep its tables on disk
                if self._delays.owe(seconds):
                    store.counters.slowdowns += 1
        if BLOCK_READS.under_way > 0:
            self._give_way()
        if listener is not None:
            listener.wrote(operations, started)

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
                except _WorkFirst:
                    self._work_for_room()
                    continue
            elif lock.guard.acquire(False):
                try:
                    if self._has_room():
                        self._lead_nested(pending)
                finally:
                    lock.owner = None
                    lock.guard.release()
            if not pending.done:
                self._store.lock.due = True
                return
            self._queue.remove(pending)
            self._report_nested(pending)

    @property
    def stalled_seconds(self) -> float:
        """For how long writers have been waiting; 0.0 if none waits."""
        since = self._stalled_since
        return time.monotonic() - since if since > 0 else 0.0

    @property
    def probes_keys(self) -> bool:
        """Whether :meth:`write` looks at the keys of a batch before the log has it."""
        return self._probe is not None

    @property
    def log_is_mapped(self) -> bool:
        """Whether the current log is mapped into memory."""
        return self._logs.current.mapped

    def sync(self) -> None:
        """Make every write that has returned durable."""
        store_lock = self._store.lock
        store_lock.refuse_to_wait("sync()")
        with store_lock.afterwards, self._lock.guard:
            self._lock.claim()
            self._refuse_closed()
            self._commit.settle()
            self._background.raise_error()
            self._logs.sync()

    def between_writes(self, action: Callable[[WriteAheadLog], T]) -> T:
        """Call ``action`` with the current log while no write is under way; return its result."""
        store_lock = self._store.lock
        store_lock.refuse_to_wait("a checkpoint")
        with store_lock.afterwards, self._lock.guard:
            self._lock.claim()
            self._refuse_closed()
            self._commit.settle()
            return action(self._logs.current)

    def flush_memtable(self) -> None:
        """Make the memtable immutable, unless it is empty, and wait until it is a table.

        Raises what background work raised.
        """
        self._store.lock.refuse_to_wait("a flush")
        while not self._begin_flush():
            pass  # another thread has been faster
        self._background.wait_for_flush()

    def _begin_flush(self) -> bool:
        """Make the memtable immutable, unless it is empty, once the last one is a table.

        Returns False where this would have to flush that one itself, with a lock in its hands.
        """
        store = self._store
        background = self._background
        if background.threadless:
            background.wait_for_flush()
        with store.lock.afterwards, self._lock.guard:
            self._lock.claim()
            self._refuse_closed()
            self._commit.settle()
            background.raise_error()
            view = store.open_view()
            may_wait = view.immutable is None or not background.threadless
            if may_wait:
                background.wait_for_flush()
                if not view.memtable.empty:
                    self._switch_memtable()
        return may_wait

    def publish(self, make: Callable[[int], Publication]) -> None:
        """Make tables visible, all at once, as the newest of all writes.

        ``make`` is called with the last sequence when nothing else can be written before the
        tables, every earlier write is in a table too, and the log is empty.  When this returns the
        tables are visible and durable; after an exception the publication that ``make`` has
        returned says what became of it.
        """
        store = self._store
        with store.lock.afterwards, self._lock.guard:
            self._lock.claim()
            self._refuse_closed()
            self._commit.settle()
            self._background.raise_error()
            view = store.open_view()
            while len(view.version.levels[0]) >= L0_STOP_WRITES_TRIGGER:
                self._stall(view)
                view = store.open_view()
            self._empty_log()
            log = self._logs.create()
            try:
                self._commit.publish(make(store.versions.last_sequence), log)
            except BaseException:
                if self._commit.publication is None:
                    self._logs.remove(log)
                self._commit.settle_despite_interrupts()
                raise
            self._commit.settle()

    def is_ingesting(self) -> bool:
        """Whether this thread runs an ingest, whose ``progress`` then makes the call."""
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
            self._lock.claim()
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

    def _has_room(self) -> bool:
        """Whether a batch can be written now without any wait."""
        view = self._store.view
        return (
            view is not None
            and self._background.error is None
            and view.delay <= 0.0
            and view.memtable.usage <= self._mark
        )

    def _lead_nested(self, pending: PendingWrite) -> None:
        """Commit a batch that a nested call has left.  Caller has just taken the writers' lock."""
        lock = self._lock
        lock.claim()
        if self._store.closing:
            self._commit_nested(pending)
        while not pending.done:
            self._lead(pending)
        lock.owner = None

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

    # After a write.  The caller holds no lock.

    def _delay_of(self, view: View, operations: list[Operation]) -> float:
        """For how many seconds a write is delayed, so that background work gains on the writers
        before they have to wait for it.

        Before level 0 has 12 files and writes stop, the delay of a byte grows with these files and
        with the memtable, which will be one.  Before the memtable is full and writes wait for the
        flush of the one before, the delay of a small batch grows too.  So writes become as slow as
        flushes and compactions are, with a delay that is never much longer than that of the write
        before.
        """
        full = min(view.memtable.usage / self._write_buffer_size, 1.0)
        size = encoded_size(operations)
        delay = view.delay * (1.0 + 3.0 * full)
        if view.immutable is not None and full > 0.5 and size < _SMALL_BATCH:
            delay += _FLUSH_DELAY * (2.0 * full - 1.0) ** 2
        return delay * size

    def _give_way(self) -> None:
        """Let the readers go on that wait for the interpreter, unless they had their turn just now.

        A reader lets others run while it reads or decompresses a block.  A writer that takes over
        then would keep the interpreter for its switch interval, 5 ms.  If no read has ended since
        the last turn, they wait for a file.
        """
        reads = BLOCK_READS.ended
        now = time.monotonic()
        if reads != self._reads_before and now >= self._turn_ends:
            self._reads_before = reads
            self._turn_ends = now + _TURN
            pause(_WAY)
            self._turn_ends = time.monotonic() + _TURN

    # Leading.  The caller of everything that follows holds the writers' lock.

    def _lead(self, own: PendingWrite) -> None:
        """Commit the batch, and with it those that have queued up."""
        commit = self._commit
        if commit.batch is not None or commit.publication is not None:
            commit.settle()
            if own.done:
                return
        try:
            self._make_room()
        except _WorkFirst:
            self._lock.owner = None
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

    # Room in the memtable

    def _make_room(self) -> None:
        """Wait until the memtable may grow, or begin a new one.

        Writes are delayed before level 0 has 12 files and they stop: see :meth:`_delay_of`.
        """
        store = self._store
        background = self._background
        while True:
            if background.error is not None:
                background.raise_error()
            if store.closing:
                raise ClosedError("the database is closed")
            view = store.view or store.open_view()
            if view.memtable.usage <= self._mark:
                return
            if self._mark < self._write_buffer_size:
                self._pass_mark(view.memtable.usage)
            elif (
                view.immutable is not None or len(view.version.levels[0]) >= L0_STOP_WRITES_TRIGGER
            ):
                background.work_before_room(view).refuse_if_hopeless()
                if background.threadless:
                    raise _WorkFirst
                # No more records go into this log, and it is to be durable before the next log
                # begins: the disk may as well work while this writer waits for the flush.
                self._logs.sync()
                self._logs.create_ahead()
                self._stall(view)
            else:
                self._switch_memtable()

    def _pass_mark(self, usage: int) -> None:
        """Do what the memtable's usage asks for at this mark, and set the next one.

        The time between an eighth and a quarter shows how fast the memtable fills; background work
        gets this rate (:meth:`Background.expect_flush`).  At seven eighths the disk starts to write
        the log, which has to be durable before the next log begins.
        """
        full = self._write_buffer_size
        quarter = full // 4
        nearly = full - full // 8
        if self._mark >= nearly:
            self._mark = full
            if usage <= full:
                self._logs.current.begin_sync()
        elif self._mark >= quarter:
            self._mark = nearly
            self._background.expect_flush(full, 8 * (time.monotonic() - self._eighth_full))
        elif usage > quarter:
            self._mark = nearly  # a single batch says nothing about the pace
        else:
            self._mark = quarter
            self._eighth_full = time.monotonic()

    def _work_for_room(self) -> None:
        """Do background work, or wait for the call that does some, until the memtable may be
        exchanged.  Caller holds no lock."""
        store = self._store
        view = store.view
        while (
            view is not None
            and not store.closing
            and self._background.error is None
            and (
                view.immutable is not None or len(view.version.levels[0]) >= L0_STOP_WRITES_TRIGGER
            )
        ):
            self._stall(view)
            view = store.view

    def _stall(self, view: View) -> None:
        """Wait until background work has changed the view.

        If the disk is full, one attempt is made after the call, and its error raised.
        """
        store = self._store
        started = time.monotonic()
        work = self._background.work_before_room(view)
        since = work.attempts
        self._stalled_since = started
        try:
            while store.view is view:
                with store.lock.afterwards, store.lock.guard:
                    store.lock.claim()
                    # The view changes under this lock, so no change is missed between look and
                    # ticket.
                    ticket = None
                    if store.view is view:
                        work.resume_for(since)
                        ticket = self._background.ticket()
                if ticket is not None:
                    ticket.acquire()
        finally:
            self._stalled_since = 0.0
        store.counters.stalls += 1
        store.counters.stall_seconds += time.monotonic() - started

    def _switch_memtable(self) -> None:
        """Begin a new log and a new memtable; the full memtable is flushed.

        The old log is durable before the first record goes into the new one, so that the writes
        that survive a power cut are a prefix of all writes.
        """
        store = self._store
        logs = self._logs
        logs.sync()
        log = logs.take_next()
        # The table's number is given now, so that numbers follow the order of the writes, however
        # late the background thread comes to the flush.
        table_number = store.versions.new_file_number()
        with store.lock.guard:
            store.lock.claim()
            view = store.open_view()
            view.memtable.table_number = table_number
            old = logs.current
            logs.current = log
            store.view = View(store.new_memtable(log.number), view.memtable, view.version)
            self._background.schedule()
        self._mark = self._write_buffer_size // 8
        old.close()

    def _empty_log(self) -> None:
        """See that memtables and log are empty, every write being in a table.

        Only then may a sequence follow that is in no log.  Recovery takes a gap in the sequences
        for lost writes, except before the first batch of the oldest log.
        """
        self._background.wait_for_flush()
        if self._store.open_view().memtable.empty and self._logs.current.end == 0:
            self._logs.sync()  # fails if the log may hold a batch that was not acknowledged
            return
        self._switch_memtable()
        self._background.wait_for_flush()
