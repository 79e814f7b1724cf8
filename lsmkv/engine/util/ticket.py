"""A wait for another thread that Ctrl-C interrupts: the only one in the engine.

Compiled code checks for signals only while it waits inside the operating system, so a signal that
arrived just before the wait would be handled only after it.  This module is never compiled, and the
interpreter checks at every turn of a loop.
"""

from __future__ import annotations

from collections.abc import Callable

from lsmkv.engine.util.threads import new_lock

_CHECK_SIGNALS_EVERY = 0.1  # seconds


class Ticket:
    """A lock that is taken when it is made: one thread waits for it, and another releases it."""

    def __init__(self) -> None:
        self.lock = new_lock()
        """Its release wakes the thread that waits."""
        self.lock.acquire()

    def acquire(self) -> None:
        """Wait until the lock is released; a signal is handled within a tenth of a second."""
        while not self.acquire_soon():
            pass

    def acquire_soon(self, seconds: float = _CHECK_SIGNALS_EVERY) -> bool:
        """Wait at most this long, by default a tenth of a second; returns whether the lock was
        released."""
        return bool(self.lock.acquire(True, seconds))


class InlineTicket(Ticket):
    """A ticket for a change that no background thread makes: acquiring it does the next piece of
    work, or waits for the caller that is doing it."""

    def __init__(self, work: Callable[[], bool], change: Ticket) -> None:
        """``work`` returns True if it did the work, and False if it left it to another caller,
        which releases ``change``."""
        self.lock = change.lock
        self._work = work

    def acquire(self) -> None:
        """Do the work, or wait until another caller has done it."""
        while not self._work():
            # If an interrupt has ended that call, the ticket is never released: so there is a
            # timeout.
            if self.acquire_soon():
                return
