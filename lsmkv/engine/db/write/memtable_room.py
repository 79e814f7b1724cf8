"""Room in the memtable: what a leader waits for, or does, before it commits a batch.

A memtable that is full becomes immutable, and a flush makes it a table.  Writes go on in a new one,
and a new log, unless the flush of the one before has not ended or level 0 has too many files: then
they *stall*.

==================================  ===============================================================
the memtable                        then
==================================  ===============================================================
is an eighth full                   the time is noted
is a quarter full                   background work learns how fast it fills
is seven eighths full               the disk begins to write the log
is full, no other is flushed        it becomes immutable: :meth:`MemtableRoom.switch`
is full, the one before is flushed  the write stalls until that is a table
is full, level 0 has 12 files       the write stalls until a compaction has taken some
==================================  ===============================================================

(Source: LevelDB, ``DBImpl::MakeRoomForWrite``.)
"""

from __future__ import annotations

import time

from lsmkv.engine.db.compact.background import Background
from lsmkv.engine.db.tree.store import Store, View
from lsmkv.engine.db.write.log_rotation import LogRotation
from lsmkv.engine.errors import ClosedError
from lsmkv.engine.options import L0_STOP_WRITES_TRIGGER


class WorkFirst(Exception):
    """A write has to do background work before there is room for it, and must release its lock."""


class MemtableRoom:
    """Makes room in the memtable of one store.  Callers hold the writers' lock, unless a method
    says otherwise."""

    def __init__(self, store: Store, background: Background, logs: LogRotation) -> None:
        self._store = store
        self._background = background
        self._logs = logs
        self.size: int = store.options.write_buffer_size
        """The usage at which a memtable is full."""
        self._mark = self.size // 8
        """Up to this usage a memtable needs no attention: the next one of the table above."""
        self._eighth_full = 0.0
        """The time at which the memtable was an eighth full."""
        self._stalled_since = 0.0
        """Start of the current write stall (``time.monotonic``); 0.0 if there is none."""

    @property
    def stalled_seconds(self) -> float:
        """For how long writers have been waiting; 0.0 if none waits.  Takes no lock."""
        since = self._stalled_since
        return time.monotonic() - since if since > 0 else 0.0

    def is_there(self) -> bool:
        """Return True if a batch can be written now without any wait."""
        view = self._store.view
        return (
            view is not None
            and self._background.error is None
            and view.delay <= 0.0
            and view.memtable.usage <= self._mark
        )

    def make(self) -> None:
        """Return when the memtable may grow; it may be a new one.

        Raises what background work has raised, :class:`~lsmkv.errors.ClosedError`, or
        :class:`WorkFirst` where the caller is to do that work: see :meth:`work_for_it`.
        """
        store = self._store
        background = self._background
        while True:
            if store.closing:
                raise ClosedError("the database is closed")
            if background.error is not None:
                background.raise_error()
            view = store.view or store.open_view()
            usage = view.memtable.usage
            if usage <= self._mark:
                return
            if self._mark < self.size:
                self._pass_mark(usage)
            elif self._must_stall(view):
                background.work_before_room(view).refuse_if_hopeless()
                if background.threadless:
                    raise WorkFirst
                # No more records go into this log, and it is to be durable before the next log
                # begins: the disk may as well work while this writer waits for the flush.
                self._logs.sync()
                self._logs.create_ahead()
                self.stall(view)
            else:
                self.switch()

    def work_for_it(self) -> None:
        """Do background work, or wait for the call that does some, until the memtable may be
        exchanged.  Caller holds no lock."""
        store = self._store
        view = store.view
        while (
            view is not None
            and not store.closing
            and self._background.error is None
            and self._must_stall(view)
        ):
            self.stall(view)
            view = store.view

    def stall(self, view: View) -> None:
        """Wait until background work has changed the view.  The caller may hold the writers' lock.

        If the disk is full, one attempt is made after the call, and its error raised.
        """
        store = self._store
        started = time.monotonic()
        work = self._background.work_before_room(view)
        since = work.attempts
        self._stalled_since = started
        try:
            while store.view is view:
                with store.lock.nested, store.lock.guard:
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

    def switch(self) -> None:
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
            view = store.open_view()
            view.memtable.table_number = table_number
            old = logs.current
            logs.current = log
            store.view = View(store.new_memtable(log.number), view.memtable, view.version)
            self._background.schedule()
        self._mark = self.size // 8
        old.close()

    def empty_log(self) -> None:
        """See that memtables and log are empty, every write being in a table.

        Only then may a sequence follow that is in no log.  Recovery takes a gap in the sequences
        for lost writes, except before the first batch of the oldest log.
        """
        self._background.wait_for_flush()
        if self._store.open_view().memtable.empty and self._logs.current.end == 0:
            self._logs.sync()  # fails if the log may hold a batch that was not acknowledged
            return
        self.switch()
        self._background.wait_for_flush()

    def _must_stall(self, view: View) -> bool:
        """Return True if a full memtable of this view cannot be replaced yet."""
        return view.immutable is not None or len(view.version.levels[0]) >= L0_STOP_WRITES_TRIGGER

    def _pass_mark(self, usage: int) -> None:
        """Do what the memtable's usage asks for at this mark, and set the next one.

        The time between an eighth and a quarter shows how fast the memtable fills; background work
        gets this rate (:meth:`Background.expect_flush`).  At seven eighths the disk starts to write
        the log, which has to be durable before the next log begins.
        """
        full = self.size
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
            self._mark = nearly  # a single batch says nothing about the rate
        else:
            self._mark = quarter
            self._eighth_full = time.monotonic()
