"""Filling a store of ``lsmkv serve`` by commands, without a server.

Its position is a record of the store, which is written together with the data.  So an interrupted
import can continue.
"""

from __future__ import annotations

from typing import NamedTuple

from lsmkv.engine.db.db import DB
from lsmkv.server.commands import COMMANDS
from lsmkv.server.database import DATABASES
from lsmkv.server.encoding import IMPORT, U32, U64
from lsmkv.server.engine import Engine
from lsmkv.server.keyspace import Keyspace
from lsmkv.server.moving.recreating import Words
from lsmkv.server.resp import CommandError
from lsmkv.server.settings import Settings

_MOST_PENDING = 4 << 20
"""Bytes of requests after which what they have changed is written."""


class Position(NamedTuple):
    """The position of an interrupted import."""

    source: bytes
    """The run id of the source server."""
    database: int
    cursor: int
    """The cursor of SCAN; the keys before it are imported."""


class Importer:
    """A store that commands fill.

    Call order: ``((select | run)* reach)* finish``.  Raises ``ValueError`` if the store holds data
    other than the server's.
    """

    def __init__(self, db: DB) -> None:
        self._space = Keyspace(db)
        self._engine = Engine(db, self._space, COMMANDS, Settings(slowlog_slower_than=-1))
        self._session = self._engine.open_session()
        self._pending = 0

    @property
    def position(self) -> Position | None:
        """The position of an interrupted import; None if there is none."""
        record = self._space.records.get(IMPORT)
        if record is None:
            return None
        (cursor,) = U64.unpack_from(record, 4)
        return Position(record[12:], U32.unpack_from(record)[0], cursor)

    def select(self, database: int) -> None:
        """Select the database of the following commands.  ``ValueError`` if there is none."""
        if database >= DATABASES:
            raise ValueError(f"database {database} has keys: lsmkv has the databases 0 to 15")
        self._session.database = self._space.databases[database]

    def run(self, words: Words) -> None:
        """Run a command that changes keys.  ``ValueError`` if it fails."""
        found = self._engine.command_of(words)
        assert found is not None
        reply = self._engine.call(self._session, found, words)
        if isinstance(reply, CommandError):
            shown = b" ".join(words[:2])[:200].decode("utf-8", "backslashreplace")
            raise ValueError(f"{shown}: {reply}")
        self._pending += sum(map(len, words))
        if self._pending >= _MOST_PENDING:
            self._commit()

    def _commit(self) -> None:
        if self._space.has_changes:
            self._space.commit()
        self._pending = 0

    def reach(self, position: Position) -> None:
        """Write the changes and the import's position as one record."""
        record = U32.pack(position.database) + U64.pack(position.cursor) + position.source
        self._space.records.put(IMPORT, record)
        self._space.keep()
        self._commit()

    def finish(self) -> None:
        """Write the rest at the end of the import."""
        if self.position is not None:
            self._space.records.delete(IMPORT)
            self._space.keep()
        self._commit()
