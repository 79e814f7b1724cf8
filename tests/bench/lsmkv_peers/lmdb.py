"""lmdb: a B+ tree in a memory map."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from lsmkv.tools.bench.settings import KEY_SIZE, Settings
from lsmkv.tools.bench.store import Delete, Get, Put, Records, Store
from lsmkv_peers.cannot import FOREIGN_FILES, NO_LEVELS

_GIB = 1024**3


class LMDBEngine:
    """``lmdb``.  It has neither filters, nor compression, nor a cache but the system's."""

    threads = True

    def __init__(self) -> None:
        self.cannot = NO_LEVELS | FOREIGN_FILES
        self._module: Any = importlib.import_module("lmdb")
        numbers = ".".join(map(str, self._module.version()))
        self.version = f"{self._module.__version__} (LMDB {numbers})"

    def open(self, path: str, settings: Settings, sync: bool = False) -> LMDBStore:
        """See ``Engine``.  Without a writable map, what is committed is the system's."""
        entries = settings.num * (KEY_SIZE + settings.value_size)
        environment = self._module.open(
            path, map_size=_GIB + 16 * entries, sync=sync, max_readers=1024
        )
        return LMDBStore(environment)


class LMDBStore(Store):
    """An open one."""

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        self._readers: list[Any] = []

    def putter(self) -> Put:
        begin = self._db.begin

        def put(key: bytes, value: bytes) -> None:
            with begin(write=True) as transaction:
                transaction.put(key, value)

        return put

    def getter(self, live: bool) -> Get:
        """One transaction for all Gets is the idiom; a live one takes one for each."""
        begin = self._db.begin
        if not live:
            get: Get = self._reader().get
            return get

        def get_now(key: bytes) -> bytes | None:
            with begin() as transaction:
                value: bytes | None = transaction.get(key)
                return value

        return get_now

    def deleter(self) -> Delete:
        begin = self._db.begin

        def delete(key: bytes) -> None:
            with begin(write=True) as transaction:
                transaction.delete(key)

        return delete

    def batch_writer(self) -> Callable[[Records], object]:
        begin = self._db.begin

        def write(records: Records) -> None:
            with begin(write=True) as transaction:
                put = transaction.put
                for key, value in records:
                    put(key, value)

        return write

    def scan(self, reverse: bool) -> Iterable[tuple[bytes, bytes]]:
        # The transaction ends with the rows: a queue makes thousands of them, one after the other.
        cursor = self._db.begin().cursor()
        rows: Iterator[tuple[bytes, bytes]] = cursor.iterprev() if reverse else cursor.iternext()
        return rows

    def seeker(self) -> Callable[[bytes], bytes | None]:
        reader = self._reader()

        def seek(key: bytes) -> bytes | None:
            cursor = reader.cursor()
            found: bytes | None = cursor.key() if cursor.set_range(key) else None
            return found

        return seek

    def range_reader(self, count: int) -> Callable[[bytes], int]:
        reader = self._reader()

        def read(key: bytes) -> int:
            cursor = reader.cursor()
            if not cursor.set_range(key):
                return 0
            return len(list(islice(cursor, count)))

        return read

    def close(self) -> None:
        for reader in self._readers:
            reader.abort()
        self._db.close()

    def _reader(self) -> Any:
        reader = self._db.begin()
        self._readers.append(reader)
        return reader
