"""File descriptors: how many the process may have, and what is closed when there are too few.

Tables are kept open to be read again.  The table caches of all stores of the process share one
queue, :data:`OPEN_TABLES`.  It holds at most half of the descriptors that the process may have; the
other half is for the program.  If the system still runs out of descriptors, the least recently used
tables are closed and the call is repeated (:func:`with_room`).  A table that is needed later is
opened again.
"""

from __future__ import annotations

import errno
import weakref
from collections import OrderedDict
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

from lsmkv.engine.util.cache_entry import CacheEntry

try:
    resource: Any = import_module("resource")
except ImportError:  # Windows, and a browser
    resource = None

T = TypeVar("T")

_NO_LIMIT = 1 << 30
_TABLES_SHARE = 2
"""Open tables may take the limit on descriptors, divided by this."""
_LAST_SHARE = 8
"""The limit on descriptors, divided by this, is left for what a program cannot do without."""
_EVICTED_SHARE = 8
"""The fraction of the open tables that is closed at a time when descriptors are missing."""
_EXHAUSTED = (errno.EMFILE, errno.ENFILE)


class OpenTable:
    """An open table in the queue.  Its table cache holds this object and the queue does not: a
    table may refer to its store."""

    def __init__(self, entry: CacheEntry) -> None:
        self.entry = entry
        """The table cache's entry; emptying it closes the table."""


class OpenTables:
    """The open tables of all stores of the process, in the order in which they may be closed.

    The policy is that of :class:`~lsmkv.engine.util.second_chance_cache.SecondChanceCache`, for all
    stores together, and like it this class works without a lock.  Any thread may call any method,
    and so may code that interrupts one.
    """

    def __init__(self) -> None:
        self._queue: OrderedDict[tuple[int, int], weakref.ref[OpenTable]] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of open tables; their stores may already have closed a few of them."""
        return len(self._queue)

    def add(self, key: tuple[int, int], table: OpenTable) -> None:
        """Add a table under the numbers of its table cache and its own, closing others for it if
        needed."""
        self._queue.pop(key, None)
        self._evict_to(most_tables() - 1)
        self._queue[key] = weakref.ref(table)

    def discard(self, key: tuple[int, int]) -> None:
        """Remove a table that its store has closed."""
        self._queue.pop(key, None)

    def evict(self, count: int) -> None:
        """Close a number of tables, first those that were not used recently."""
        self._evict_to(max(0, len(self._queue) - count))

    def _evict_to(self, count: int) -> None:
        while len(self._queue) > count:
            try:
                key, reference = next(iter(self._queue.items()))
                table = reference()
                entry = None if table is None else table.entry
                if entry is not None and entry.uses and entry.value is not None:
                    entry.uses = 0
                    self._queue.move_to_end(key)
                    continue
                if entry is not None:
                    entry.empty()
                self._queue.pop(key, None)
            except (KeyError, RuntimeError, StopIteration):
                pass  # another thread has changed the queue


OPEN_TABLES = OpenTables()


def most_tables() -> int:
    """Return the number of tables that the process may have open: half of its limit on descriptors.

    The limit is read each time, because a program may change it.  Costs a system call.
    """
    if resource is None:
        return _NO_LIMIT
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _NO_LIMIT if soft == resource.RLIM_INFINITY else max(1, soft // _TABLES_SHARE)


def is_one_of_the_last(fd: int) -> bool:
    """Return True if a descriptor is one of the last that the process may have.

    The system gives the lowest number that is free, so nearly as many are taken.
    """
    if resource is None:
        return False
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return soft != resource.RLIM_INFINITY and bool(fd >= soft - soft // _LAST_SHARE)


def make_room(error: OSError) -> bool:
    """Close some open tables if a call has failed because there was no descriptor.

    Returns whether to repeat the call: False for any other error, and when no table is left.  A
    table that is being read is closed when its reader has finished.
    """
    count = len(OPEN_TABLES)
    if error.errno not in _EXHAUSTED or count == 0:
        return False
    OPEN_TABLES.evict(max(1, count // _EVICTED_SHARE))
    return True


def with_room(call: Callable[[], T]) -> T:
    """The result of ``call``; it is repeated as long as :func:`make_room` says so."""
    while True:
        try:
            return call()
        except OSError as error:
            if not make_room(error):
                raise


def raise_limit() -> None:
    """Raise the soft limit on descriptors to the hard limit.  For standalone programs, such as the
    ``lsmkv`` command; does nothing where that is impossible."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        pass  # macOS refuses the unlimited hard limit that it states
