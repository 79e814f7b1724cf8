"""The write path: a batch gets its sequences, goes into the log, and then into the memtable.

``DB`` calls :class:`Writer` from any thread.  Writers exclude each other by the writers' lock: its
holder leads, and commits with its own batch the batches of the followers that have queued up
meanwhile (``write_queue.py``).  It owns the log, the sequences and the content of the memtable; the
store's lock is taken inside the writers' lock, and only for the moments in which readers are to see
something new.  (Source: LevelDB, ``DBImpl::Write`` and ``DBImpl::MakeRoomForWrite``.)

What an interrupt leaves is for ``commit.py``, and the log files are for ``log_rotation.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock as WaitingLock
from threading import get_ident
from typing import TypeVar

from librt.threading import Lock

from lsmkv.db.background import Background
from lsmkv.db.background_jobs import Publication
from lsmkv.db.commit import Commit
from lsmkv.db.log_rotation import LogRotation
from lsmkv.db.store import Store, View
from lsmkv.db.wal import WriteAheadLog
from lsmkv.db.write_queue import PendingWrite, WriteQueue
from lsmkv.errors import ClosedError
from lsmkv.format.batch import Operation
from lsmkv.options import L0_STOP_WRITES_TRIGGER
from lsmkv.util.comparator import equal_means_identical

T = TypeVar("T")

_LONGEST_COMMIT_DELAY = 0.001  # seconds that a sync may be put off for others to share it


class Writer:
    """Serialises all writes of a store.  Any thread may call any method."""

    def __init__(self, store: Store, background: Background, wal: WriteAheadLog) -> None:
        self._store = store
        self._background = background
        self._lock = Lock()
        """The writers' lock."""
        self._queue = WriteQueue(self._lock)
        self._logs = LogRotation(store, background, wal)
        self._commit = Commit(store, background, self._logs)
        self.ingests: list[tuple[int, WaitingLock]] = []
        """Thread of each ingest under way, and a lock that is held until its end."""
        self._write_buffer_size: int = store.options.write_buffer_size
        self._mark = self._write_buffer_size // 8
        """Up to this usage a memtable needs no attention: an eighth of its size, then a quarter,
        then seven eighths, then all of it (:meth:`_pass_mark`)."""
        self._eighth_full = 0.0
        """When the memtable was an eighth full."""
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

        ``condition`` is called when nothing else can be written any more before the batch; if it
        raises, the batch is not written, and this raises the same.
        """
        if self._probe is not None:
            # A key that the user's comparator cannot take must not get into the log.
            for key, _ in operations:
                self._probe(key, key)
        if self._store.view is None:
            self._store.open_view()  # raises
        pending = PendingWrite(operations, sync, condition)
        queue = self._queue
        try:
            if queue.waiting or self._lock.locked():
                queue.wait(pending)
            if not pending.done:
                with self._lock:
                    while not pending.done:
                        self._lead(pending)
        except BaseException:
            queue.remove(pending)
            queue.wake_first()
            raise
        if queue.waiting:
            queue.wake_first()
        if pending.error is not None:
            raise pending.error

    @property
    def log_is_mapped(self) -> bool:
        """Whether the current log is mapped into memory."""
        return self._logs.current.mapped

    def sync(self) -> None:
        """Make every write that has returned durable."""
        with self._lock:
            self._store.open_view()
            self._commit.settle()
            self._background.raise_error()
            self._logs.sync()

    def between_writes(self, action: Callable[[WriteAheadLog], T]) -> T:
        """Call ``action`` with the current log while no write is under way; return its result."""
        with self._lock:
            self._commit.settle()
            return action(self._logs.current)

    def flush_memtable(self) -> None:
        """Make the memtable immutable, unless it is empty, and wait until it is a table.

        Raises what background work raised.
        """
        store = self._store
        with self._lock:
            self._commit.settle()
            self._background.raise_error()
            empty = store.open_view().memtable.empty
            self._background.wait_for_flush()
            if not empty:
                self._switch_memtable()
        self._background.wait_for_flush()

    def publish(self, make: Callable[[int], Publication]) -> None:
        """Make tables visible, all at once, as the newest of all writes.

        ``make`` is called with the last sequence when nothing else can be written any more before
        the tables, every earlier write is in a table too, and the log is empty.  When this returns
        the tables are visible and durable; after an exception the publication that ``make`` has
        returned says what became of it.
        """
        store = self._store
        with self._lock:
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

    def close(self) -> None:
        """Sync and close the log.  ``store.closing`` is set, so no writer holds the lock for long.

        The ingests of other threads end first; each looks at ``store.closing`` every few blocks.
        """
        for thread, under_way in list(self.ingests):
            if thread != get_ident():  # else this is called by its progress
                with under_way:
                    pass
        with self._lock:
            try:
                self._commit.settle()
                self._logs.sync()
            finally:
                self._logs.close()

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

        With 8 files on level 0 each write is delayed by a millisecond, so that compaction gains on
        the writers before level 0 has 12 files and writes stop.
        """
        store = self._store
        background = self._background
        may_delay = True
        while True:
            if background.error is not None:
                background.raise_error()
            if store.closing:
                raise ClosedError("the database is closed")
            view = store.view or store.open_view()
            if may_delay and view.crowded:
                may_delay = False
                store.counters.slowdowns += 1
                time.sleep(0.001)
            elif view.memtable.usage <= self._mark:
                return
            elif self._mark < self._write_buffer_size:
                self._pass_mark(view.memtable.usage)
            elif (
                view.immutable is not None or len(view.version.levels[0]) >= L0_STOP_WRITES_TRIGGER
            ):
                background.work_before_room(view).refuse_if_hopeless()
                # No more records go into this log, and it is to be durable before the next log
                # begins: the disk may as well work while this writer waits for the flush.
                self._logs.sync()
                self._logs.create_ahead()
                self._stall(view)
            else:
                self._switch_memtable()

    def _pass_mark(self, usage: int) -> None:
        """Do what the memtable's usage asks for at this mark, and set the next one.

        The time between an eighth and a quarter tells how fast the memtable fills; background work
        is told then (:meth:`Background.expect_flush`).  At seven eighths the disk begins to write
        the log, which is to be durable before the next log begins.
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
            self._mark = nearly  # a single batch tells nothing about the pace
        else:
            self._mark = quarter
            self._eighth_full = time.monotonic()

    def _stall(self, view: View) -> None:
        """Wait until background work has changed the view.

        If the disk is full, one attempt is made after the call, and its error raised.
        """
        store = self._store
        started = time.monotonic()
        work = self._background.work_before_room(view)
        since = work.attempts
        while store.view is view:
            with store.lock:
                # The view changes under this lock, so no change is missed between look and ticket.
                ticket = None
                if store.view is view:
                    work.resume_for(since)
                    ticket = self._background.ticket()
            if ticket is not None:
                ticket.acquire()
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
        with store.lock:
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
