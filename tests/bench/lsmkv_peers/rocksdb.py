"""rocksdict: RocksDB, in its raw mode (bytes as they are)."""

from __future__ import annotations

import importlib
import importlib.metadata
import time
from collections.abc import Callable, Iterable
from typing import Any

from lsmkv.tools.bench.settings import Settings
from lsmkv.tools.bench.store import Records, Store
from lsmkv_peers.cannot import FOREIGN_FILES

_CALM = 0.3
_FULL_LEVEL = {"compact": "four tables on level 0 start a compaction before the clock does"}
_BUSY = (
    "rocksdb.num-running-compactions",
    "rocksdb.num-running-flushes",
    "rocksdb.compaction-pending",
    "rocksdb.mem-table-flush-pending",
)


class RocksDBEngine:
    """``rocksdict``."""

    threads = True

    def __init__(self) -> None:
        self.cannot = FOREIGN_FILES | _FULL_LEVEL
        self._module: Any = importlib.import_module("rocksdict")
        self.version = importlib.metadata.version("rocksdict")

    def open(self, path: str, settings: Settings, sync: bool = False) -> RocksDBStore:
        """See ``Engine``."""
        module = self._module
        options = module.Options(raw_mode=True)
        options.create_if_missing(True)
        if not settings.own_defaults:
            self._set(options, settings)
        db = module.Rdict(path, options)
        if sync:
            write_options = module.WriteOptions()
            write_options.sync = True
            db.set_write_options(write_options)
        return RocksDBStore(db, module.WriteBatch)

    def _set(self, options: Any, settings: Settings) -> None:
        module = self._module
        options.set_write_buffer_size(settings.write_buffer_size)
        codec = module.DBCompressionType
        options.set_compression_type(
            codec.none() if settings.compression == "none" else codec.snappy()
        )
        blocks = module.BlockBasedOptions()
        if settings.cache_size > 0:
            blocks.set_block_cache(module.Cache(settings.cache_size))
        else:
            blocks.disable_cache()
        if settings.bloom_bits > 0:
            blocks.set_bloom_filter(settings.bloom_bits, False)
        options.set_block_based_table_factory(blocks)


class RocksDBStore(Store):
    """An open one."""

    def __init__(self, db: Any, new_batch: Callable[..., Any]) -> None:
        super().__init__(db)
        self._new_batch = new_batch

    def batch_writer(self) -> Callable[[Records], object]:
        new_batch, write_batch = self._new_batch, self._db.write

        def write(records: Records) -> None:
            batch = new_batch(raw_mode=True)
            put = batch.put
            for key, value in records:
                put(key, value)
            write_batch(batch)

        return write

    def scan(self, reverse: bool) -> Iterable[tuple[bytes, bytes]]:
        rows: Iterable[tuple[bytes, bytes]] = self._db.items(backwards=reverse)
        return rows

    def seeker(self) -> Callable[[bytes], bytes | None]:
        new_iterator = self._db.iter

        def seek(key: bytes) -> bytes | None:
            cursor = new_iterator()
            cursor.seek(key)
            found: bytes | None = cursor.key() if cursor.valid() else None
            return found

        return seek

    def range_reader(self, count: int) -> Callable[[bytes], int]:
        new_iterator = self._db.iter

        def read(key: bytes) -> int:
            cursor = new_iterator()
            cursor.seek(key)
            found = []
            for _ in range(count):
                if not cursor.valid():
                    break
                found.append((cursor.key(), cursor.value()))
                cursor.next()
            return len(found)

        return read

    def flush(self) -> None:
        self._db.flush()

    def compact(self) -> None:
        self._db.compact_range(None, None)

    def settle(self) -> None:
        while any(self._db.property_int_value(name) for name in _BUSY):
            time.sleep(_CALM)

    def levels(self) -> list[int]:
        return [
            int(self._db.property_value(f"rocksdb.num-files-at-level{level}") or 0)
            for level in range(7)
        ]
