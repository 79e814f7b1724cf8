"""The batches that were committed after a sequence, read from the logs: :class:`Batches`.

A log has one record for each commit, with the sequence of its first operation, and sequences leave
no gap.  So what follows a sequence is found by reading on in the log that has it, then in the next
one.  Nothing is read beyond the last write that has happened, so that no other process, and no
thread, shows a write before this does or after.  Logs that are needed are kept
(``tree/log_holds.py``), except by a writer that does not know its readers, that of a store which is
open for reading only.

(Source of the idea: RocksDB, ``GetUpdatesSince``.)
"""

from __future__ import annotations

import os
import time
from types import TracebackType
from typing import Final, NamedTuple, NoReturn, Protocol, Self

from mypy_extensions import mypyc_attr

from lsmkv.engine.db.tree.log_holds import LogHold
from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.errors import ClosedError, CorruptionError, ForkedError, SequenceTooOldError
from lsmkv.engine.format.batch import Operation, WriteBatch, decode_batch, last_sequence
from lsmkv.engine.format.filenames import FileType, log_name, parse_filename
from lsmkv.engine.format.log import LogRecord
from lsmkv.engine.format.log_tail import LogTail
from lsmkv.engine.former_paths import keep_paths
from lsmkv.engine.util.copying import refuse_copy
from lsmkv.engine.util.introspection import described

_CHUNK: Final = 1 << 18
"""Bytes of records that are held at a time; a larger record is held alone."""
_ATTEMPTS: Final = 100


@described
class CommittedBatch(NamedTuple):
    """A batch as it was committed.  Plain data.

    Batches of writers that waited for each other are committed together, and are one.

    >>> import lsmkv
    >>> with lsmkv.DB(":memory:") as db:
    ...     with db.write_batch() as batch:
    ...         batch.put(b"k", b"v")
    ...         batch.delete(b"old")
    ...     (committed,) = db.batches(0)
    >>> committed
    CommittedBatch(sequence=1, operations=[(b'k', b'v'), (b'old', None)])
    >>> committed.last_sequence, committed.to_batch()
    (2, <lsmkv.WriteBatch of 2 operations>)
    """

    sequence: int
    """The sequence of the first operation; each one has the next."""
    operations: list[Operation]
    """In their order: a key with its value, or with None where it was deleted."""

    @property
    def last_sequence(self) -> int:
        """The sequence of the last operation: what to follow from, after this batch."""
        return self.sequence + len(self.operations) - 1

    def to_batch(self) -> WriteBatch:
        """A new batch with the same operations, to be written to another store."""
        batch = WriteBatch()
        batch.operations.extend(self.operations)
        return batch


class BatchSource(Protocol):
    """The part of a handle that its iterators over batches use."""

    path: str

    def _follow_logs(self, hold: LogHold) -> tuple[Store, int]:
        """Keep the logs that ``hold`` needs; returns the store, and the sequence of the last write
        that has happened."""
        ...

    def wait_for_change(self, sequence: int, timeout: float | None = None) -> int:
        """Wait for a write."""
        ...


