"""Commit: a batch on its way into the log and the memtable, and how an interrupt is settled.

``Writer`` calls it, under the writers' lock.  The caller makes space in the memtable first, and
wakes the queue of writers after (``writer.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter

from lsmkv.engine.db.compact.background import Background
from lsmkv.engine.db.compact.background_jobs import Publication
from lsmkv.engine.db.tree.store import RangeDrop, Store
from lsmkv.engine.db.write.log_rotation import LogRotation
from lsmkv.engine.db.write.wal import WriteAheadLog
from lsmkv.engine.db.write.write_queue import PendingWrite
from lsmkv.engine.errors import Error
from lsmkv.engine.format.batch import Operation, append_batch
from lsmkv.engine.format.keys import MAX_SEQUENCE

if TYPE_CHECKING:
    from mypy_extensions import i64

_SETTLE_ATTEMPTS = 100
_LARGE: Final = 1 << 20  # bytes of a record, beyond which its buffer is not kept


class Commit:
    """The commit in progress: a batch, a publication, or nothing.  A writer has one such object.

    An exception such as KeyboardInterrupt may be raised between any two steps of a commit.  So
    :attr:`batch` or :attr:`publication` is set before the first step and cleared after the last,
    and :meth:`settle` completes what was begun or takes it back.  The interrupted writer calls it,
    and so does the next leader if that call was also interrupted; before that, nothing else is
    committed.  Log, memtable and sequences therefore never disagree.

    ===========  =============================  ===================================================
    begun        found                          settled
    ===========  =============================  ===================================================
    batch        the log does not hold it       back: the log is cut back to its last good record
    batch        the log holds it               forward: the log is synced if the batch asks for
                                                it, and the batch is applied, once more perhaps
    publication  the thread has not begun it    back: it is withdrawn, and its empty log removed
    publication  the MANIFEST names its tables  forward: writes go on in its log
    publication  its commit failed              neither: its log stays, since the MANIFEST may name
                                                it, and every later write raises
    ===========  =============================  ===================================================

    Fast path: one ``Commit`` object serves all writes, so no write has to make one.
    """

    def __init__(self, store: Store, background: Background, logs: LogRotation) -> None:
        self._store = store
        self._background = background
        self._logs = logs
        self._record = BytesWriter()  # where a batch is encoded for the log
        self.batch: PendingWrite | None = None
        """The batch, or group, between log and memtable."""
        self._first_sequence = 0  # of the batch
        self._log_end: i64 = 0  # where the log ended before the batch
        self.publication: Publication | None = None
        """The publication that was handed to the background thread."""
        self._publication_log: WriteAheadLog | None = None  # in which writes continue after it

    def write(self, batch: PendingWrite) -> None:
        """Append the batch to the log and apply it to the memtable.

        An error of the log, or one that the batch's condition raises, becomes the batch's.
        """
        condition = batch.condition
        if condition is not None:
            try:
                condition()
            except Exception as error:
                batch.finish(error)
                return
        operations = batch.operations
        store = self._store
        sequence = store.versions.last_sequence + 1
        if sequence + len(operations) > MAX_SEQUENCE:
            batch.finish(Error("sequence numbers exhausted: a store has 2^56 of them"))
            return
        log = self._logs.current
        self._first_sequence = sequence
        self._log_end = log.end
        self.batch = batch
        try:
            record = None if store.sharing is None else store.sharing.begin(operations, sequence)
            log.append(self._encoded(sequence, operations) if record is None else record)
        except Error as error:
            if store.sharing is not None:
                store.sharing.withdraw()
            self._fail(batch, error)
            return
        except BaseException:
            self.settle_despite_interrupts()
            raise
        try:
            store.counters.log_writes += 1
            if batch.sync:
                self._logs.sync()
        except Error as error:
            log.hide_from(self._log_end)
            self._fail(batch, error)
            return
        except BaseException:
            self.settle_despite_interrupts()
            raise
        try:
            self._apply(batch)
        except BaseException:
            self.settle_despite_interrupts()
            raise

    def _apply(self, batch: PendingWrite) -> None:
        """Make the batch visible, as a whole."""
        store = self._store
        view = store.view or store.open_view()
        counters = store.counters
        first = self._first_sequence
        operations = batch.operations
        count = len(operations)
        lock = store.lock
        with lock.guard:
            if store.sharing is not None:
                store.sharing.publish(first + count - 1)
            if store.empty_ranges.active:
                store.empty_ranges.note(operations)
            memtable = view.memtable
            newest = store.pinned.newest()
            user_bytes = memtable.add(first, operations, newest, store.pinned.in_order())
            store.versions.last_sequence = first + count - 1
            memtable.applying = None
            if batch.members is None:
                batch.done = True  # as finish() does; nearly all batches are alone
            else:
                batch.finish()
        self.batch = None
        counters.writes += 1 if batch.members is None else len(batch.members)
        counters.operations += count
        counters.log_bytes += self._logs.current.end - self._log_end
        counters.user_bytes += user_bytes

    # Beyond the tour: publications, errors and interrupts

    def _encoded(self, sequence: int, operations: list[Operation]) -> bytes:
        """The record of a batch."""
        writer = self._record
        writer.truncate(0)
        append_batch(writer, sequence, operations)
        record = writer.getvalue()
        if len(record) > _LARGE:
            self._record = BytesWriter()
        return record

    def publish(self, publication: Publication, log: WriteAheadLog) -> None:
        """Hand a publication to the background thread, and wait for its end.

        ``log`` is an empty log, in which writes continue.  The caller settles afterwards.
        """
        publication.log_number = log.number
        self._publication_log = log
        self.publication = publication
        self._background.publish(publication)

    def drop(self, drop: RangeDrop) -> bool:
        """Log the operation of a drop, synced, and have the drop published, which also applies it.

        Returns whether that was done; if not, also after an interrupt, the operation is applied as
        that of any other batch.
        """
        store = self._store
        batch = PendingWrite([(drop.key, None)], True, None)
        sequence = store.versions.last_sequence + 1
        publication = Publication([], sequence, drop)
        self._first_sequence = sequence
        self._log_end = self._logs.current.end
        self.batch = batch
        try:
            self._logs.current.append(self._encoded(sequence, batch.operations))
            self._logs.sync()
            self.publication = publication
            self._background.publish(publication)
        except BaseException:
            self.settle_despite_interrupts()
            raise
        self.settle()
        return publication.committed

    def settle(self) -> None:
        """Complete an interrupted commit; nothing happens if there is none."""
        publication = self.publication
        if publication is not None:
            if publication.drop is not None:
                self._background.withdraw(publication)
                if publication.committed:
                    self.batch = None  # which was applied with it
                self.publication = None
            else:
                self._settle_publication(publication)
        if self.batch is not None:
            self._settle_batch(self.batch)

    def settle_despite_interrupts(self) -> None:
        """:meth:`settle`, once more after each interrupt; the last of very many is raised."""
        for _ in range(_SETTLE_ATTEMPTS):
            try:
                self.settle()
                return
            except BaseException:
                continue
        self.settle()

    def _fail(self, batch: PendingWrite, error: Error) -> None:
        """Give up the batch, which was not acknowledged."""
        self.batch = None
        batch.finish(error)

    def _settle_batch(self, batch: PendingWrite) -> None:
        log = self._logs.current
        if log.end <= self._log_end:
            log.cut_back()
            if self._store.sharing is not None:
                self._store.sharing.withdraw()
            self.batch = None
            return
        if batch.sync:
            # The interrupt may also have come before the sync that the leader owes its followers.
            try:
                self._logs.sync()
            except Error as error:
                log.hide_from(self._log_end)
                self._fail(batch, error)
                return
        self._apply(batch)

    def _settle_publication(self, publication: Publication) -> None:
        log = self._publication_log
        assert log is not None
        self._background.withdraw(publication)
        if publication.withdrawn:
            self._logs.remove(log)
        elif not publication.committed:
            log.close()
        elif self._logs.current is not log:
            old = self._logs.current
            self._logs.current = log
            old.close()
        self.publication = None
