"""obstore's stores for one URL, with different time limits.

The HTTP client of obstore has one time limit for all of its requests, from the connection to the
last byte.  A limit that suits a block of 4 KiB would end every upload of 100 MiB.  So there is a
store with its own client for each size of request: :meth:`ObstoreStores.sized`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

SLOWEST = 1 << 20
"""Bytes per second: slower transfers are given up."""
_UNSIZED = -1
_LONGEST = 64
"""The maximum size of a body of unknown length, in multiples of a small request's limit."""


class Timeouts(NamedTuple):
    """Limits of a request's duration, in seconds."""

    whole: float
    stalled: float | None
    """Seconds without a byte of the reply; None for no such limit, which would also count uploads.
    """


class ObstoreStores:
    """Makes obstore's stores when they are needed; any thread may use it."""

    def __init__(self, make: Callable[[Timeouts], Any], timeout: float) -> None:
        """``timeout`` is for small requests, in seconds."""
        self._make = make
        self._timeout = timeout
        self._mutex = threading.Lock()
        self._stores: dict[int, Any] = {}

    def sized(self, length: int) -> Any:
        """The store for requests that move this many bytes, at :data:`SLOWEST` or faster."""
        seconds = self._timeout + length / SLOWEST
        doublings = 0 if length < SLOWEST else math.ceil(math.log2(seconds / self._timeout))
        return self._store(doublings, Timeouts(self._timeout * 2**doublings, None))

    def unsized(self) -> Any:
        """The store for replies of unknown length, which end if they stall."""
        return self._store(_UNSIZED, Timeouts(self._timeout * _LONGEST, self._timeout))

    def _store(self, key: int, timeouts: Timeouts) -> Any:
        with self._mutex:
            if key not in self._stores:
                self._stores[key] = self._make(timeouts)
            return self._stores[key]
