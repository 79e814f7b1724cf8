"""Descriptors: how many the process may have, and what gives way when there are too few.

Tables are opened to be read again, so the table caches of all stores of the process share one
queue, :data:`OPEN_TABLES`, which holds at most half of what the process may have: the other half is
the program's.  Where the system has none left all the same, the tables used least are closed, and
the call is made again (:func:`with_room`): a table that is needed later is opened again.
"""

from __future__ import annotations

import errno
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

from lsmkv.util.cache_entry import CacheEntry

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

T = TypeVar("T")

_NO_LIMIT = 1 << 30
_TABLES_SHARE = 2
"""Open tables take the limit on descriptors, divided by this."""
_EVICTED_SHARE = 8
"""The part of the open tables that is closed at a time where descriptors are missing."""
_EXHAUSTED = (errno.EMFILE, errno.ENFILE)


class OpenTable:
    """An open table, as the queue knows it; its table cache holds this object, and the queue does
    not: what a table refers to may refer to the store."""

    def __init__(self, entry: CacheEntry) -> None:
        self.entry = entry
        """The table cache's entry, which is emptied to close the table."""


class OpenTables:
    """The open tables of all stores of the process, in the order in which they may be closed.

    The policy is that of :class:`~lsmkv.util.second_chance_cache.SecondChanceCache`, for all stores
    together, and so is the way without a lock: any thread may call any method, and so may code that
    interrupts one.
    """

    def __init__(self) -> None:
        self._queue: OrderedDict[tuple[int, int], weakref.ref[OpenTable]] = OrderedDict()

    def __len__(self) -> int:
        """How many tables are open; a few of them may have been closed by their store since."""
        return len(self._queue)

    def add(self, key: tuple[int, int], table: OpenTable) -> None:
        """Add a table under the numbers of its table cache and its own; others make room."""
        self._queue.pop(key, None)
        self._evict_to(most_tables() - 1)
        self._queue[key] = weakref.ref(table)

    def discard(self, key: tuple[int, int]) -> None:
        """Forget a table that its store has closed."""
        self._queue.pop(key, None)

    def evict(self, count: int) -> None:
        """Close so many tables, those first that were not used lately."""
        self._evict_to(max(0, len(self._queue) - count))

    def _evict_to(self, count: int) -> None:
        while len(self._queue) > count:
            try:
                key, reference = next(iter(self._queue.items()))
                table = reference()
                entry = None if table is None else table.entry
                if entry is not None and entry.used and entry.value is not None:
                    entry.used = False
                    self._queue.move_to_end(key)
                    continue
                if entry is not None:
                    entry.empty()
                self._queue.pop(key, None)
            except (KeyError, RuntimeError, StopIteration):
                pass  # another thread has changed the queue meanwhile


OPEN_TABLES = OpenTables()


def most_tables() -> int:
    """How many tables the process may have open: half of its limit on descriptors.

    The limit is asked for each time, since a program may change it.  Costs a system call.
    """
    if sys.platform == "win32":
        return _NO_LIMIT
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _NO_LIMIT if soft == resource.RLIM_INFINITY else max(1, soft // _TABLES_SHARE)


def make_room(error: OSError) -> bool:
    """Close some open tables if a call has failed for want of a descriptor.

    Returns whether to make the call again: False for any other error, and once no table is left.
    A table that is being read is closed when its reader has finished.
    """
    count = len(OPEN_TABLES)
    if error.errno not in _EXHAUSTED or count == 0:
        return False
    OPEN_TABLES.evict(max(1, count // _EVICTED_SHARE))
    return True


def with_room(call: Callable[[], T]) -> T:
    """What ``call`` returns; it is made again as long as :func:`make_room` asks for it."""
    while True:
        try:
            return call()
        except OSError as error:
            if not make_room(error):
                raise


def raise_limit() -> None:
    """Let the process have as many descriptors as the system allows it: the soft limit becomes the
    hard one.  For programs of one's own, such as the ``lsmkv`` command; nothing where it cannot be
    done."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        pass  # macOS refuses the unlimited hard limit that it states
