"""The engines that ``lsmkv bench --against`` measures beside lsmkv, by their names.

Each is in a module that imports its peer when the engine is made: a process that measures one
engine must not have the others in memory.
"""

from __future__ import annotations

from collections.abc import Callable

from lsmkv.tools.bench.store import Engine
from lsmkv_peers.dbm import DBMEngine
from lsmkv_peers.lmdb import LMDBEngine
from lsmkv_peers.plyvel import CheckingPlyvelEngine, PlyvelEngine
from lsmkv_peers.rocksdb import RocksDBEngine
from lsmkv_peers.sqlite import SQLiteEngine

ENGINES: dict[str, Callable[[], Engine]] = {
    "plyvel": PlyvelEngine,
    "plyvel+crc": CheckingPlyvelEngine,
    "rocksdict": RocksDBEngine,
    "lmdb": LMDBEngine,
    "sqlite3": SQLiteEngine,
    "dbm": DBMEngine,
}
