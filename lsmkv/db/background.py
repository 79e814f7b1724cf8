"""Who flushes and compacts, and when: one thread, which lives only while there is work."""

from __future__ import annotations

import _thread
import time
from collections.abc import Callable

from lsmkv.db.compaction import (
    Compaction,
    CompactionJob,
    compaction_of_range,
    pick_compaction,
)
from lsmkv.db.flush import write_memtable
from lsmkv.db.memtable import MemTable
from lsmkv.db.obsolete import PendingOutputs, remove_obsolete_files
from lsmkv.db.publication import Publication
from lsmkv.db.requests import Cancelled, RangeCompaction
from lsmkv.db.runner import Runner
from lsmkv.db.store import Store, View
from lsmkv.db.version import total_size
from lsmkv.db.workers.pool import WorkerPool
from lsmkv.env.process import get_ready
from lsmkv.env.ticket import Ticket
from lsmkv.errors import ClosedError, Error, io_error
from lsmkv.format.version_edit import FileMetaData, VersionEdit

_LONGEST_LAST_FLUSH = 1.0  # seconds, once the store closes
_MOMENT = 0.0002
"""Seconds for a writer to wake up, and let the next memtable become immutable: removing a log of
4 MB takes 1.5 ms, and a worker can be at the next flush meanwhile."""


class _Stopped(Exception):
    """The job at hand is not wanted any more: the store closes."""


def _nobody() -> object:
    return None


