"""Counts the requests to an object store, by kind."""

from __future__ import annotations

import threading
from typing import Literal, NamedTuple

Kind = Literal["get", "put", "list", "delete"]
"""Reading an object, whole or in part, is ``get``; both ways of writing are ``put``."""
_KINDS: tuple[Kind, ...] = ("get", "put", "list", "delete")


class Requests(NamedTuple):
    """The requests of one kind so far.

    >>> Requests(requests=3, retries=1, bytes_read=100) + Requests(requests=1)
    Requests(requests=4, retries=1, bytes_read=100, bytes_written=0)
    """

    requests: int = 0
    """Attempts, including retries and failures."""
    retries: int = 0
    """Attempts after the first one."""
    bytes_read: int = 0
    """Bytes of objects, in complete replies."""
    bytes_written: int = 0
    """Bytes of objects that were written."""

    def __add__(self, other: Requests) -> Requests:  # type: ignore[override]
        """The sums."""
        return Requests(*(mine + its for mine, its in zip(self, other, strict=True)))


class RequestCounts(NamedTuple):
    """All requests to an object store so far, by kind."""

    get: Requests = Requests()
    put: Requests = Requests()
    list: Requests = Requests()
    delete: Requests = Requests()

    @property
    def total(self) -> Requests:
        """The sum of all kinds."""
        return self.get + self.put + self.list + self.delete


class RequestCounters:
    """Counts requests; any thread may use it.  Costs about a microsecond.

    >>> counters = RequestCounters()
    >>> counters.add("get", requests=1, bytes_read=5)
    >>> counters.snapshot().get.bytes_read, counters.snapshot().total.requests
    (5, 1)
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._counts: dict[Kind, list[int]] = {kind: [0] * len(Requests._fields) for kind in _KINDS}

    def add(
        self,
        kind: Kind,
        requests: int = 0,
        retries: int = 0,
        bytes_read: int = 0,
        bytes_written: int = 0,
    ) -> None:
        """Count requests of one kind."""
        with self._mutex:
            counts = self._counts[kind]
            counts[0] += requests
            counts[1] += retries
            counts[2] += bytes_read
            counts[3] += bytes_written

    def snapshot(self) -> RequestCounts:
        """The counts at one moment."""
        with self._mutex:
            return RequestCounts(*(Requests(*self._counts[kind]) for kind in _KINDS))
