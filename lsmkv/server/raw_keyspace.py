"""The keys of an ordinary store, as ``--raw`` serves them."""

from __future__ import annotations

from lsmkv.server.database import Database
from lsmkv.server.encoding import FORMAT_KEY, STRING, Entry
from lsmkv.server.keyspace import Keyspace


class RawKeyspace(Keyspace):
    """A store without the server's own records: its keys are the clients' keys."""

    def _open(self) -> None:
        if self.writable and self.records.get(FORMAT_KEY) is not None:
            raise ValueError(
                f"{self.db.path} was written by lsmkv serve, and with --raw clients could break "
                "its records. Use --raw --read-only, or serve it without --raw."
            )
        self.databases = [Database(0)]

    @property
    def stores_cursors(self) -> bool:
        """False: cursors are kept in memory."""
        return False

    @property
    def evictable(self) -> bool:
        """False: the store may hold anything."""
        return False

    @property
    def garbage_ranges(self) -> int:
        """0: no key has elements."""
        return 0

    def find(self, database: Database, key: bytes, kind: int = 0) -> Entry | None:
        """A key as an entry: a string without expiry.  Costs a Get."""
        value = self.records.get(key)
        if self.counting:
            self.note_lookup(value is not None)
        return None if value is None else Entry(STRING, rest=value)

    def recover(self) -> None:
        """Does nothing: no counter or queue of the store is in memory."""

    def _load(self) -> None:
        """Does nothing: no record stores the number of keys."""

    def undo(self, mark: tuple[int, int] = (0, 0)) -> None:
        """Undo the command's changes, all or those since a mark."""
        self.events.undo(mark[0])
        self.records.undo(mark[0])

    def probe(self) -> None:
        """Does nothing: the store has no server records."""

    def expire_due(self, limit: int) -> int:
        """0: no key expires."""
        return 0

    def sweep(self, limit: int) -> bool:
        """False: there is nothing to sweep."""
        return False
