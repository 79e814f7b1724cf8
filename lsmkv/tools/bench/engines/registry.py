"""Engines by the names that ``--against`` takes."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

from lsmkv.tools.bench.engines.base import Engine
from lsmkv.tools.bench.engines.dbm import DBMEngine
from lsmkv.tools.bench.engines.leveldb import LevelDBEngine
from lsmkv.tools.bench.engines.lmdb import LMDBEngine
from lsmkv.tools.bench.engines.rocksdb import RocksDBEngine
from lsmkv.tools.bench.engines.sqlite import SQLiteEngine

OWN = "lsmkv"

_ENGINES: dict[str, Callable[[], Engine]] = {
    OWN: lambda: LevelDBEngine(OWN),
    "plyvel": lambda: LevelDBEngine("plyvel"),
    "rocksdict": RocksDBEngine,
    "lmdb": LMDBEngine,
    "sqlite3": SQLiteEngine,
    "dbm": DBMEngine,
}
_SHOWN_BY = {"sqlite3": "_sqlite3"}
"""The module to look for, where an engine's own module is there even if what it needs is not."""

PEERS = tuple(name for name in _ENGINES if name != OWN)


def make_engine(name: str) -> Engine:
    """The engine of this name; ``ImportError`` if it is not installed."""
    return _ENGINES[name]()


def is_installed(name: str) -> bool:
    """Whether the module of this name is there.  It is not imported."""
    return importlib.util.find_spec(_SHOWN_BY.get(name, name)) is not None
