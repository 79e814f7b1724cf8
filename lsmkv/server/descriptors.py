"""The number of clients that a process's file descriptors allow.

Each connection takes a descriptor, and so does each open table.  A process without a free
descriptor can open neither a table nor a log.  So clients are refused before that, as Redis does.
"""

from __future__ import annotations

import errno
import sys
from typing import NamedTuple

try:
    import resource
except ImportError:  # Windows, whose sockets take no descriptors
    resource = None  # type: ignore[assignment]

LEAST_TABLES = 20
"""The fewest descriptors that a store works with: ``max_open_files`` is at least this."""
_OTHERS = 32
"""For standard streams, listeners, the log, the MANIFEST, the pipes of worker processes."""
_BACKLOG = 511
"""Connections that the system holds until they are accepted; Redis' value."""
_ACCEPTED = 4
"""The most connections in the loop that are neither served nor closed, in backlogs."""


class Room(NamedTuple):
    """The division of file descriptors."""

    clients: int
    """The most connections."""
    tables: int
    """The store's ``max_open_files``."""
    backlog: int
    """The number of connections that may wait to be accepted."""


def divide(limit: int, clients: int, tables: int) -> Room:
    """Divide ``limit`` descriptors between the clients and tables that are wanted.

    If there are too few, tables get a quarter and connections that are not served an eighth;
    clients get the rest.  Raises ``OSError`` if not even one client could be served.

    >>> divide(20_000, clients=10_000, tables=1_000)
    Room(clients=10000, tables=1000, backlog=511)
    >>> divide(256, clients=10_000, tables=1_000)
    Room(clients=128, tables=64, backlog=8)
    """
    if limit >= needed(clients, tables):
        return Room(clients, tables, _BACKLOG)
    tables = max(LEAST_TABLES, min(tables, limit // 4))
    backlog = max(1, min(_BACKLOG, limit // 8 // _ACCEPTED))
    left = limit - tables - _ACCEPTED * backlog - _OTHERS
    if left < 1:
        reason = f"{limit} descriptors are too few for a server: raise the limit (ulimit -n)"
        raise OSError(errno.EMFILE, reason)
    return Room(min(clients, left), tables, backlog)


def needed(clients: int, tables: int) -> int:
    """The descriptors that a server with this many clients and tables needs."""
    return clients + tables + _ACCEPTED * _BACKLOG + _OTHERS


def reserve(clients: int, tables: int) -> Room:
    """Raise the process's limit as far as is needed and allowed, and divide the result."""
    return divide(_raised_limit(needed(clients, tables)), clients, tables)


def _raised_limit(wanted: int) -> int:
    """The limit of this process, after raising it to ``wanted``, or to the hard limit if that is
    lower."""
    if sys.platform == "win32":
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # macOS allows less than its hard limit claims
        return int(soft)
    return wanted
