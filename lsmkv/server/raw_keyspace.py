"""The keys of an ordinary store, as ``--raw`` serves them."""

from __future__ import annotations

from lsmkv.server.encoding import FORMAT_KEY, STRING, Entry
from lsmkv.server.keyspace import Database, Keyspace


class RawKeyspace(Keyspace):
    """A store without any record of the server's own: its keys are the clients' keys."""

    def _open(self) -> None:
        if self.writable and self.overlay.get(FORMAT_KEY) is not None:
            raise ValueError(
                f"{self.db.path} was written by lsmkv serve, whose records --raw would let clients"
                " break: it is served with --raw --read-only alone"
            )
        self.databases = [Database(0)]

    @property
    def stores_cursors(self) -> bool:
        """False: a cursor is kept in memory."""
        return False

    @property
    def garbage_ranges(self) -> int:
        """0: a key has no elements."""
        return 0

    def find(self, database: Database, key: bytes, kind: int = 0) -> Entry | None:
        """A key as an entry: a string without expiry.  Costs a Get."""
        value = self.overlay.get(key)
        return None if value is None else Entry(STRING, rest=value)

    def recover(self) -> None:
        """Nothing: no counter and no queue of the store is in memory."""

    def _load(self) -> None:
        """Nothing: no record says how many keys there are."""

    def undo(self) -> None:
        """Take back what the command has changed."""
        self.overlay.undo()

    def probe(self) -> None:
        """Nothing: the store has no record of the server's."""

    def expire_due(self, limit: int) -> int:
        """0: no key expires."""
        return 0

    def sweep(self, limit: int) -> bool:
        """False: nothing is to be swept."""
        return False
