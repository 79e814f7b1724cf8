"""The scheduler of background work: which job is next, who runs it, and how callers wait for it.

A job goes through these states::

           schedule            _next_job            commit              remove_obsolete
    due -------------> waiting ----------> running ---------> committed ----------------> done
                          ^                   |
                          |                   |-- no space: put off, until full_disk.py resumes it
                          |                   |                 |
                          +-------------------(-----------------+
                                              |-- Stopped (the store closes), Cancelled: given up
                                              +-- any other error: kept, and nothing runs any more

The jobs, the most urgent first.  The first two do not wait for a compaction's end either: it runs
them every few blocks.

================  ============================================  ==================================
job               is due                                        who waits for it
================  ============================================  ==================================
flush             when a memtable becomes immutable             ``wait_for_flush``, and writers
publication       when an ingest has made its tables, or a      ``publish``, ``withdraw``
                  range deletion is to drop some
worker start      when a memtable fills fast: ``expect_flush``  no caller
range compaction  when ``compact_level`` is called              ``compact_level``
compaction        when a level is too large, or read too often  writers, at 12 tables on level 0
================  ============================================  ==================================

One thread runs the jobs, and lives only while there are some.  Readers and writers call
:meth:`Background.schedule` under the store's lock whenever they have made work; the thread picks
the most urgent job under that lock, and runs it (``background_jobs.py``) without any lock.  A
thread that waits for a change takes a ticket under the lock, and waits without it.

With ``background="inline"`` there is no thread.  A write runs at most one job, after it has
released its locks, and a call that waits for a change runs jobs until it has come
(:meth:`Background.run_next_job`).  An interrupt may come at any step of a job; ``BackgroundJobs``
says what is left.  In either case every flush of an open store is :meth:`Background._flush`.
"""

from __future__ import annotations

from collections.abc import Callable

from lsmkv.engine.db.compact.background_jobs import (
    BackgroundJobs,
    Cancelled,
    Publication,
    RangeCompaction,
    Stopped,
)
from lsmkv.engine.db.compact.background_thread import BackgroundThread, typed_error
from lsmkv.engine.db.compact.full_disk import FullDisk, NoRoom, WorkOnDisk
from lsmkv.engine.db.compact.obsolete import PendingOutputs
from lsmkv.engine.db.compact.picking import compaction_is_due
from lsmkv.engine.db.compact.pool import WorkerPool
from lsmkv.engine.db.tree.store import Store, View
from lsmkv.engine.env.process import get_ready
from lsmkv.engine.errors import ClosedError, IOError
from lsmkv.engine.options import L0_SLOWDOWN_WRITES_TRIGGER
from lsmkv.engine.util.ticket import InlineTicket, Ticket


