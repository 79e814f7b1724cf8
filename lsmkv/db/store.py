"""The state that the parts of an open store share: who writes, who reads, who compacts."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NoReturn

from librt.threading import Lock

from lsmkv.counters import Counters
from lsmkv.db.info_log import InfoLog
from lsmkv.db.memtable import MemTable
from lsmkv.db.pinned import Pin, PinnedSequences
from lsmkv.db.recovery import Recovered
from lsmkv.db.table_cache import TableCache
from lsmkv.db.version import Version
from lsmkv.env.base import Directory
from lsmkv.env.ticket import Ticket
from lsmkv.errors import ClosedError, ForkedError, raise_typed
from lsmkv.filter.bloom import is_bloom, leveldb_hash
from lsmkv.filter.policy import HashedFilterPolicy, key_hasher
from lsmkv.format.key_order import KeyOrder
from lsmkv.format.keys import MAX_SEQUENCE, InternalKeyComparator
from lsmkv.options import L0_SLOWDOWN_WRITES_TRIGGER, Options

if TYPE_CHECKING:
    from mypy_extensions import i64


class View:
    """Where the data is, at one moment: memtable, immutable memtable, tables.  Never changed.

    A reader takes the store's view once and finds everything in it, whatever moves meanwhile.
    """

    __slots__ = ("crowded", "immutable", "memtable", "version")

    def __init__(self, memtable: MemTable, immutable: MemTable | None, version: Version) -> None:
        self.memtable = memtable
        self.immutable = immutable
        self.version = version
        self.crowded = len(version.levels[0]) >= L0_SLOWDOWN_WRITES_TRIGGER
        """Whether level 0 has so many files that writes are to be held up."""


class ReadView:
    """A view, and the sequence at which a reader reads it.

    Compiled code lets go of an object after its last use, and the files of a version that is held
    no more are removed: a reader calls :meth:`release` when it has finished, and holds this until
    then.
    """

    __slots__ = ("pin", "table_sequence", "view")

    def __init__(self, view: View, pin: Pin, table_sequence: i64) -> None:
        self.view = view
        self.pin = pin
        """Keeps the sequence readable; it belongs to this reader alone."""
        self.table_sequence: i64 = table_sequence
        """The bound for versions in tables: MAX_SEQUENCE where the tables hold nothing newer."""

    @property
    def sequence(self) -> int:
        """Versions after this sequence are hidden."""
        return self.pin.sequence

    def release(self) -> None:
        """Let go of the sequence.  More than once does no harm."""
        self.pin.release()


class StateChange:
    """How threads wait for the store's state to change.

    A :class:`threading.Condition` would not do: a signal that arrives while it takes its lock back
    leaves the caller without the lock that it is about to release.  Here nobody waits with a lock:
    a waiter takes a ticket under the store's lock, lets the lock go, and acquires the ticket.
    """

    def __init__(self) -> None:
        self._tickets: list[threading.Lock] = []

    @property
    def awaited(self) -> bool:
        """Whether anybody waits for the next change."""
        return bool(self._tickets)

    def ticket(self) -> Ticket:
        """What is released at the next change.  Caller holds the store's lock."""
        lock = threading.Lock()
        lock.acquire()
        self._tickets.append(lock)
        return Ticket(lock)

    def notify_all(self) -> None:
        """The state has changed.  Caller holds the store's lock."""
        tickets = self._tickets
        self._tickets = []
        for lock in tickets:
            lock.release()


class Store:
    """Everything that belongs to one open store.

    ``lock`` guards the view, the sequences and the memtables' order; it is held for moments only,
    never across a read or write of a file, nor while waiting.  Whoever waits for a change of state
    takes a ticket of ``changed``.  Writers exclude each other by a lock of their own
    (``writer.py``), which is taken first where both are needed.
    """

    def __init__(
        self,
        directory: Directory,
        options: Options,
        comparator: InternalKeyComparator,
        recovered: Recovered,
        info_log: InfoLog,
        lock: Lock,
        counters: Counters | None = None,
    ) -> None:
        """``counters`` to go on with, when one view of a store takes the place of another."""
        self.directory = directory
        self.options = options
        self.comparator = comparator
        self.order: KeyOrder = comparator.order
        self.counters = Counters() if counters is None else counters
        self.versions = recovered.versions
        self.info_log = info_log
        self.tables = TableCache(directory, options, self.counters)
        policy = options.filter_policy
        self._hasher: HashedFilterPolicy | None = None if policy is None else key_hasher(policy)
        self._is_bloom = policy is not None and is_bloom(policy)
        self.lock = lock
        self.changed = StateChange()
        self.pinned = PinnedSequences()
        self.view: View | None = View(recovered.memtable, None, self.versions.current)
        """None once the store is closed."""
        self.closing = False
        self.forked = False
        """Whether this is the copy of the store that a forked child got."""

    def new_memtable(self, log_number: int) -> MemTable:
        """An empty one for the writes in that log, under this store's lock."""
        memtable = MemTable(self.comparator.user_comparator, self.lock)
        memtable.log_number = log_number
        return memtable

    def open_view(self) -> View:
        """The view; :class:`ClosedError` once the store is closed."""
        view = self.view
        if view is None:
            if self.forked:
                raise ForkedError("opened before a fork: open the store anew in this process")
            raise ClosedError("the database is closed")
        return view

    def key_hash(self, user_key: bytes) -> i64:
        """The filter policy's hash of a key; -1 where filters are not asked by hash."""
        if self._is_bloom:
            return leveldb_hash(user_key)
        return -1 if self._hasher is None else self._hasher.key_hash(user_key)

    def raise_failure(self, error: OSError) -> NoReturn:
        """Raise what a read failed with, typed; :class:`ClosedError` if the store was closed
        meanwhile, since that is why then."""
        self.open_view()
        raise_typed(error)

    def read_view(self, sequence: int = MAX_SEQUENCE) -> ReadView:
        """What a reader of the store as it is now needs, or as it was at an older ``sequence``,
        which the caller keeps pinned.  It stays readable until it is released.
        """
        with self.lock:
            view = self.open_view()
            last = self.versions.last_sequence
            if sequence > last:
                return ReadView(view, Pin(self.pinned, last), MAX_SEQUENCE)
            return ReadView(view, Pin(self.pinned, sequence), sequence)
