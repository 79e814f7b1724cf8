"""Descriptors: how many the process may have, and what gives way when there are too few.

Tables are opened to be read again, so the table caches of all stores of the process share
:data:`OPEN_TABLES`, which holds at most half of what the process may have: the other half is the
program's.  Where the system has none left all the same, the tables used least are closed, and the
call is made again (:func:`with_room`): a table that is needed later is opened again.
"""

from __future__ import annotations

import atexit
import errno
from collections.abc import Callable
from typing import Any, TypeVar

from lsmkv.util.second_chance_cache import SecondChanceCache

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

OPEN_TABLES: SecondChanceCache[tuple[int, int], Any] = SecondChanceCache(_NO_LIMIT)
"""The open tables of all stores, by the number of a table cache and that of a table.  Each entry
is also one of its store's table cache."""
atexit.register(OPEN_TABLES.clear)  # while files can still be closed


def limit_open_tables() -> int:
    """How many tables the process may have open: half of its limit on descriptors.

    The limit is asked for each time, since a program may change it.  :data:`OPEN_TABLES` takes it
    over.  Costs a system call.
    """
    most = _NO_LIMIT
    if resource is not None:
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if soft != resource.RLIM_INFINITY:
            most = max(1, soft // _TABLES_SHARE)
    OPEN_TABLES.capacity = most
    return most


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
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        pass  # macOS refuses the unlimited hard limit that it states
