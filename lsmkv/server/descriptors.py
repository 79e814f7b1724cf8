"""How many clients a process has descriptors for.

Each connection takes one, and a store takes those of its tables.  A process without a free one can
open no table and no log: so clients are refused before, as Redis refuses them.
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
"""The fewest descriptors that a store works with: ``max_open_files`` is no less."""
_OTHERS = 32
"""For standard streams, listeners, the log, the MANIFEST, the pipes of worker processes."""
_BACKLOG = 511
"""Connections that the system keeps until they are accepted, as Redis has it."""
_ACCEPTED = 4
"""A loop may hold so many backlogs of connections that are not refused yet, or not yet closed."""


class Room(NamedTuple):
    """How descriptors are divided."""

    clients: int
    """The most connections."""
    tables: int
    """The store's ``max_open_files``."""
    backlog: int
    """How many connections may wait to be accepted."""


def divide(limit: int, clients: int, tables: int) -> Room:
    """Divide ``limit`` descriptors, of which so many are wanted for clients and for tables.

    If they are too few, a quarter is for tables and an eighth for connections that are not served;
    clients have the rest.  ``OSError`` if not even one client could be served.

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
    """The descriptors of a server with so many clients and tables."""
    return clients + tables + _ACCEPTED * _BACKLOG + _OTHERS


def reserve(clients: int, tables: int) -> Room:
    """Raise the process's limit as far as it may and must be, and divide what it is then."""
    return divide(_raised_limit(needed(clients, tables)), clients, tables)


def _raised_limit(wanted: int) -> int:
    """The limit of this process; raised to ``wanted``, or the hard limit, if it is lower."""
    if sys.platform == "win32":
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # macOS allows less than its hard limit says
        return int(soft)
    return wanted
