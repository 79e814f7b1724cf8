"""The state of an open store: what its reader, writer and background work share.

``open`` makes a :class:`Store` and hands it to them.  ``Store.lock`` guards the view, the sequences
and the memtables' order.  It is held for a few steps only, never across a read or write of a file.
Left out: reference counts of versions.  Python counts references already, and a version set knows
each version by a weak one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

from lsmkv.engine.counters import Counters
from lsmkv.engine.db.tree.empty_ranges import EmptyRanges
from lsmkv.engine.db.tree.info_log import InfoLog
from lsmkv.engine.db.tree.listener import CallListener
from lsmkv.engine.db.tree.log_holds import LogHolds
from lsmkv.engine.db.tree.memtable import MemTable
from lsmkv.engine.db.tree.pinned import Pin, PinnedSequences
from lsmkv.engine.db.tree.read_samples import ReadSamples
from lsmkv.engine.db.tree.sharing import Sharing
from lsmkv.engine.db.tree.store_lock import StoreLock
from lsmkv.engine.db.tree.table_cache import TableCache
from lsmkv.engine.db.tree.version import Version
from lsmkv.engine.db.tree.version_set import VersionSet
from lsmkv.engine.env.base import Directory
from lsmkv.engine.errors import ClosedError, ForkedError, raise_typed
from lsmkv.engine.format.key_order import KeyOrder, Position
from lsmkv.engine.format.keys import MAX_SEQUENCE, InternalKeyComparator
from lsmkv.engine.options import L0_SLOWDOWN_WRITES_TRIGGER, L0_STOP_WRITES_TRIGGER, Options
from lsmkv.engine.table.reader import Table
from lsmkv.engine.util.ticket import Ticket

if TYPE_CHECKING:
    from mypy_extensions import i64

_DELAY: Final = 10e-9
"""Seconds a byte by which writes are delayed once level 0 has 8 files."""
_GROWTH: Final = 4.0
"""Factor by which each additional file lengthens the delay."""


class View:
    """The places of the data at one moment: memtable, immutable memtable and version.  Immutable.

    A reader takes the store's view once and finds everything in it, even if a flush or a compaction
    moves the data.
    """

    __slots__ = ("delay", "immutable", "memtable", "version")

    def __init__(self, memtable: MemTable, immutable: MemTable | None, version: Version) -> None:
        self.memtable = memtable
        self.immutable = immutable
        self.version = version
        self.delay = _delay(len(version.levels[0]) + (immutable is not None))
        """Seconds by which a write is delayed for each of its bytes, since level 0 has so many
        files, or will have them after the flush: 0.0 if it has few."""


def _delay(files: int) -> float:
    """See :attr:`View.delay`."""
    if files < L0_SLOWDOWN_WRITES_TRIGGER:
        return 0.0
    return _DELAY * _GROWTH ** (min(files, L0_STOP_WRITES_TRIGGER) - L0_SLOWDOWN_WRITES_TRIGGER)


class ReadView:
    """A view, and the sequence at which a reader reads it.

    A version that is no longer referenced loses its files, and compiled code drops a reference
    after its last use.  So a reader keeps this object until it has finished, and then calls
    :meth:`release`.
    """

    __slots__ = ("held", "pin", "ranges", "samples", "table_sequence", "view")

    def __init__(self, view: View, pin: Pin, table_sequence: i64) -> None:
        self.view = view
        self.pin = pin
        """Pins the sequence; only this reader uses it."""
        self.table_sequence: i64 = table_sequence
        """The sequence bound for tables: MAX_SEQUENCE where no table holds anything newer."""
        self.held: dict[int, Table] = {}
        """Tables that are kept open for this reader, by number, whatever the table cache does."""
        self.samples: ReadSamples | None = None
        """Counts the pairs that an iterator reads."""
        self.ranges: EmptyRanges | None = None
        """Ranges known to be empty in this view; None if the store shows another view."""

    @property
    def sequence(self) -> int:
        """Versions after this sequence are hidden."""
        return self.pin.sequence

    def release(self) -> None:
        """Unpin the sequence.  A second call has no effect."""
        self.pin.release()


class RangeDrop:
    """Tables that one edit takes out of the version, since a range deletion covers them.

    ``admin/delete_range.py`` makes it, and the background work commits it.  The store keeps it as
    long as a reader from before pins its sequence.
    """

    def __init__(
        self,
        lower: Position | None,
        upper: Position | None,
        key: bytes,
        tables: frozenset[int],
        expected: frozenset[int],
    ) -> None:
        """``expected`` are all tables that overlapped the range when the deletions were made; if
        one is missing, a compaction has moved some of its entries."""
        self.lower = lower
        self.upper = upper
        self.key = key
        """A user key of the range, which the operation with the drop's sequence deletes."""
        self.tables = tables
        self.expected = expected
        self.sequence = 0
        """Its sequence: readers at lower ones see the tables."""
        self.view: View | None = None
        """The view of those readers; None if there are none."""

    def covers(self, order: KeyOrder, user_key: bytes) -> bool:
        """Return True if a key lies in the range."""
        lower, upper = self.lower, self.upper
        return (lower is None or order.is_at_or_after(user_key, lower)) and (
            upper is None or not order.is_at_or_after(user_key, upper)
        )

    def overlaps(self, order: KeyOrder, lower: Position | None, upper: Position | None) -> bool:
        """Return True if the range overlaps another one."""
        return (self.lower is None or upper is None or order.is_before(self.lower, upper)) and (
            lower is None or self.upper is None or order.is_before(lower, self.upper)
        )