class Background:
    """Runs flushes and compactions, commits them, and removes the files that they free.

    An error ends the work for good: it is kept, raised by every later write, and the files are
    left as they are until the store is reopened.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._runner: Runner | None = None
        self.owner: Callable[[], object] = _nobody
        """Returns what must not be finalized while work runs: the store's handle, if it lives."""
        self._requests: list[RangeCompaction] = []
        self._publications: list[Publication] = []
        self._flush_expected = False
        self._compaction: Compaction | None = None  # that is being carried out
        self.has_obsolete_files = False
        """Whether files may still be there that the last commit has freed; :meth:`wait_for_flush`
        waits for their end, too."""
        self.pending_outputs = PendingOutputs()
        """Tables that are to stay, though no version names them yet."""
        self.workers = WorkerPool(store, self.pending_outputs)
        self.reserved: set[int] = set()
        """The sequences that ingests under way have taken from the future."""
        self.error: BaseException | None = None

    # For writers and readers

    def schedule(self) -> None:
        """Start the thread if there is work and it is not running.  Caller holds the lock.

        Not by :class:`threading.Thread`, whose ``start`` waits: Ctrl-C in there leaves a thread
        running of which nobody knows.  Here the thread waits for the lock that is held, and goes
        away if it is not the one that is known by then.
        """
        try:
            self._start_thread()
        except RuntimeError as error:  # no more threads, or the interpreter is going down
            self._keep_error(error)

    def _start_thread(self) -> None:
        """If there is work and it is not running.  Caller holds the lock."""
        if self._runner is not None or self._next_job() is None:
            return
        runner = Runner(self.owner())
        try:
            self._runner = runner
            _thread.start_new_thread(self._run, (runner,))
        except BaseException:
            self._runner = None
            raise

    def expect_flush(self, size: int, seconds: float) -> None:
        """A quarter of a memtable that will have ``size`` bytes is full, at a pace that fills it in
        so many seconds: what its flush needs may start up.

        Caller does not hold the lock.
        """
        if not self.workers.expects_flush(size, seconds):
            return
        get_ready()  # 2 ms here, and four times that in a thread beside one that writes batches
        with self._store.lock:
            self._flush_expected = True
            try:
                self._start_thread()
            except RuntimeError:
                pass  # the flush itself, if that cannot be done either, is what fails

    def raise_error(self) -> None:
        """Raise what ended the background work, if anything did."""
        if self.error is not None:
            raise self.error.with_traceback(None)

    def wait_for_flush(self) -> None:
        """Until no immutable memtable is left, nor a file that its flush freed.

        Ctrl-C ends the wait.  Caller does not hold the lock.
        """
        store = self._store
        while True:
            with store.lock:
                if store.open_view().immutable is None and not self.has_obsolete_files:
                    return
                ticket = self.ticket()
            ticket.acquire()

    def compact_level(
        self,
        level: int,
        begin: bytes | None,
        end: bytes | None,
        advance: Callable[[int], None] | None = None,
    ) -> None:
        """Move the range of user keys from ``level`` down by one, and wait for it.

        Meanwhile ``advance`` is told, in the caller's thread and without any lock, how many bytes
        of the level's tables went down.  An exception out of it, or one that ends the wait
        (Ctrl-C), cancels the work at its next step.
        """
        request = RangeCompaction(level, begin, end)
        store = self._store
        try:
            with store.lock:
                store.open_view()
                self._requests.append(request)
            while True:
                with store.lock:
                    if request.done and not self.has_obsolete_files:
                        return
                    moved = request.moved
                    # Taken before ``advance`` is called, so that no change goes by meanwhile.
                    ticket = self.ticket()
                if advance is not None:
                    advance(moved)
                ticket.acquire()
        except BaseException:
            # One assignment, so that another Ctrl-C cannot come in between.
            request.cancelled = True
            raise

    def publish(self, publication: Publication) -> None:
        """Make tables visible, all at once; wait for it, and for the end of the log before.

        Caller holds the writers' lock, and no memtable holds anything.  After an exception the
        outcome is not settled before :meth:`withdraw` has returned.
        """
        store = self._store
        with store.lock:
            store.open_view()
            self._publications.append(publication)
        while True:
            with store.lock:
                if publication.begun:  # it is brought to its end, whatever else ends meanwhile
                    self.raise_error()
                    if publication.done and not self.has_obsolete_files:
                        return
                    ticket = store.changed.ticket()
                else:
                    ticket = self.ticket()
            ticket.acquire()

    def withdraw(self, publication: Publication) -> None:
        """Take a publication back if nothing was done about it yet, else wait for its end."""
        store = self._store
        while not publication.done:
            with store.lock:
                if publication.begun:
                    ticket = None if publication.done else store.changed.ticket()
                else:
                    ticket = None
                    if publication in self._publications:
                        self._publications.remove(publication)
                    publication.done = True
            if ticket is not None:
                ticket.acquire()

    def ticket(self) -> Ticket:
        """What to acquire, the lock let go, to wait for a change that background work will bring.

        Caller holds the lock.  Raises what ended the work, or :class:`ClosedError`, rather than let
        anyone wait in vain.
        """
        self.raise_error()
        if self._store.closing:
            raise ClosedError("the database is closed")
        self.schedule()
        self.raise_error()
        return self._store.changed.ticket()

    @property
    def busy(self) -> bool:
        """Whether the thread is running."""
        return self._runner is not None

    def wait_until_idle(self) -> None:
        """Until the thread, if it runs, has nothing left to do."""
        runner = self._runner
        if runner is not None:
            runner.wait()

    def stop(self) -> None:
        """End the work at its next step, and wait for that.  ``store.closing`` is set already."""
        self.wait_until_idle()
        self.workers.end()

    def abandon(self) -> None:
        """In a forked child: the work is the parent's."""
        self.workers.abandon()

    # The thread

    def _next_job(self) -> Callable[[], None] | None:
        """What is most urgent.  Caller holds the lock."""
        store = self._store
        view = store.view
        if view is None or store.closing or self.error is not None:
            return None
        if view.immutable is not None:
            return self._flush
        if self._flush_expected:
            return self._prepare
        if self._publications:
            return self._publish
        if self._requests:
            return self._compact_range
        version = view.version
        if version.compaction_score >= 1 or (
            version.file_to_compact is not None and store.options.seek_compaction
        ):
            return self._compact
        return None

    def _run(self, runner: Runner) -> None:
        runner.begin()
        try:
            self._work(runner)
        finally:
            runner.end()

    def _work(self, runner: Runner) -> None:
        store = self._store
        try:
            while True:
                with store.lock:
                    if self._runner is not runner:
                        return  # the start was interrupted, and given up
                    job = self._next_job()
                    if job is None and not self.has_obsolete_files:
                        self._runner = None
                        store.changed.notify_all()
                        return
                # Not inside the job before: it held the version that its commit replaced.  A flush
                # that follows comes first, and sees to it.
                if self.has_obsolete_files and job != self._flush:
                    self._remove_obsolete()
                elif job is not None:
                    job()
        except _Stopped:
            with store.lock:
                self._runner = None
                store.changed.notify_all()
        except BaseException as error:
            # Whatever it is, it is kept and raised by every later write: nothing is swallowed.
            with store.lock:
                self._runner = None
                self._keep_error(error)
            store.info_log.warn(f"Background work ended by an error: {self.error}")

    def _keep_error(self, error: BaseException) -> None:
        """Caller holds the lock."""
        if isinstance(error, OSError):
            error = io_error(error)
        elif not isinstance(error, (Error, MemoryError)):
            wrapped = Error(f"background work failed: {type(error).__name__}: {error}")
            wrapped.__cause__ = error
            error = wrapped
        self.error = error
        self._store.changed.notify_all()

    def _between(self) -> None:
        """Called by a running compaction every few blocks: writers cannot wait for its end."""
        store = self._store
        if store.closing:
            raise _Stopped
        view = store.view
        if view is not None and view.immutable is not None:
            self._flush()
            self._remove_obsolete()
        if self._publications:
            self._publish()
            self._remove_obsolete()

    # Flush

    def _prepare(self) -> None:
        self._flush_expected = False
        self.workers.prepare()

    def _flush(self) -> None:
        store = self._store
        self._flush_expected = False
        started = time.monotonic()
        with store.lock:
            view = store.open_view()
            memtable = view.immutable
            assert memtable is not None
            oldest_seen = store.live.oldest(store.versions.last_sequence)
            live = store.live.all()
            log_number = view.memtable.log_number
        edit = VersionEdit()
        edit.log_number = log_number
        edit.prev_log_number = 0
        for file in self._tables_of(memtable, oldest_seen, live):
            level = self._level_for(file)
            edit.add_file(level, file)
            self._count_flush(level, file, time.monotonic() - started)
        if self._commit(edit, flushed=True):
            time.sleep(_MOMENT)

    def _tables_of(
        self, memtable: MemTable, oldest_seen: int, live: list[int]
    ) -> list[FileMetaData]:
        """The table that holds the memtable, durable; none if nothing was to be written."""
        store = self._store
        deadline = 0.0

        def between() -> None:
            nonlocal deadline
            self._remove_obsolete()
            if store.closing:
                # A flush that is nearly done saves the next open some work.
                deadline = deadline or time.monotonic() + _LONGEST_LAST_FLUSH
                if time.monotonic() > deadline:
                    raise _Stopped

        files = self.workers.flush(memtable, live, between)
        if files is not None:
            return files
        self._remove_obsolete()
        file = write_memtable(
            memtable,
            store.directory,
            memtable.table_number,
            store.options,
            store.order,
            oldest_seen,
        )
        return [] if file is None else [file]

    def _level_for(self, file: FileMetaData) -> int:
        """The level for a table that is newer than all others."""
        store = self._store
        smallest, largest = file.smallest[:-8], file.largest[:-8]
        level = store.versions.current.level_for_flush(smallest, largest, store.options)
        compaction = self._compaction
        if compaction is not None and compaction.spans(smallest, largest):
            # Its outputs, not listed yet, may cover a gap that none of its inputs does.
            level = min(level, compaction.level)
        return level

    def _count_flush(self, level: int, file: FileMetaData, seconds: float) -> None:
        store = self._store
        store.counters.flushes += 1
        store.counters.flush_bytes += file.size
        store.counters.compactions_into[level].add(seconds, 0, file.size)
        store.info_log.write(f"Level-{level} table #{file.number}: {file.size} bytes flushed")

    # Ingest

    def _publish(self) -> None:
        """Commit the first publication."""
        store = self._store
        with store.lock:
            if not self._publications:
                return
            publication = self._publications.pop(0)
            publication.begun = True
        edit = VersionEdit()
        # The log before goes, so that a MANIFEST without this edit cannot pass for whole.
        edit.log_number = publication.log_number
        edit.prev_log_number = 0
        edit.last_sequence = publication.sequence
        try:
            for file in publication.files:
                edit.add_file(self._level_for(file), file)
            self._commit(edit)
            with store.lock:
                store.open_view().memtable.log_number = publication.log_number
            publication.committed = True
        except BaseException as error:
            with store.lock:
                # Before the one who waits lets any writer go on.
                self._keep_error(error)
            raise
        finally:
            with store.lock:
                publication.done = True
                store.changed.notify_all()
        for level, file in edit.new_files:
            store.info_log.write(
                f"Level-{level} table #{file.number}: {file.size} bytes ingested as write"
                f" {publication.sequence}"
            )

    # Compaction

    def _compact(self) -> None:
        store = self._store
        versions = store.versions
        compaction = pick_compaction(versions.current, versions.compact_pointers, store.options)
        if compaction is not None:
            self._carry_out(compaction, None)

    def _compact_range(self) -> None:
        """One step of the first request."""
        store = self._store
        with store.lock:
            if not self._requests:
                return
            request = self._requests[0]
            if request.cancelled:
                del self._requests[0]
                return
        picked = compaction_of_range(
            store.versions.current, request.level, request.begin, request.end, store.options
        )
        proceed: bytes | None = None
        if picked is not None:
            compaction, proceed = picked
            try:
                self._carry_out(compaction, request)
            except Cancelled:
                return
        with store.lock:
            if proceed is not None:
                request.begin = proceed
            else:
                request.done = True
                del self._requests[0]  # this thread alone takes requests away, from the front
                store.changed.notify_all()

    def _carry_out(self, compaction: Compaction, request: RangeCompaction | None) -> None:
        store = self._store
        level = compaction.level
        if compaction.by_seeks and request is None:
            store.counters.seek_compactions += 1
        if request is None and compaction.is_trivial_move(store.options):
            store.counters.trivial_moves += 1
            file = compaction.inputs[0]
            # Anew: on its new level it may be read in vain as often as any other.
            moved = FileMetaData(file.number, file.size, file.smallest, file.largest)
            store.info_log.write(f"Moved #{moved.number} to level-{level + 1}")
            self._commit(compaction.edit([moved]))
            return
        started = time.monotonic()
        with store.lock:
            oldest_seen = store.live.oldest(store.versions.last_sequence)
        moved_before = 0 if request is None else request.moved
        moving = total_size(compaction.inputs)

        def between(bytes_read: int) -> None:
            self._between()
            if request is not None:
                if request.cancelled:
                    raise Cancelled
                part = moving * bytes_read // compaction.input_size
                self._count_moved(request, moved_before + part)

        self._compaction = compaction
        try:
            outputs = self._merge(compaction, oldest_seen, between)
        except BaseException:
            self.pending_outputs.outputs.clear()
            raise
        finally:
            self._compaction = None
        written = sum(file.size for file in outputs)
        counters = store.counters
        counters.compactions += 1
        counters.compaction_bytes_read += compaction.input_size
        counters.compaction_bytes_written += written
        counters.compactions_into[level + 1].add(
            time.monotonic() - started, compaction.input_size, written
        )
        store.info_log.write(
            f"Compacted {len(compaction.inputs)}@{level} + "
            f"{len(compaction.next_inputs)}@{level + 1} files => {written} bytes"
        )
        if request is not None:
            self._count_moved(request, moved_before + moving)
        self._commit(compaction.edit(outputs))
        self.pending_outputs.outputs.clear()

    def _merge(
        self, compaction: Compaction, oldest_seen: int, between: Callable[[int], None]
    ) -> list[FileMetaData]:
        """The compaction's outputs, durable.  ``between`` is told the bytes read so far."""
        files = self.workers.merge(compaction, oldest_seen, between, self._new_output_number)
        if files is not None:
            return files
        store = self._store
        job = CompactionJob(
            compaction,
            store.directory,
            store.tables,
            store.options,
            self._new_output_number,
            oldest_seen,
        )
        return job.run(lambda: between(job.reads.bytes_read))

    def _count_moved(self, request: RangeCompaction, moved: int) -> None:
        """So much has gone down: let the one who waits for the request know."""
        if moved > request.moved:
            store = self._store
            with store.lock:
                request.moved = moved
                store.changed.notify_all()

    def _new_output_number(self) -> int:
        number = self._store.versions.new_file_number()
        self.pending_outputs.outputs.add(number)
        return number

    # Commit

    def _commit(self, edit: VersionEdit, flushed: bool = False) -> bool:
        """Log the edit, and show the new version.  Whether anybody waited for it."""
        store = self._store
        version = store.versions.log_and_apply(edit)
        with store.lock:
            view = store.open_view()
            immutable = None if flushed else view.immutable
            if edit.last_sequence is not None and edit.last_sequence > store.versions.last_sequence:
                store.versions.last_sequence = edit.last_sequence  # of what was ingested
            store.view = View(view.memtable, immutable, version)
            self.has_obsolete_files = True
            awaited = store.changed.awaited
            store.changed.notify_all()
        # Whoever still holds the version reads it at a sequence, and asks for no row.
        view.version.row_cache.clear()
        return awaited

    def _remove_obsolete(self) -> None:
        """Remove what the last commit freed; then those who waited for its end go on."""
        if not self.has_obsolete_files:
            return
        remove_obsolete_files(self._store, self.pending_outputs)
        with self._store.lock:
            self.has_obsolete_files = False
            self._store.changed.notify_all()
