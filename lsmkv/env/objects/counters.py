"""What the requests to an object store came to, by kind."""

from __future__ import annotations

import threading
from typing import Literal, NamedTuple

Kind = Literal["get", "put", "list", "delete"]
"""Whole objects and ranges are ``get``; both ways of putting are ``put``."""


class Requests(NamedTuple):
    """Requests of one kind, so far.

    >>> Requests(requests=3, retries=1, bytes_read=100) + Requests(requests=1)
    Requests(requests=4, retries=1, bytes_read=100, bytes_written=0)
    """

    requests: int = 0
    """Attempts: retries are among them, and so are those that failed."""
    retries: int = 0
    """Attempts after the first one."""
    bytes_read: int = 0
    """Of objects, in the replies that came whole."""
    bytes_written: int = 0
    """Of objects that were put."""

    def __add__(self, other: Requests) -> Requests:  # type: ignore[override]
        """The sums."""
        return Requests(*(mine + its for mine, its in zip(self, other, strict=True)))


class RequestCounts(NamedTuple):
    """All requests to an object store, so far, by kind."""

    get: Requests = Requests()
    put: Requests = Requests()
    list: Requests = Requests()
    delete: Requests = Requests()

    @property
    def total(self) -> Requests:
        """Of all kinds."""
        return self.get + self.put + self.list + self.delete


class RequestCounters:
    """Counts requests; any thread may use it.

    >>> counters = RequestCounters()
    >>> counters.add("get", Requests(requests=1, bytes_read=5))
    >>> counters.snapshot().get.bytes_read, counters.snapshot().total.requests
    (5, 1)
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._counts = RequestCounts()

    def add(self, kind: Kind, more: Requests) -> None:
        """Count requests of one kind."""
        with self._mutex:
            self._counts = self._counts._replace(**{kind: getattr(self._counts, kind) + more})

    def snapshot(self) -> RequestCounts:
        """The counts at one moment."""
        return self._counts
