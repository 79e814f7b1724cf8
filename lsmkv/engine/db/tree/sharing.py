"""The interface by which a store reports its writes to waiting callers and to other processes.

``Store.sharing`` is None until a caller waits, or while the store is not shared.  A class derived
from :class:`Sharing` publishes the store to other processes (:mod:`lsmkv.shared`).  The engine
knows no more of it than this.

Fast path: without it a put compares a field with None once.
"""

from __future__ import annotations

from typing import Any

from lsmkv.engine.format.batch import Operation
from lsmkv.engine.leased_name import LeasedName
from lsmkv.engine.util.ticket import Ticket


class Sharing:
    """Wakes the threads of this process that wait for a write; no other process knows the store."""

    epoch = 0
    """The epoch, counted from 1: the time of one owner; 0 if no other process knows the store."""

    def __init__(self) -> None:
        self._tickets: list[Any] = []

    def ticket(self) -> Ticket:
        """A lock that is released at the next write.  Caller holds the store's lock."""
        ticket = Ticket()
        self._tickets.append(ticket.lock)
        return ticket

    def forget(self, ticket: Ticket) -> None:
        """Drop a ticket that no caller waits for any longer."""
        try:
            self._tickets.remove(ticket.lock)
        except ValueError:
            pass  # it has just been released

    def attach(self, sequence: int, numbers: frozenset[int]) -> None:
        """Attach to a recovered store, with its last sequence and the numbers of its tables.

        No other thread knows it yet, and no file was removed.
        """

    def begin(self, operations: list[Operation], sequence: int) -> bytes | None:
        """Announce a batch that will go into the log, its first operation with that sequence.

        Returns the batch's record if it is known, else None.  Called under the writers' lock;
        :meth:`publish` or :meth:`withdraw` follows.
        """
        return None

    def publish(self, sequence: int) -> None:
        """Make every write up to ``sequence`` happen, for all threads and processes.

        The log holds it, synced if it asks for that, and the memtable is about to.  Called under
        the store's lock, so that a thread of this process that has seen the new sequence can wait
        for the memtable.
        """
        if self._tickets:
            locks = self._tickets
            self._tickets = []
            for lock in locks:
                lock.release()

    def withdraw(self) -> None:
        """Withdraw the batch that was begun; another one may get its sequences.

        Called under the writers' lock.
        """

    def installed(self, numbers: frozenset[int]) -> None:
        """Publish a new version, of tables with these numbers, that the MANIFEST names; no file
        that the old one needs has been removed.  Called by the thread that commits."""

    def is_leased(self, number: int) -> bool:
        """Return True if another process may need the table of that number, which no version of
        this process names."""
        return False

    def is_log_leased(self, number: int) -> bool:
        """True if another process may need the log of that number, which this one does not need."""
        return False

    def counted(self) -> list[tuple[int, str, list[int]]]:
        """Return the id, role and counter words of each process (``db/observe/process_words.py``).
        The owner comes first; [] if no other process knows the store."""
        return []

    def leased_names(self) -> list[LeasedName]:
        """Leases with names, those that are waited for first; [] if no other process knows the
        store."""
        return []

    def close(self) -> None:
        """Stop publishing.  The store's lock is still held."""
