"""Waiting for another thread so that Ctrl-C is heard."""

from __future__ import annotations

import threading

_LISTEN_EVERY = 0.1  # seconds


class Ticket:
    """A lock that someone else holds, and releases when there is something new.

    Compiled code looks for signals only while it waits inside the operating system: one that came
    just before would be noticed when the wait is over.  This module is never compiled, and the
    interpreter looks at every turn of a loop.
    """

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock

    def acquire(self) -> None:
        """Until the lock is released; a signal is heard within a tenth of a second."""
        while not self.acquire_soon():
            pass

    def acquire_soon(self) -> bool:
        """The same for a tenth of a second at most; whether the lock was released."""
        return self._lock.acquire(timeout=_LISTEN_EVERY)