@described
@mypyc_attr(native_class=False)  # weak references and subclasses, as for DB
class Batches:
    """The batches that were committed after a sequence, in their order: ``db.batches(since)``.

    It ends where nothing more was written within its ``timeout``.  That end is not final: a later
    ``next``, or loop, goes on with what was written since.  :attr:`sequence` is where it stands.

    The store keeps the logs that the iterator still needs, in whatever process it is: they take up
    space until it goes on, is closed, or is collected.  One thread at a time may use it.

    Raises :class:`~lsmkv.SequenceTooOldError` where a write is in no log any more,
    :class:`~lsmkv.CorruptionError`, :class:`~lsmkv.ClosedError` once the store or the iterator is
    closed, and :class:`~lsmkv.ForkedError` in a forked child.  Cost: the bytes of the log, read
    once, in pieces of 256 KiB or one batch; the first step reads the log that has ``since`` from
    its beginning.

    >>> import lsmkv
    >>> with lsmkv.DB(":memory:") as db, lsmkv.DB(":memory:") as copy:
    ...     batches = db.batches(db.sequence)
    ...     db.put(b"a", b"1")
    ...     db.delete(b"a")
    ...     for batch in batches:
    ...         copy.write(batch.to_batch())
    ...     db.put(b"b", b"2")
    ...     for batch in batches:
    ...         copy.write(batch.to_batch())
    ...     dict(copy), batches.sequence
    ({b'b': b'2'}, 3)
    """

    _hold: LogHold | None = None

    def __init__(self, source: BatchSource, since: int | None, timeout: float | None = 0.0) -> None:
        self._source = source
        self._timeout = timeout
        self._pid = os.getpid()
        self._records: list[LogRecord] = []  # that were read, the next one last
        self._path = ""  # of the log that they are from
        self._hold = LogHold()
        source._follow_logs(self._hold)
        last = source._follow_logs(self._hold)[1]  # of a moment since which all logs are kept
        self._expected = last + 1 if since is None else since + 1
        """The sequence of the next operation."""
        if not 0 < self._expected <= last + 1:
            self.close()
            reason = f"no write has sequence {since}: the last one is {last}"
            raise ValueError(f"{source.path}: {reason}")
        try:
            self._find_log()
        except BaseException:
            self.close()
            raise

    @property
    def sequence(self) -> int:
        """The sequence of the last operation that was returned, or that it began after."""
        return self._expected - 1

    @property
    def closed(self) -> bool:
        """True if the iterator was closed.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db, db.batches(0) as batches:
        ...     batches.closed
        False
        >>> batches.closed
        True
        """
        return self._hold is None

    def close(self) -> None:
        """Release the logs.  A second call has no effect.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     batches = db.batches(0)
        ...     batches.close()
        ...     next(batches)
        Traceback (most recent call last):
        lsmkv.errors.ClosedError: the iterator is closed
        """
        hold, self._hold = self._hold, None
        self._records = []
        if hold is not None:
            hold.end()

    def __iter__(self) -> Self:
        """Itself."""
        return self

    def __next__(self) -> CommittedBatch:
        """The next batch."""
        until = -1.0
        while True:
            if self._records and self._open_hold().tail is not None:  # else the store is closed
                return self._take()
            store, last = self._follow()
            if self._expected > last + 1:  # a power cut has taken what was returned
                raise self._too_old()
            if self._expected <= last:
                self._read_on(store, last)
                continue
            left = self._timeout
            if left is not None:
                now = time.monotonic()
                if until < 0.0:
                    until = now + left
                left = until - now
                if left <= 0:
                    raise StopIteration
            self._source.wait_for_change(self._expected - 1, left)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        closed = " (closed)" if self.closed else ""
        return f"<lsmkv.Batches of {self._source.path!r} after write {self.sequence}{closed}>"

    def __reduce__(self) -> NoReturn:
        refuse_copy("an iterator over batches", "it reads a store: begin another one")

    def _open_hold(self) -> LogHold:
        hold = self._hold
        if hold is None:
            raise ClosedError("the iterator is closed")
        if os.getpid() != self._pid:
            raise ForkedError("the iterator was begun before a fork")
        return hold

    def _follow(self) -> tuple[Store, int]:
        return self._source._follow_logs(self._open_hold())

    def _take(self) -> CommittedBatch:
        """The next batch, out of what was read."""
        record = self._records[-1]
        try:
            sequence, operations = decode_batch(record.payload)
        except CorruptionError as error:
            raise error.located(self._path, record.offset) from None
        if sequence > self._expected or not operations:  # empty: tables were dropped
            raise self._too_old()
        self._records.pop()
        self._expected = sequence + len(operations)
        return CommittedBatch(sequence, operations)

    def _read_on(self, store: Store, last: int) -> None:
        """Read the next batches: those up to ``last`` have happened, and there are some."""
        hold = self._open_hold()
        read = -1  # the log that was read from its beginning to its end
        damage: CorruptionError | None = None  # at which that ended
        is_fresh = False
        try:
            while True:
                tail = hold.tail
                if tail is None:
                    number = hold.number
                    self._find_log()
                    tail = hold.tail
                    if number == read == hold.number and damage is not None:
                        raise damage
                    if tail is None or number == read == hold.number:
                        raise self._too_old()
                    is_fresh = True
                while True:
                    records = tail.read(last, _CHUNK)
                    if not records:
                        break
                    found = [one for one in records if self._is_needed(one)]
                    if found:
                        found.reverse()
                        self._path = tail.file.path
                        self._records = found
                        return
                # A later log has it.  If the log is unclear, another read may show it: its writer
                # is active.
                if is_fresh or not tail.unclear:
                    read = hold.number
                    damage = _damage_at(tail) if tail.unread() else None
                hold.tail = None
        except OSError as error:
            store.raise_failure(error)

    def _is_needed(self, record: LogRecord) -> bool:
        last = last_sequence(record.payload)
        return last >= self._expected or (
            last + 1 == self._expected and _first_sequence(record) == self._expected
        )

    def _find_log(self) -> None:
        """Go to the newest log that begins at the expected sequence or before.

        If no log has a batch yet, that is for later.
        """
        for _ in range(_ATTEMPTS):
            store, last = self._follow()
            try:
                if self._go_to_log(store, last):
                    return
            except FileNotFoundError:
                continue  # it was obsolete, and has just been removed
            except OSError as error:
                store.raise_failure(error)
            break
        raise self._too_old()

    def _go_to_log(self, store: Store, last: int) -> bool:
        """:meth:`_find_log`; returns False if there is no such log."""
        directory = store.directory
        hold = self._open_hold()
        numbers: list[int] = []
        for name in directory.names():
            parsed = parse_filename(name)
            if parsed is not None and parsed[1] is FileType.LOG and parsed[0] >= hold.number:
                numbers.append(parsed[0])
        numbers.sort(reverse=True)
        for number in numbers:
            file = directory.open(log_name(number))
            first = LogTail(file).read(last, 1)
            if first:
                record = first[0]
                if len(record.payload) and _first_sequence(record) <= self._expected:
                    hold.move(number, LogTail(file))
                    return True
        if self._expected <= last:
            return False
        hold.move(numbers[-1] if numbers else hold.number, None)
        return True

    def _too_old(self) -> SequenceTooOldError:
        return SequenceTooOldError(self._source.path, self._expected - 1)


def _damage_at(tail: LogTail) -> CorruptionError:
    return CorruptionError("the log is damaged", tail.file.path, int(tail.end))


def _first_sequence(record: LogRecord) -> int:
    sequence: int = int.from_bytes(record.payload[:8], "little")
    return sequence


keep_paths(Batches, CommittedBatch)
