"""The jobs of background work: flushes, compactions, and publications of ingested tables or of a
version without the tables of a deleted range.

``Background`` decides which job is next and calls one at a time, in its thread and without any
lock.  A job computes, in a worker process if there is one (``pool.py``), then commits a
version edit and shows the new version under the store's lock.  Files that the commit has made
obsolete are removed later, since the job itself holds the version that its commit replaced.

Where a caller's thread runs the job, an interrupt may end it at any step.  Before its commit has
begun, that leaves at most files that no version names; a commit that has begun is completed
by the next call (:meth:`BackgroundJobs.finish_interrupted`).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from lsmkv.engine.db.compact.compaction import CompactionJob
from lsmkv.engine.db.compact.flush import write_memtable
from lsmkv.engine.db.compact.full_disk import raise_if_no_room
from lsmkv.engine.db.compact.obsolete import PendingOutputs, remove_obsolete_files
from lsmkv.engine.db.compact.output_filters import options_for_compaction, options_for_flush
from lsmkv.engine.db.compact.picking import (
    Compaction,
    compaction_of_range,
    pick_compaction,
    rewrite_of_level,
)
from lsmkv.engine.db.compact.pool import WorkerPool
from lsmkv.engine.db.tree.memtable import MemTable
from lsmkv.engine.db.tree.store import RangeDrop, Store, View
from lsmkv.engine.db.tree.version import total_size
from lsmkv.engine.format.version_edit import FileMetaData, VersionEdit
from lsmkv.engine.util.threads import pause

_LONGEST_LAST_FLUSH = 1.0  # seconds, once the store closes
_WAKE_UP = 0.0002
"""After the commit of a flush that a writer waits for, the thread sleeps this many seconds, so that
the writer can make the next memtable immutable before files are removed: removing a 4 MB log takes
1.5 ms, during which a worker can compute the next flush."""


class Stopped(Exception):
    """The running job is given up: the store closes."""


class Cancelled(Exception):
    """The running range compaction is given up: its caller was interrupted."""


class RangeCompaction:
    """A manual compaction of one level, done in steps; its progress, or its error."""

    def __init__(
        self, level: int, begin: bytes | None, end: bytes | None, rewrite_before: int = 0
    ) -> None:
        self.level = level
        self.rewrite_before = rewrite_before
        """If not 0, tables with lower numbers are rewritten and stay on their level; ``begin`` is
        then the key after which the next step begins."""
        self.begin = begin
        self.end = end
        self.moved = 0
        """Bytes of the level's tables that went down so far; part of a table, while it is read."""
        self.done = False
        self.error: Exception | None = None
        """The error that ended it: a full disk."""
        self.cancelled = False
        """Set by the waiting caller, which does nothing else: the thread removes the range
        compaction."""

    @staticmethod
    def slot() -> RangeCompaction:
        """Return one of no level, which compacts nothing: once it is done, it keeps other range
        compactions from starting, until it is cancelled."""
        return RangeCompaction(-1, None, None)


class Publication:
    """Tables that an ingest has made, to become visible atomically, or tables that are to be
    dropped; and the outcome.

    ``withdrawn``: the commit was never begun and never will be.  ``committed``: the tables are
    visible, or gone.  If neither holds once the commit has ``begun``, it is under way or has
    failed; after a failure the content of the MANIFEST is unknown, so the tables must stay where
    they are.
    """

    def __init__(
        self, files: list[FileMetaData], sequence: int, drop: RangeDrop | None = None
    ) -> None:
        self.files = files
        self.sequence = sequence
        """The sequence of every entry in them, or that of the drop."""
        self.drop = drop
        """The tables to drop.  It is not committed if a compaction has touched, or now touches,
        one of the tables that it expects."""
        self.log_number = 0
        """The number of the empty log in which writes continue; 0 for a drop."""
        self.begun = False
        self.done = False
        self.committed = False

    @property
    def withdrawn(self) -> bool:
        """True if nothing was done and nothing will be: the caller owns the files again."""
        return self.done and not self.begun


class _Installation:
    """A version edit on its way into MANIFEST and view."""

    def __init__(self, edit: VersionEdit, flushed: bool, publication: Publication | None) -> None:
        self.edit = edit
        self.flushed = flushed
        """True if its table replaces the immutable memtable."""
        self.publication = publication
        """The ingest whose tables it names."""


