"""Repairs by LevelDB, in a process of their own, which a damaged store may kill."""

from __future__ import annotations

import importlib.util
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Any

HAS_PLYVEL = importlib.util.find_spec("plyvel") is not None
HAS_AMULET = importlib.util.find_spec("leveldb") is not None and (
    importlib.util.find_spec("leveldb._leveldb") is not None
)
"""Amulet's LevelDB, which writes the worlds of Minecraft's Bedrock edition."""

State = dict[bytes, bytes]


class LevelDBs:
    """The LevelDBs that are installed.  A context manager."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> LevelDBs:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def repaired(self, path: str, is_bedrock: bool, is_indexeddb: bool) -> State | None:
        """Repair a store, and return what can be read of it then; nothing if that kills the
        process.  None if no LevelDB is installed that reads such stores."""
        if not (HAS_AMULET if is_bedrock else HAS_PLYVEL):
            return None
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(1, mp_context=context)
        repair = _with_amulet if is_bedrock else _with_plyvel
        try:
            return self._pool.submit(repair, path, is_indexeddb).result()
        except BrokenProcessPool:
            self._pool = None
            return {}


def _with_plyvel(path: str, is_indexeddb: bool) -> State:
    import plyvel

    options: dict[str, Any] = {}
    if is_indexeddb:
        from lsmkv.indexeddb import IndexedDBComparator

        order = IndexedDBComparator()
        options = {"comparator": order.compare, "comparator_name": order.name.encode()}
    try:
        plyvel.repair_db(path, **options)
        db = plyvel.DB(path, **options)
    except (plyvel.Error, OSError):
        return {}
    found: State = {}
    try:
        for key, value in db.iterator():
            found[key] = value
    except plyvel.Error:
        pass
    db.close()
    return found


def _with_amulet(path: str, is_indexeddb: bool) -> State:
    import leveldb

    try:
        leveldb.repair_db(path)
        db = leveldb.LevelDB(path)
    except leveldb.LevelDBException:
        return {}
    found: State = {}
    try:
        for key, value in db.items():
            found[bytes(key)] = bytes(value)
    except (leveldb.LevelDBException, leveldb.LevelDBIteratorException):
        pass
    db.close()
    return found
