"""dbm: the best of the standard library's kinds that this Python has."""

from __future__ import annotations

import importlib
import os
from typing import Any

from lsmkv.tools.bench.settings import Settings
from lsmkv.tools.bench.store import Delete, Put, Store
from lsmkv_peers.cannot import FOREIGN_FILES, NO_LEVELS

_KINDS = ("dbm.gnu", "dbm.sqlite3", "dbm.ndbm", "dbm.dumb")
_UNORDERED = dict.fromkeys(
    ("readseq", "readreverse", "seekrandom", "seek10", "scandeleted", "queue"),
    "its keys are in no order",
)
_NO_LOG = {"openkilled": "a killed process loses what it has buffered"}
_NO_SYNC = {"fillsync": "it cannot sync a single write"}
_NO_BATCH = {"fillbatch": "it has no batches"}
_WHOLE_INDEX = {"deleterandom": "each deletion writes the whole index"}


class DBMEngine:
    """``dbm``: gnu, sqlite3, ndbm or dumb."""

    threads = False

    def __init__(self) -> None:
        self._kind, self._module = _best_kind()
        self.version = self._kind.removeprefix("dbm.")
        self.cannot = _UNORDERED | NO_LEVELS | FOREIGN_FILES | _NO_BATCH | _NO_LOG
        if self._kind != "dbm.gnu":
            self.cannot = self.cannot | _NO_SYNC
        if self._kind == "dbm.dumb":
            self.cannot = self.cannot | _WHOLE_INDEX

    def open(self, path: str, settings: Settings, sync: bool = False) -> DBMStore:
        """See ``Engine``."""
        os.makedirs(path, exist_ok=True)
        return DBMStore(self._module.open(os.path.join(path, "kv"), "c"), sync)


class DBMStore(Store):
    """An open one."""

    def __init__(self, db: Any, sync: bool) -> None:
        super().__init__(db)
        self._sync = sync

    def putter(self) -> Put:
        put: Put = self._db.__setitem__
        if not self._sync:
            return put
        sync = self._db.sync

        def put_and_sync(key: bytes, value: bytes) -> None:
            put(key, value)
            sync()

        return put_and_sync

    def deleter(self) -> Delete:
        delete: Delete = self._db.__delitem__
        return delete


def _best_kind() -> tuple[str, Any]:
    for kind in _KINDS:
        try:
            return kind, importlib.import_module(kind)
        except ImportError:
            continue
    raise ImportError("no kind of dbm is installed")
