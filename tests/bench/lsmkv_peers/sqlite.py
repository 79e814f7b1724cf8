"""sqlite3: a B-tree of two columns, with a write-ahead log."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable
from typing import Any, cast

from lsmkv.tools.bench.settings import Settings
from lsmkv.tools.bench.store import Delete, Get, Put, Records, Store
from lsmkv_peers.cannot import FOREIGN_FILES, NO_LEVELS

_TABLE = "CREATE TABLE IF NOT EXISTS kv (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID"
_PUT = "INSERT OR REPLACE INTO kv VALUES (?, ?)"
_BUSY_SECONDS = 60


class SQLiteEngine:
    """``sqlite3`` of the standard library.  It has neither filters nor compression."""

    threads = True

    def __init__(self) -> None:
        self.cannot = NO_LEVELS | FOREIGN_FILES
        self._module: Any = importlib.import_module("sqlite3")
        self.version = str(self._module.sqlite_version)

    def open(self, path: str, settings: Settings, sync: bool = False) -> SQLiteStore:
        """See ``Engine``.  NORMAL syncs at a checkpoint of the log, FULL at every commit."""
        os.makedirs(path, exist_ok=True)
        file = os.path.join(path, "kv.sqlite3")

        def connect() -> Any:
            return self._module.connect(
                file, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )

        return SQLiteStore(connect, settings.cache_size, sync)


class SQLiteStore(Store):
    """An open one: a connection for each thread."""

    def __init__(self, connect: Callable[[], Any], cache_size: int, sync: bool) -> None:
        self._new_connection = connect
        self._settings = (
            "PRAGMA journal_mode=WAL",
            f"PRAGMA synchronous={'FULL' if sync else 'NORMAL'}",
            f"PRAGMA cache_size=-{max(1, cache_size // 1024)}",
        )
        self._connections: list[Any] = []
        super().__init__(self._connect())
        self._db.execute(_TABLE)

    def putter(self) -> Put:
        execute = self._connect().execute
        return lambda key, value: execute(_PUT, (key, value))

    def getter(self, live: bool) -> Get:
        execute = self._connect().execute

        def get(key: bytes) -> bytes | None:
            row = execute("SELECT value FROM kv WHERE key = ?", (key,)).fetchone()
            return None if row is None else cast(bytes, row[0])

        return get

    def deleter(self) -> Delete:
        execute = self._connect().execute
        return lambda key: execute("DELETE FROM kv WHERE key = ?", (key,))

    def batch_writer(self) -> Callable[[Records], object]:
        connection = self._connect()

        def write(records: Records) -> None:
            connection.execute("BEGIN")
            connection.executemany(_PUT, records)
            connection.execute("COMMIT")

        return write

    def scan(self, reverse: bool) -> Iterable[tuple[bytes, bytes]]:
        order = "DESC" if reverse else "ASC"
        rows: Iterable[tuple[bytes, bytes]] = self._db.execute(
            f"SELECT key, value FROM kv ORDER BY key {order}"
        )
        return rows

    def seeker(self) -> Callable[[bytes], bytes | None]:
        execute = self._connect().execute

        def seek(key: bytes) -> bytes | None:
            row = execute("SELECT key FROM kv WHERE key >= ? ORDER BY key LIMIT 1", (key,))
            found = row.fetchone()
            return None if found is None else cast(bytes, found[0])

        return seek

    def range_reader(self, count: int) -> Callable[[bytes], int]:
        execute = self._connect().execute
        query = f"SELECT key, value FROM kv WHERE key >= ? ORDER BY key LIMIT {count:d}"
        return lambda key: len(execute(query, (key,)).fetchall())

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    def _connect(self) -> Any:
        connection = self._new_connection()
        for setting in self._settings:
            connection.execute(setting)
        self._connections.append(connection)
        return connection
