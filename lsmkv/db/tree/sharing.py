"""What a store reports to, whose files other processes read and write: see :mod:`lsmkv.shared`.

``Store.sharing`` is None unless the store is shared; the class that publishes it derives from
:class:`Sharing`.  The engine knows no more of it than this.

Fast path: without it a put compares a field with None twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lsmkv.db.tree.store import Store


class Sharing:
    """Publishes a store to the other processes that have it open."""

    def attach(self, store: Store) -> None:
        """The store has been recovered.  No other thread knows it yet, and no file was removed."""
        raise NotImplementedError

    def publish(self, sequence: int) -> None:
        """Every write up to ``sequence`` happens now, for all processes.

        The log holds it, synced if it asks for that, and the memtable is about to.  Called under
        the store's lock, so that a thread of this process that has seen the new sequence can wait
        for the memtable.
        """
        raise NotImplementedError

    def withdraw(self) -> None:
        """The batch that was to be written has failed; another one may get its sequences.

        Called under the writers' lock.
        """
        raise NotImplementedError

    def installed(self, numbers: frozenset[int]) -> None:
        """The MANIFEST names a new version, of tables with these numbers, and nothing that the old
        one needs has been removed.  Called by the thread that commits."""
        raise NotImplementedError

    def close(self) -> None:
        """Nothing is published any more.  The store's lock is still held."""
        raise NotImplementedError

    def is_leased(self, number: int) -> bool:
        """Whether another process may need the table of that number, which no version of this
        process names."""
        raise NotImplementedError