class StateChange:
    """Lets threads wait for the next change of the store's state.

    A waiter takes a ticket under the store's lock, releases the lock, and acquires the ticket; no
    thread waits while it holds the lock.  A :class:`threading.Condition` is not safe here: if a
    signal arrives while it takes its lock back, its caller releases a lock that it does not hold.
    """

    def __init__(self) -> None:
        self._tickets: list[Any] = []

    @property
    def awaited(self) -> bool:
        """True if a thread waits for the next change."""
        return bool(self._tickets)

    def ticket(self) -> Ticket:
        """A lock that is released at the next change.  Caller holds the store's lock."""
        ticket = Ticket()
        self._tickets.append(ticket.lock)
        return ticket

    def notify_all(self) -> None:
        """Release all tickets: the state has changed.  Caller holds the store's lock."""
        locks = self._tickets
        self._tickets = []
        for lock in locks:
            lock.release()


class Store:
    """Everything that belongs to one open store.

    ``lock`` guards the view, the sequences and the memtables' order; it is held for a few steps
    only, never across a read or write of a file, nor while waiting.  A thread that waits for a
    change of state takes a ticket of ``changed``.  Writers exclude each other by their own
    lock (``writer.py``), which is taken first where both are needed.
    """

    def __init__(
        self,
        directory: Directory,
        options: Options,
        comparator: InternalKeyComparator,
        versions: VersionSet,
        memtable: MemTable,
        info_log: InfoLog,
        lock: StoreLock,
    ) -> None:
        self.directory = directory
        self.options = options
        self.comparator = comparator
        self.order: KeyOrder = comparator.order
        self.counters = Counters()
        self.versions = versions
        self.info_log = info_log
        self.tables = TableCache(directory, options, self.counters)
        self.lock = lock
        if directory.takes_lock:
            lock.directory = directory
            lock.watched = True
        self.changed = StateChange()
        self.pinned = PinnedSequences()
        self.view: View | None = View(memtable, None, versions.current)
        """None once the store is closed."""
        self.installed_at: int = versions.last_sequence
        """The last sequence when the version was installed: no table holds anything newer.  So what
        was written later is in the memtables of a view that was taken before this is asked."""
        self.drops: list[RangeDrop] = []
        """The dropped tables that readers at older sequences still see, the oldest drop first."""
        self.empty_ranges = EmptyRanges(self.order)
        """Ranges in which scans of the view have found nothing."""
        self.listener: CallListener | None = None
        """Receives a report of each call, if the store is observed."""
        self.sharing: Sharing | None = None
        """Publishes the store to other processes, if it is shared."""
        self.log_holds = LogHolds()
        """The logs that are read in this process."""
        self.closing = False
        self.forked = False
        """True if this is the copy of the store in a forked child."""

    def new_memtable(self, log_number: int) -> MemTable:
        """An empty memtable for the writes in that log, under this store's lock."""
        memtable = MemTable(self.comparator.user_comparator, self.lock)
        memtable.log_number = log_number
        return memtable

    def open_view(self) -> View:
        """The view; :class:`ClosedError` once the store is closed."""
        view = self.view
        if view is None:
            if self.forked:
                raise ForkedError("opened before a fork: open the store again in this process")
            raise ClosedError("the database is closed")
        return view

    def view_at(self, sequence: int) -> View:
        """The view for a reader at a pinned sequence: that before the first drop after it."""
        view = self.open_view()  # first: a drop is in the list before its view is in force
        for drop in self.drops:
            if sequence < drop.sequence and drop.view is not None:
                return drop.view
        return view

    def forget_ranges(self) -> None:
        """Forget all empty ranges, since other keys come into view.  Caller holds the lock."""
        self.empty_ranges = EmptyRanges(self.order, self.empty_ranges.shortest)

    def forget_drops(self) -> None:
        """Forget the views and drops that no pinned sequence needs.  Caller holds the lock."""
        if not self.drops:
            return
        pinned = self.pinned.all()
        kept: list[RangeDrop] = []
        before = 0
        for drop in self.drops:
            if pinned and pinned[0] < drop.sequence:
                kept.append(drop)
            if not any(before <= sequence < drop.sequence for sequence in pinned):
                drop.view = None
            before = drop.sequence
        self.drops = kept

    def raise_failure(self, error: OSError) -> NoReturn:
        """Raise the error of a failed read as a typed error, or :class:`ClosedError` if the store
        was closed, which is then the cause."""
        self.open_view()
        raise_typed(error)

    def give_up(self, read: ReadView, error: BaseException) -> None:
        """Release a view when an error ends what it was taken for, since the traceback may keep it
        for long; and raise an ``OSError`` as the store's."""
        read.release()
        if isinstance(error, OSError):
            self.raise_failure(error)

    @property
    def may_lose_tables(self) -> bool:
        """True if a writer in another process may remove tables that a view needs."""
        return self.options.read_only and not self.directory.immutable

    def read_view(self, sequence: int = MAX_SEQUENCE, fixed: View | None = None) -> ReadView:
        """The view, pinned at the last sequence, or at an older ``sequence`` that the caller keeps
        pinned.  It stays readable until it is released.

        The caller may also have kept a ``fixed`` view: the store's writer, if it is another
        process, keeps nothing for that sequence in its later tables.
        """
        lock = self.lock
        if lock.mine():
            return self._nested_read_view(sequence, fixed)
        with lock.nested, lock.guard:
            view = self.view_at(sequence)
            if fixed is not None:
                view = fixed
            last = self.versions.last_sequence
            if sequence > last:
                read = ReadView(view, Pin(self.pinned, last), MAX_SEQUENCE)
            else:
                read = ReadView(view, Pin(self.pinned, sequence), sequence)
            if view is self.view:
                read.ranges = self.empty_ranges
        return read

    def _nested_read_view(self, sequence: int, fixed: View | None) -> ReadView:
        """:meth:`read_view` for a nested call, in the middle of what this thread does under the
        lock.

        If that is the application of a batch, the view holds all of it: the batch is in the log,
        and may have replaced versions that an older view would need.
        """
        view = self.view_at(sequence) if fixed is None else fixed
        last = max(self.versions.last_sequence, view.memtable.last_applying)
        if sequence > last:
            return ReadView(view, Pin(self.pinned, last, nested=True), MAX_SEQUENCE)
        return ReadView(view, Pin(self.pinned, sequence, nested=True), sequence)
