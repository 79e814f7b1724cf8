"""A wait for another thread that Ctrl-C interrupts.

Compiled code checks for signals only while it waits inside the operating system, so that a signal
that came just before the wait would be handled only after it.  This module is never compiled, and
the interpreter checks at every turn of a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_CHECK_SIGNALS_EVERY = 0.1  # seconds


class Ticket:
    """A lock that another thread holds, and releases to wake the thread that waits for it."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock

    def acquire(self) -> None:
        """Wait until the lock is released; a signal is handled within a tenth of a second."""
        while not self.acquire_soon():
            pass

    def acquire_soon(self) -> bool:
        """Wait for a tenth of a second at most; returns whether the lock was released."""
        return bool(self._lock.acquire(True, _CHECK_SIGNALS_EVERY))


class InlineTicket(Ticket):
    """A ticket for a change that nobody else brings: acquiring it does the work."""

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__(None)
        self._work = work

    def acquire_soon(self) -> bool:
        """Do the work; True."""
        self._work()
        return True