class Background:
    """Schedules the jobs, and the removal of obsolete files.

    The first error ends the work for good: it is kept, raised by every later write, and the files
    are left as they are until the store is reopened.  A full disk puts off what makes tables
    (``full_disk.py``).
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._running_thread: BackgroundThread | None = None
        self.owner: Callable[[], object] | None = None
        """Returns what must not be finalized while work runs: the store's handle, if it lives."""
        self.pending_outputs = PendingOutputs()
        """Tables that must not be removed, though no version names them yet."""
        self.workers = WorkerPool(store, self.pending_outputs)
        self.jobs = BackgroundJobs(store, self.pending_outputs, self.workers)
        self._flush_expected = False
        self._range_compactions: list[RangeCompaction] = []
        self._publications: list[Publication] = []
        self.reserved: set[int] = set()
        """The sequences that running ingests have reserved."""
        self.error: BaseException | None = None
        self.threadless = store.options.background == "inline"
        """True if jobs run in the calls that make or await them, and no thread is started."""
        if self.threadless:
            store.lock.watched = True
        self._disk = FullDisk(store)

    # For writers and readers

    def schedule(self) -> None:
        """Start the thread if there is work and it is not running.  Caller holds the lock."""
        try:
            self._start_thread()
        except RuntimeError as error:  # no more threads, or the interpreter is going down
            self._keep_error(error)

    def expect_flush(self, size: int, seconds: float) -> None:
        """Prepare for the flush of a memtable of which a quarter is full, at a pace that fills its
        ``size`` bytes in ``seconds``.  Caller does not hold the lock."""
        if not self.workers.should_start_ahead(size, seconds):
            return
        get_ready()  # 2 ms here, and four times that in a thread next to one that writes batches
        with self._store.lock.nested, self._store.lock.guard:
            self._flush_expected = True
            try:
                self._start_thread()
            except RuntimeError:
                pass  # if the flush itself cannot get a thread either, that is the error

    def raise_error(self) -> None:
        """Raise the error that ended the background work, if there is one."""
        if self.error is not None:
            raise self.error.with_traceback(None)

    def work_before_room(self, view: View) -> WorkOnDisk:
        """Return the work that a writer waits for if it finds this view with a full memtable."""
        return self._disk.compactions if view.immutable is None else self._disk.flushes

    @property
    def no_room(self) -> IOError | None:
        """The full-disk error for which flushes or compactions wait; None if they do not wait."""
        return self._disk.error

    @property
    def has_obsolete_files(self) -> bool:
        """True if files may still exist that the last commit has made obsolete;
        :meth:`wait_for_flush` also waits for their removal."""
        return self.jobs.has_obsolete_files

    def wait_for_flush(self) -> None:
        """Wait until there is neither an immutable memtable nor a file that its flush has made
        obsolete.  Caller does not hold the lock.

        KeyboardInterrupt ends the wait.  If the disk is full, one attempt is made after the call,
        and its error raised.
        """
        store = self._store
        flushes = self._disk.flushes
        since = flushes.attempts
        while True:
            with store.lock.nested, store.lock.guard:
                if store.open_view().immutable is None and not self.has_obsolete_files:
                    return
                flushes.resume_for(since)
                ticket = self.ticket()
            ticket.acquire()

    def compact_level(
        self,
        level: int,
        begin: bytes | None,
        end: bytes | None,
        advance: Callable[[int], None] | None = None,
        rewrite_before: int = 0,
    ) -> None:
        """Move the range of user keys from ``level`` down by one, and wait for it.  Or rewrite the
        level's tables with numbers below ``rewrite_before``, if that is not 0: the level is then at
        least 1, and there are no bounds.

        Meanwhile ``advance`` is called, in the caller's thread and without any lock, with the
        number of bytes of the level's tables that have gone down.  If it raises, or an exception
        such as KeyboardInterrupt ends the wait, the work is cancelled at its next step.  On a full
        disk it ends with the error; steps before that one stay done.
        """
        compaction = RangeCompaction(level, begin, end, rewrite_before)
        self.run_range_compaction(compaction, advance)

    def run_range_compaction(
        self, compaction: RangeCompaction, advance: Callable[[int], None] | None = None
    ) -> None:
        """:meth:`compact_level`, for a range compaction that the caller has made.

        A slot returns when no compaction is running.  None is started until
        :meth:`release_slot`, but where level 0 has so many files that writes are delayed.
        """
        store = self._store
        try:
            with store.lock.nested, store.lock.guard:
                store.open_view()
                self._range_compactions.append(compaction)
            while True:
                with store.lock.nested, store.lock.guard:
                    if compaction.error is not None:
                        raise compaction.error
                    if compaction.done and not self.has_obsolete_files:
                        return
                    moved = compaction.moved
                    # Taken before ``advance`` is called, so that no change is missed.
                    ticket = self.ticket()
                if advance is not None:
                    advance(moved)
                ticket.acquire()
        except BaseException:
            compaction.cancelled = True  # one assignment, which no second interrupt can split
            raise

    def release_slot(self, slot: RangeCompaction) -> None:
        """Let compactions start again."""
        slot.cancelled = True
        store = self._store
        with store.lock.nested, store.lock.guard:
            self.schedule()

    def publish(self, publication: Publication) -> None:
        """Make tables visible, atomically; wait for it, and for the removal of the log before.

        Caller holds the writers' lock, and the memtables are empty, except for a drop.  After an
        exception the outcome is open until :meth:`withdraw` has returned.
        """
        store = self._store
        with store.lock.nested, store.lock.guard:
            store.open_view()
            self._publications.append(publication)
        while True:
            with store.lock.nested, store.lock.guard:
                if publication.begun:  # its end comes, whatever else ends
                    self.raise_error()
                    if publication.done and not (publication.files and self.has_obsolete_files):
                        return
                    ticket = self._change()
                else:
                    ticket = self.ticket()
            ticket.acquire()

    def withdraw(self, publication: Publication) -> None:
        """Take a publication back if its commit was not begun, else wait for its end."""
        store = self._store
        while not publication.done:
            with store.lock.nested, store.lock.guard:
                ticket = None
                if publication.begun and not publication.done:
                    ticket = self._change()
                else:
                    if publication in self._publications:
                        self._publications.remove(publication)
                    publication.done = True
            if ticket is not None:
                ticket.acquire()

    def ticket(self) -> Ticket:
        """Return a ticket for the next change by background work, to be acquired without the lock.
        If no thread does the work, acquiring the ticket does it.

        Caller holds the lock.  Raises the error that ended the work, or :class:`ClosedError`, if no
        change will come.
        """
        self.raise_error()
        if self._store.closing:
            raise ClosedError("the database is closed")
        self.schedule()
        self.raise_error()
        return self._change()

    def _change(self) -> Ticket:
        """A ticket for the next change.  Caller holds the lock."""
        change = self._store.changed.ticket()
        if self.threadless and self._running_thread is None:
            return InlineTicket(self.run_next_job, change)
        return change

    @property
    def busy(self) -> bool:
        """True while the thread is running."""
        return self._running_thread is not None

    def wait_until_idle(self) -> None:
        """Wait until the thread, if it runs, has nothing left to do."""
        thread = self._running_thread
        if thread is not None:
            thread.wait()

    def go_inline(self) -> None:
        """Start no more threads, since the interpreter is ending: a call that waits for work does
        it itself.  Work in progress stops at its next step, and this call waits for that."""
        store = self._store
        with store.lock.nested, store.lock.guard:
            store.lock.watched = True
            self.threadless = True
        self.workers.disable()
        self.stop()

    @property
    def is_due(self) -> bool:
        """True if there may be a job without a waiting caller: a hint, taken without the lock."""
        view = self._store.view
        return view is not None and (
            view.immutable is not None or compaction_is_due(view.version, self._store.options)
        )

    def run_next_job(self) -> bool:
        """Run the most urgent job, and remove the files that it makes obsolete, in the calling
        thread.  Returns False, and does nothing, if another call runs a job, or the thread does.

        An error is kept, as the thread's is.  Anything that is not an ``Exception``, such as a
        KeyboardInterrupt, is raised; a later call starts the job over.
        """
        store = self._store
        work = store.lock.work
        if work.taken() or self._running_thread is not None:
            return False  # at the exit of the interpreter the thread may still run
        with store.lock.nested, work.guard:
            try:
                self._run_inline()
            except Exception as error:
                self._end_by(error)
        with store.lock.nested, store.lock.guard:
            store.changed.notify_all()  # calls that have found this one at work
        return True

    def _run_inline(self) -> None:
        store = self._store
        if self.error is not None:
            with store.lock.nested, store.lock.guard:
                # One that was interrupted is given up: the MANIFEST may name its tables.
                if self._publications and self._publications[0].begun:
                    self._end_publication(self._publications[0])
            return
        self.jobs.finish_interrupted()
        if store.closing:
            if self._publications and self._publications[0].begun:
                self._publish()  # the close waits for what an interrupt has left
            return
        with store.lock.nested, store.lock.guard:
            job = self._next_job()
        if job is not None:
            job()
        self.jobs.remove_obsolete()

    def stop(self) -> None:
        """End the work at its next step, and wait for that.  ``store.closing`` is set already."""
        self.wait_until_idle()
        if self.threadless and not self._store.lock.work.mine():
            with self._store.lock.work.guard:
                pass  # the call that does background work has ended
        self.workers.kill()

    def abandon(self) -> None:
        """Abandon the work in a forked child: it belongs to the parent."""
        self.workers.abandon()

    # The thread

    def _start_thread(self) -> None:
        if self.threadless or self._running_thread is not None or self._next_job() is None:
            return
        owner = None if self.owner is None else self.owner()
        thread = BackgroundThread(owner, self._store.lock.threads)
        try:
            # It first waits for the lock that the caller holds, and ends if it is not recorded.
            self._running_thread = thread
            thread.start(self._run_jobs)
        except BaseException:
            self._running_thread = None
            raise

    def _next_job(self) -> Callable[[], None] | None:
        """The most urgent job.  Caller holds the lock."""
        store = self._store
        view = store.view
        if view is None or store.closing or self.error is not None:
            return None
        urgent = self._urgent_job()
        if urgent is not None:
            return urgent
        if self._flush_expected:
            return self._prepare_flush
        if self._range_compactions:
            first = self._range_compactions[0]
            if not first.done or first.cancelled:
                return self._compact_range
            if len(view.version.levels[0]) < L0_SLOWDOWN_WRITES_TRIGGER:
                return None
        if compaction_is_due(view.version, store.options) and not self._disk.compactions.put_off:
            return self._compact
        return None

    def _urgent_job(self) -> Callable[[], None] | None:
        """The next job that does not wait for the end of a compaction.  No lock is needed."""
        view = self._store.view
        if view is not None and view.immutable is not None and not self._disk.flushes.put_off:
            return self._flush
        return self._publish if self._publications else None

    def _run_jobs(self, thread: BackgroundThread) -> None:
        store = self._store
        try:
            while True:
                if store.lock.due:
                    store.lock.leave()
                with store.lock.nested, store.lock.guard:
                    if self._running_thread is not thread:
                        return  # its start was interrupted, and given up
                    job = self._next_job()
                    if self.has_obsolete_files and job != self._flush:
                        job = self.jobs.remove_obsolete  # a flush does so while its worker computes
                    if self.threadless or job is None:
                        self._running_thread = None
                        store.changed.notify_all()
                        return
                job()
        except BaseException as error:
            self._end_by(error)

    def _end_by(self, error: BaseException) -> None:
        """End the thread, and keep the error, whatever it is, unless the work was stopped."""
        store = self._store
        with store.lock.nested, store.lock.guard:
            self._running_thread = None
            if isinstance(error, Stopped):
                store.changed.notify_all()
                return
            self._keep_error(error)
        store.info_log.warn(f"Background work ended by an error: {self.error}")

    def _keep_error(self, error: BaseException) -> None:
        """Keep the error that ends the work, and wake waiting threads.  Caller holds the lock."""
        self.error = typed_error(error)
        self._store.changed.notify_all()

    # The jobs

    def _flush(self) -> None:
        self._flush_expected = False
        if self._disk.attempt(self._disk.flushes, self.jobs.flush):
            self._disk.resume(self._disk.compactions)  # the log is gone, and what it took up

    def _prepare_flush(self) -> None:
        self._flush_expected = False
        self.workers.start_ahead()

    def _publish(self) -> None:
        """Commit the first publication."""
        store = self._store
        with store.lock.nested, store.lock.guard:
            if not self._publications:
                return
            publication = self._publications[0]
            publication.begun = True
        try:
            self.jobs.publish(publication)
        except BaseException as error:
            if isinstance(error, Exception) or not self.threadless:
                with store.lock.nested, store.lock.guard:
                    # Before the ingest's thread wakes up and lets a writer continue.
                    self._keep_error(error)
                    self._end_publication(publication)
            raise
        with store.lock.nested, store.lock.guard:
            self._end_publication(publication)

    def _end_publication(self, publication: Publication) -> None:
        """Mark a publication as done, and wake the threads that wait.  Caller holds the lock."""
        publication.done = True
        self._publications.remove(publication)
        self._store.changed.notify_all()

    def _compact(self) -> None:
        disk = self._disk
        try:
            disk.attempt(disk.compactions, lambda: self.jobs.compact(self._run_urgent))
        finally:
            disk.resume(disk.flushes)  # its outputs may have taken space, or its inputs freed it

    def _compact_range(self) -> None:
        """Carry out one step of the first range compaction."""
        store = self._store
        with store.lock.nested, store.lock.guard:
            whole = self._range_compactions[0]
            if whole.cancelled:
                del self._range_compactions[0]
                return
            if whole.level < 0:
                whole.done = True
                store.changed.notify_all()
                return
        rest: bytes | None = None
        error: IOError | None = None
        try:
            rest = self.jobs.compact_range(whole, self._run_urgent)
        except Cancelled:
            return
        except NoRoom as failure:
            error = failure.error
        with store.lock.nested, store.lock.guard:
            self._disk.flushes.resume()
            if rest is not None:
                whole.begin = rest
            else:
                whole.error = error
                whole.done = error is None
                del self._range_compactions[0]  # only this thread removes one, the first
                store.changed.notify_all()

    def _run_urgent(self) -> None:
        """Run a job that need not wait for the compaction that calls this every few blocks."""
        lock = self._store.lock
        if self._store.closing or (self.threadless and self._running_thread is not None):
            raise Stopped
        if lock.due:
            lock.leave()
        job = self._urgent_job()
        if job is not None:
            job()
            self.jobs.remove_obsolete()
