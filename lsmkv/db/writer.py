"""The write path: number a batch, append it to the log, apply it to the memtable.

Writers exclude each other: one leads, and commits what others have queued up meanwhile, too
(``write_queue.py``).  (Source: LevelDB, ``DBImpl::Write``.)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock as WaitingLock
from threading import get_ident
from typing import Final, TypeVar

from librt.strings import BytesWriter
from librt.threading import Lock

from lsmkv.db.background import Background
from lsmkv.db.publication import Publication
from lsmkv.db.store import Store, View
from lsmkv.db.wal import WriteAheadLog
from lsmkv.db.write_queue import Pending, WriteQueue
from lsmkv.env.base import WritableFile
from lsmkv.errors import ClosedError, Error, raise_typed
from lsmkv.format.batch import Operation, append_batch
from lsmkv.format.filenames import log_name
from lsmkv.format.keys import MAX_SEQUENCE
from lsmkv.options import L0_STOP_WRITES_TRIGGER
from lsmkv.util.comparator import equal_means_identical

T = TypeVar("T")

_SETTLE_ATTEMPTS = 100
_LARGE: Final = 1 << 20  # for a batch of more bytes room is made anew each time
_LONGEST_COMMIT_DELAY = 0.001  # seconds that a sync may be put off for others to share it


class Writer:
    """Serialises all writes of a store.  Any thread may call any method."""

    def __init__(self, store: Store, background: Background, wal: WriteAheadLog) -> None:
        self._store = store
        self._background = background
        self._wal = wal
        self._lock = Lock()
        """The writers' lock: its holder owns the log, the sequences and the memtable's content."""
        self._queue = WriteQueue(self._lock)
        self._record = BytesWriter()  # where a batch is put together for the log
        self._next_log: WriteAheadLog | None = None  # made while a flush was waited for
        self._left: WriteAheadLog | None = None  # that must not be taken over
        self._sync_seconds = 0.0  # that the last sync took
        self._unsettled: Pending | None = None  # between the log and the memtable
        self._unpublished: tuple[Publication, WriteAheadLog] | None = None
        self.ingests: list[tuple[int, WaitingLock]] = []
        """Thread of each ingest under way, and a lock that is held until its end."""
        self._write_buffer_size: int = store.options.write_buffer_size
        self._mark = self._write_buffer_size // 8
        """Up to this usage nothing has to be done about a memtable: when an eighth of it is full,
        then a quarter, then seven eighths, then all of it."""
        self._eighth_full = 0.0
        """When it was."""
        comparator = store.comparator.user_comparator
        self._probe = None if equal_means_identical(comparator) else comparator.compare

    def write(
        self,
        operations: list[Operation],
        sync: bool,
        condition: Callable[[], None] | None = None,
    ) -> None:
        """Apply a batch, atomically; once this returns, a killed process does not lose it.

        With ``sync`` neither does a power cut.  After an exception the batch is either written
        whole or not at all; after an error of the log or of background work, not acknowledged and
        not visible until the store is reopened.

        ``condition`` is called when nothing else can be written any more before the batch; if it
        raises, the batch is not written, and this raises the same.
        """
        if self._probe is not None:
            # What the user's comparator cannot take must not get into the log.
            for key, _ in operations:
                self._probe(key, key)
        if self._store.view is None:
            self._store.open_view()  # raises
        pending = Pending(operations, sync, condition)
        queue = self._queue
        try:
            if queue.waiting or self._lock.locked():
                queue.wait(pending)
            if not pending.done:
                with self._lock:
                    while not pending.done:
                        self._lead(pending)
        except BaseException:
            queue.withdraw(pending)
            queue.call_first()
            raise
        if queue.waiting:
            queue.call_first()
        if pending.error is not None:
            raise pending.error

    def sync(self) -> None:
        """Make every write that has returned durable."""
        with self._lock:
            self._store.open_view()
            self._settle()
            self._background.raise_error()
            self._sync_log()

    def between_writes(self, action: Callable[[WriteAheadLog], T]) -> T:
        """Call ``action`` with the log while no write is under way; what it returns."""
        with self._lock:
            self._settle()
            return action(self._wal)

    def rotate(self) -> None:
        """Let the memtable, if anything is in it, become immutable, and wait until it is a table.

        Raises what background work raised.
        """
        store = self._store
        with self._lock:
            self._settle()
            self._background.raise_error()
            empty = store.open_view().memtable.empty
            self._background.wait_for_flush()
            if not empty:
                self._begin_log()
        self._background.wait_for_flush()

    def publish(self, make: Callable[[int], Publication]) -> None:
        """Make tables visible, all at once, as the newest of all writes.

        ``make`` is called with the last sequence when nothing else can be written any more before
        the tables, all that was written lies in tables too, and the log is empty.  When this
        returns the tables are visible and durable; after an exception the publication that it
        made says what came of it.
        """
        store = self._store
        with self._lock:
            self._settle()
            self._background.raise_error()
            view = store.open_view()
            while len(view.version.levels[0]) >= L0_STOP_WRITES_TRIGGER:
                self._stall(view)
                view = store.open_view()
            self._empty_log()
            wal = self._new_log()
            try:
                publication = make(store.versions.last_sequence)
                publication.log_number = wal.number
                self._unpublished = publication, wal
                self._background.publish(publication)
            except BaseException:
                if self._unpublished is None:
                    self._drop_log(wal)
                self._settle_surely()
                raise
            self._settle()

    def is_ingesting(self) -> bool:
        """Whether this thread is in an ingest: in its ``progress``, then."""
        own = get_ident()
        return any(thread == own and under_way.locked() for thread, under_way in list(self.ingests))

    def close(self) -> None:
        """Sync and close the log.  ``store.closing`` is set: no writer stays for long.

        An ingest of another thread ends first; it looks up every few blocks.
        """
        for thread, under_way in list(self.ingests):
            if thread != get_ident():  # else this is called by its progress
                with under_way:
                    pass
        with self._lock:
            try:
                self._settle()
                self._sync_log()
            finally:
                self._wal.close()
                if self._next_log is not None:
                    self._drop_log(self._next_log)

    # Leading; the writers' lock is held in all that follows

    def _lead(self, own: Pending) -> None:
        """Commit the batch, and with it what has queued up."""
        if self._unsettled is not None or self._unpublished is not None:
            self._settle()
            if own.done:
                return
        try:
            self._make_room()
        except Exception as error:
            own.end(error)
            self._queue.withdraw(own)
            return
        queue = self._queue
        if own.sync and own.condition is None:
            queue.delay_commit(own, min(self._sync_seconds / 2, _LONGEST_COMMIT_DELAY))
        batch = queue.gather(own) if queue.waiting else own
        self._commit(batch)
        if batch.sync:
            queue.count_writers(own)
        if queue.waiting:
            queue.release_followers(batch)

    def _commit(self, batch: Pending) -> None:
        """Log, then memtable.

        An exception out of nowhere (Ctrl-C) may strike between any two steps.  What was begun is
        noted in ``_unsettled`` first and cleared last; whoever leads next completes it or takes
        it back, so that log, memtable and sequences never disagree.
        """
        condition = batch.condition
        if condition is not None:
            try:
                condition()
            except Exception as error:
                batch.end(error)
                return
        operations = batch.operations
        store = self._store
        sequence = store.versions.last_sequence + 1
        if sequence + len(operations) > MAX_SEQUENCE:
            batch.end(Error("the store has used up its 2^56 sequence numbers"))
            return
        batch.first_sequence = sequence
        batch.log_end = self._wal.end
        writer = self._record
        writer.truncate(0)
        append_batch(writer, sequence, operations)
        record = writer.getvalue()
        if len(record) > _LARGE:
            self._record = BytesWriter()
        self._unsettled = batch
        try:
            self._wal.append(record)
            store.counters.log_writes += 1
            if batch.sync:
                self._sync_log()
        except Error as error:
            self._unsettled = None
            batch.end(error)
            return
        except BaseException:
            self._settle_surely()
            raise
        try:
            self._apply(batch)
        except BaseException:
            self._settle_surely()
            raise

    def _apply(self, batch: Pending) -> None:
        """Show the batch to readers: to snapshots and iterators all of it at once, to plain Gets,
        which read what is newest, key by key."""
        store = self._store
        view = store.view or store.open_view()
        counters = store.counters
        first = batch.first_sequence
        operations = batch.operations
        count = len(operations)
        with store.lock:
            user_bytes = view.memtable.add(first, operations, store.live.newest())
            store.versions.last_sequence = first + count - 1
            if batch.members is None:
                batch.done = True  # as end() does; nearly all batches go alone
            else:
                batch.end()
        self._unsettled = None
        counters.writes += 1 if batch.members is None else len(batch.members)
        counters.operations += count
        counters.log_bytes += self._wal.end - batch.log_end
        counters.user_bytes += user_bytes

    def _settle(self) -> None:
        """Bring an interrupted commit to its end: forward if the log has it, else back."""
        if self._unpublished is not None:
            self._settle_publication(*self._unpublished)
        batch = self._unsettled
        if batch is None:
            return
        if self._wal.end > batch.log_end:
            if batch.sync:
                # What interrupted the leader may have done so before the sync.
                try:
                    self._sync_log()
                except Error as error:
                    self._unsettled = None
                    batch.end(error)
                    return
            self._apply(batch)
            return
        self._wal.cut_back()
        self._unsettled = None

    def _settle_publication(self, publication: Publication, wal: WriteAheadLog) -> None:
        """Take it back unless it was begun.  Once it is committed, writes go on in ``wal``."""
        self._background.withdraw(publication)
        if publication.withdrawn:
            self._drop_log(wal)
        elif not publication.committed:
            wal.close()  # the MANIFEST may name it
        elif self._wal is not wal:
            old = self._wal
            self._wal = wal
            old.close()
        self._unpublished = None

    def _settle_surely(self) -> None:
        """:meth:`_settle`, however many signals strike meanwhile: one is raised as it is."""
        for _ in range(_SETTLE_ATTEMPTS):
            try:
                self._settle()
                return
            except BaseException:
                continue
        self._settle()

    def _sync_log(self) -> None:
        started = time.monotonic()
        try:
            synced = self._wal.sync()
        except Error:
            self._leave_log()
            raise
        if synced:
            self._sync_seconds = time.monotonic() - started
            self._store.counters.log_syncs += 1

    def _leave_log(self) -> None:
        """Let nobody take over a log whose sync has failed, in this process or another.

        What could not be made durable may never be, whatever a later sync says.  Beside a newer
        log, though it is empty, the next recovery writes this one's content anew, into a table.
        """
        if self._left is self._wal:
            return
        try:
            self._new_log().close()
        except Error:
            pass  # where nothing can be made, there is nothing else to be tried
        self._left = self._wal

    # Room in the memtable

    def _make_room(self) -> None:
        """Wait until the memtable may grow, or begin a new one.

        Level 0 with 8 files holds each write up by a millisecond, so that compaction gains on it
        before it has 12 and writes stop.
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
                # Nothing more goes into this log.  It is to be durable before the next one begins,
                # and the disk may as well be waited for while a flush is: for both of them.
                self._sync_log()
                self._make_log_ahead()
                self._stall(view)
            else:
                self._begin_log()

    def _pass_mark(self, usage: int) -> None:
        """An eighth of the memtable is full, or a quarter: the time between the two tells the pace.
        Or nearly all: the disk may begin with its log, which is to be durable before the next."""
        full = self._write_buffer_size
        quarter = full // 4
        nearly = full - full // 8
        if self._mark >= nearly:
            self._mark = full
            if usage <= full:
                self._wal.begin_sync()
        elif self._mark >= quarter:
            self._mark = nearly
            self._background.expect_flush(full, 8 * (time.monotonic() - self._eighth_full))
        elif usage > quarter:
            self._mark = nearly  # one batch tells nothing of a pace
        else:
            self._mark = quarter
            self._eighth_full = time.monotonic()

    def _stall(self, view: View) -> None:
        """Wait until background work has changed the view."""
        store = self._store
        started = time.monotonic()
        while store.view is view:
            with store.lock:
                # Changes are told under the lock, so none goes by between the look and the ticket.
                ticket = self._background.ticket() if store.view is view else None
            if ticket is not None:
                ticket.acquire()
        store.counters.stalls += 1
        store.counters.stall_seconds += time.monotonic() - started

    def _begin_log(self) -> None:
        """A new log and a new memtable; the full one goes to be flushed.

        The old log is durable before the first record goes into the new one: what survives a
        power cut is a prefix of the writes.
        """
        store = self._store
        self._sync_log()
        wal = self._next_log
        self._next_log = None  # before it is in use: one that is in use must not be begun again
        if wal is None:
            wal = self._new_log()
        # Numbers are given in the order of the writes, whenever the thread comes to its flush.
        table_number = store.versions.new_file_number()
        with store.lock:
            view = store.open_view()
            view.memtable.table_number = table_number
            old = self._wal
            self._wal = wal
            store.view = View(store.new_memtable(wal.number), view.memtable, view.version)
            self._background.schedule()
        self._mark = self._write_buffer_size // 8
        old.close()

    def _make_log_ahead(self) -> None:
        """Make the next log now, unless it is there or there is no room.

        The flush that is waited for may free what it takes; where it does not,
        :meth:`_begin_log` says so.
        """
        if self._next_log is None:
            try:
                file, number = self._create_log()
            except OSError:
                return
            self._next_log = self._name_durably(file, number)

    def _new_log(self) -> WriteAheadLog:
        """An empty log, its name durable.

        What the last commit has freed may be what it takes, and is waited for.
        """
        background = self._background
        try:
            try:
                file, number = self._create_log()
            except OSError:
                if not background.has_obsolete_files:
                    raise
                background.wait_for_flush()
                file, number = self._create_log()
        except OSError as error:
            raise_typed(error)
        return self._name_durably(file, number)

    def _create_log(self) -> tuple[WritableFile, int]:
        """An empty file and its number, a new one: an attempt that fails may leave its name."""
        store = self._store
        number = store.versions.new_file_number()
        return store.directory.create(log_name(number)), number

    def _name_durably(self, file: WritableFile, number: int) -> WriteAheadLog:
        try:
            self._store.directory.sync()
        except OSError as error:
            file.close()
            raise_typed(error)
        return WriteAheadLog(file, number)

    def _drop_log(self, wal: WriteAheadLog) -> None:
        """Remove an empty log after all; one that stays does no harm."""
        wal.close()
        try:
            self._store.directory.remove(log_name(wal.number))
        except OSError:
            pass

    def _empty_log(self) -> None:
        """See that memtables and log hold nothing: all that was written lies in tables.

        A sequence that is in no log may only follow then.  Recovery, which takes a gap in the
        sequences for lost writes, asks for none before the first batch of the oldest log.
        """
        self._background.wait_for_flush()
        if self._store.open_view().memtable.empty and self._wal.end == 0:
            self._sync_log()  # fails if the log may hold what nobody was told of
            return
        self._begin_log()
        self._background.wait_for_flush()