class BackgroundJobs:
    """The jobs of one store.  One thread at a time calls the methods."""

    def __init__(self, store: Store, pending_outputs: PendingOutputs, workers: WorkerPool) -> None:
        self._store = store
        self._pending_outputs = pending_outputs
        self._workers = workers
        self.compaction: Compaction | None = None
        """The compaction that is being carried out."""
        self.compaction_started = 0.0
        """Start of the running compaction (``time.monotonic``)."""
        self.bytes_merged = 0
        """Bytes of its inputs that were read so far."""
        self._shrinkage = 0.5
        """Bytes of the last flushed table for each byte of its memtable's usage."""
        self.has_obsolete_files = False
        """True if files may still exist that the last commit has made obsolete."""
        self._committing: _Installation | None = None
        self._tried = 0
        """The number of the table that the last flush has begun."""

    # Flush

    def flush(self) -> None:
        """Make tables of the immutable memtable, one as a rule, and commit them.

        Raises :class:`~lsmkv.engine.db.compact.full_disk.NoRoom` on a full disk: the memtable
        stays.
        """
        store = self._store
        started = time.monotonic()
        with store.lock.nested, store.lock.guard:
            view = store.open_view()
            memtable = view.immutable
            assert memtable is not None
            oldest_pinned = store.pinned.oldest(store.versions.last_sequence)
            pinned = store.pinned.all()
            log_number = view.memtable.log_number
        edit = VersionEdit()
        edit.log_number = log_number
        edit.prev_log_number = 0
        if memtable.table_number == self._tried:
            # Another attempt is a new file, newer than every table that there is.
            memtable.table_number = store.versions.new_file_number()
        self._tried = memtable.table_number
        try:
            files = self._write_tables(memtable, oldest_pinned, pinned)
        except OSError as error:
            self._raise_if_no_room(error, "the writes in memory become a table")
            raise
        for file in files:
            level = self._level_for(file)
            edit.add_file(level, file)
            now = time.monotonic()
            self._count_flush(level, file, now - started)
            started = now
        if files:
            self._shrinkage = total_size(files) / max(memtable.usage, 1)
        if self._commit(edit, flushed=True):
            pause(_WAKE_UP)

    def _write_tables(
        self, memtable: MemTable, oldest_pinned: int, pinned: list[int]
    ) -> list[FileMetaData]:
        """The tables that hold the memtable, durable; an empty list if there is nothing in it."""
        store = self._store
        deadline = 0.0
        given = memtable.table_number

        def new_number() -> int:
            nonlocal given
            number, given = given, 0
            return number or store.versions.new_file_number()

        def poll() -> None:
            nonlocal deadline
            self.remove_obsolete()
            if store.closing:
                # A flush that is nearly done saves the next open some work.
                deadline = deadline or time.monotonic() + _LONGEST_LAST_FLUSH
                if time.monotonic() > deadline:
                    raise Stopped

        size = int(memtable.usage * self._shrinkage)
        options = options_for_flush(store.options, store.versions.current, size)
        files = self._workers.flush(memtable, options, pinned, poll, new_number)
        if files is not None:
            return files
        self.remove_obsolete()
        return write_memtable(
            memtable, store.directory, new_number, options, store.order, oldest_pinned
        )

    def _level_for(self, file: FileMetaData) -> int:
        """The level for a table that is newer than all others."""
        store = self._store
        smallest, largest = file.smallest[:-8], file.largest[:-8]
        level = store.versions.current.level_for_flush(smallest, largest, store.options)
        compaction = self.compaction
        if compaction is not None and compaction.spans(smallest, largest):
            # Its outputs, which no version names yet, may cover a gap between its inputs.
            level = min(level, compaction.output_level - 1)
        return level

    def _count_flush(self, level: int, file: FileMetaData, seconds: float) -> None:
        store = self._store
        store.counters.count_flush(level, seconds, file.size)
        store.info_log.write(f"Level-{level} table #{file.number}: {file.size} bytes flushed")

    # Ingest

    def publish(self, publication: Publication) -> None:
        """Commit the tables of an ingest, or a drop, unless that is done."""
        if publication.committed:
            return
        store = self._store
        edit = VersionEdit()
        edit.last_sequence = publication.sequence
        drop = publication.drop
        if drop is not None:
            version = store.versions.current
            running = [] if self.compaction is None else self.compaction.edit([]).deleted_files
            if not drop.expected <= version.numbers or any(
                number in drop.expected for _, number in running
            ):
                return
            for level, files in enumerate(version.levels):
                for file in files:
                    if file.number in drop.tables:
                        edit.delete_file(level, file.number)
            self._commit(edit, publication=publication)
            store.info_log.write(f"Dropped {len(drop.tables)} tables as write {drop.sequence}")
            return
        # The previous log is no longer named, so that a MANIFEST that has lost this edit, and with
        # it the tables, is found damaged: it names a log that is gone.
        edit.log_number = publication.log_number
        edit.prev_log_number = 0
        for file in publication.files:
            edit.add_file(self._level_for(file), file)
        self._commit(edit, publication=publication)
        for level, file in edit.new_files:
            store.info_log.write(
                f"Level-{level} table #{file.number}: {file.size} bytes ingested as write"
                f" {publication.sequence}"
            )

    # Compaction

    def compact(self, run_urgent: Callable[[], None]) -> None:
        """Carry out the compaction that the current version needs most, if it needs one.

        Raises :class:`~lsmkv.engine.db.compact.full_disk.NoRoom` on a full disk: the version stays.
        ``run_urgent`` is called every few blocks and does what cannot wait for the compaction's
        end; it raises :class:`Stopped` once the store closes.
        """
        versions = self._store.versions
        pointers = versions.compact_pointers
        compaction = pick_compaction(versions.current, pointers, self._store.options)
        if compaction is not None:
            self._carry_out(compaction, run_urgent, None)

    def compact_range(self, whole: RangeCompaction, run_urgent: Callable[[], None]) -> bytes | None:
        """Carry out one step of a range compaction; returns the user key at which the next begins.

        Returns None after the last step.  Raises :class:`Cancelled` once ``whole`` is cancelled,
        and :class:`~lsmkv.engine.db.compact.full_disk.NoRoom` on a full disk.
        """
        version, options = self._store.versions.current, self._store.options
        level, begin = whole.level, whole.begin
        picked: tuple[Compaction, bytes | None] | None
        if whole.rewrite_before > 0:
            picked = rewrite_of_level(version, level, begin, whole.rewrite_before, options)
        else:
            picked = compaction_of_range(version, level, begin, whole.end, options)
        if picked is None:
            return None
        compaction, rest = picked
        self._carry_out(compaction, run_urgent, whole)
        return rest

    def _carry_out(
        self, compaction: Compaction, run_urgent: Callable[[], None], whole: RangeCompaction | None
    ) -> None:
        """Carry out a compaction; as a step of ``whole``, report to it, and rewrite every table."""
        store = self._store
        counters = store.counters
        if whole is None:
            if compaction.by_seeks:
                counters.seek_compactions += 1
            if compaction.is_trivial_move(store.options):
                self._move(compaction)
                return
        started = time.monotonic()
        with store.lock.nested, store.lock.guard:
            oldest_pinned = store.pinned.oldest(store.versions.last_sequence)
        moved_before = 0 if whole is None else whole.moved
        moving = total_size(compaction.inputs)

        def on_progress(bytes_read: int) -> None:
            self.bytes_merged = bytes_read
            run_urgent()
            if whole is not None:
                if whole.cancelled:
                    raise Cancelled
                part = moving * bytes_read // compaction.input_size
                self._report_moved(whole, moved_before + part)

        self.compaction_started = started
        self.bytes_merged = 0
        self.compaction = compaction
        try:
            outputs = self._write_outputs(compaction, oldest_pinned, on_progress)
        except BaseException as error:
            self._pending_outputs.outputs.clear()
            if isinstance(error, OSError):
                self._raise_if_no_room(error, "tables are merged")
            raise
        finally:
            self.compaction = None
        written = total_size(outputs)
        self._count_compaction(compaction, written, time.monotonic() - started)
        if whole is not None:
            self._report_moved(whole, moved_before + moving)
        self._commit(compaction.edit(outputs))
        self._pending_outputs.outputs.clear()

    def _move(self, compaction: Compaction) -> None:
        """Commit a trivial move: the table goes to the next level as it is."""
        store = self._store
        store.counters.trivial_moves += 1
        file = compaction.inputs[0]
        # A new object, whose allowance of seeks starts afresh on the new level.
        moved = FileMetaData(file.number, file.size, file.smallest, file.largest)
        store.info_log.write(f"Moved #{moved.number} to level-{compaction.level + 1}")
        self._commit(compaction.edit([moved]))

    def _write_outputs(
        self, compaction: Compaction, oldest_pinned: int, on_progress: Callable[[int], None]
    ) -> list[FileMetaData]:
        """The compaction's outputs, durable.  ``on_progress`` gets the bytes read so far."""
        new_number = self._new_output_number
        store = self._store
        options = options_for_compaction(store.options, compaction)
        files = self._workers.compact(compaction, options, oldest_pinned, on_progress, new_number)
        if files is not None:
            return files
        job = CompactionJob(
            compaction, store.directory, store.tables, options, new_number, oldest_pinned
        )
        return job.run(lambda: on_progress(job.reads.bytes_read))

    def _count_compaction(self, compaction: Compaction, written: int, seconds: float) -> None:
        store = self._store
        level, output_level = compaction.level, compaction.output_level
        store.counters.count_compaction(output_level, seconds, compaction.input_size, written)
        if compaction.is_rewrite:
            message = f"Rewrote {len(compaction.inputs)}@{level} files => {written} bytes"
        else:
            message = (
                f"Compacted {len(compaction.inputs)}@{level} +"
                f" {len(compaction.next_inputs)}@{output_level} files => {written} bytes"
            )
        store.info_log.write(message)

    def _report_moved(self, whole: RangeCompaction, moved: int) -> None:
        """Tell the range compaction's caller how many bytes have gone down."""
        if moved > whole.moved:
            store = self._store
            with store.lock.nested, store.lock.guard:
                whole.moved = moved
                store.changed.notify_all()

    def _new_output_number(self) -> int:
        number = self._store.versions.new_file_number()
        self._pending_outputs.outputs.add(number)
        return number

    def _raise_if_no_room(self, error: OSError, work: str) -> None:
        """Raise NoRoom if ``error`` is a full disk's, unless the MANIFEST's: that one is final.

        A compaction runs flushes and publications in between, so their errors can occur in it.
        """
        if self._store.versions.failure is None:
            raise_if_no_room(error, self._store.directory, work)

    # Commit

    def _commit(
        self, edit: VersionEdit, flushed: bool = False, publication: Publication | None = None
    ) -> bool:
        """Log the edit, and show the new version.  Returns whether any thread waited for it."""
        self._committing = _Installation(edit, flushed, publication)
        return self._finish_commit(self._committing)

    def finish_interrupted(self) -> None:
        """Complete the commit that an interrupt has left, if there is one, and forget the
        job that it was for."""
        if self._committing is not None:
            self._finish_commit(self._committing)
        self.compaction = None
        self._pending_outputs.outputs.clear()

    def _finish_commit(self, commit: _Installation) -> bool:
        """Carry out a commit; every step may have been done already, by a call that was
        interrupted."""
        store = self._store
        edit = commit.edit
        version = store.versions.log_and_apply(edit)
        if store.sharing is not None:
            store.sharing.installed(version.numbers)
        with store.lock.nested, store.lock.guard:
            view = store.open_view()
            immutable = view.immutable
            if commit.flushed and view.version is not version:
                immutable = None
            publication = commit.publication
            drop = None if publication is None else publication.drop
            if publication is not None and drop is not None and view.version is not version:
                self._note_drop(drop, view, publication.sequence)
            if edit.last_sequence is not None and edit.last_sequence > store.versions.last_sequence:
                if store.sharing is not None:
                    store.sharing.publish(edit.last_sequence)
                store.versions.last_sequence = edit.last_sequence  # a publication's
            self.has_obsolete_files = True
            if publication is not None:
                if drop is None:
                    view.memtable.log_number = publication.log_number
                else:
                    view.memtable.applying = None
                publication.committed = True
                store.forget_ranges()
            store.view = View(view.memtable, immutable, version)
            store.forget_drops()
            store.installed_at = store.versions.last_sequence
            self._committing = None
            awaited = store.changed.awaited
            store.changed.notify_all()
        # A reader that still holds the old version reads it at a sequence, which uses no row cache.
        view.version.row_cache.clear()
        return awaited

    def _note_drop(self, drop: RangeDrop, view: View, sequence: int) -> None:
        """Apply the operation of a drop, which the log has, and keep its view for readers from
        before.  Caller holds the lock and the writers' lock."""
        store = self._store
        pinned = store.pinned
        newest = pinned.newest()
        view.memtable.add(sequence, [(drop.key, None)], newest, pinned.in_order())
        drop.sequence = sequence
        drop.view = view
        if drop not in store.drops:
            store.drops.append(drop)

    def remove_obsolete(self) -> None:
        """Remove what the last commit has made obsolete, and wake the threads that wait for it."""
        if not self.has_obsolete_files:
            return
        remove_obsolete_files(self._store, self._pending_outputs)
        with self._store.lock.nested, self._store.lock.guard:
            self.has_obsolete_files = False
            self._store.changed.notify_all()
