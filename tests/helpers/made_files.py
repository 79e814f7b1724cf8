"""Files of small stores, made by the engine, for what looks into them."""

from __future__ import annotations

from typing import Any, NamedTuple

import lsmkv
from lsmkv.engine.format.log import BLOCK_SIZE, frame
from lsmkv.files import StoreFiles


class Made(NamedTuple):
    """The content of a store's files by name, and what was put into it."""

    files: dict[str, bytes]
    entries: dict[bytes, bytes]
    tables: list[lsmkv.TableInfo]

    def table(self) -> bytes:
        """The content of the last table."""
        return self.files[max(name for name in self.files if name.endswith(".ldb"))]

    def log(self) -> bytes:
        """The newest log, without the room behind its records."""
        name = max(name for name in self.files if name.endswith(".log"))
        return self.files[name].rstrip(b"\0")

    def manifest(self) -> bytes:
        """The MANIFEST."""
        return self.files[max(name for name in self.files if name.startswith("MANIFEST"))]


def make_store(keys: int = 60, flushes: int = 2, **options: Any) -> Made:
    """A store of some tables and a log, whose data blocks are small."""
    env = lsmkv.MemoryEnv()
    settings: dict[str, Any] = {"block_size": 256, "compression": None} | options
    entries: dict[bytes, bytes] = {}
    with lsmkv.DB("store", create_if_missing=True, env=env, **settings) as db:
        for flush in range(flushes + 1):
            for number in range(keys):
                key, value = b"key:%03d" % number, b"%d/%d" % (number, flush)
                db.put(key, value)
                entries[key] = value
            db.delete(b"gone")
            if flush < flushes:
                db.flush()
        tables = db.tables()
        found: dict[str, bytes] = {}
        with StoreFiles(env.open_directory("store")) as files:
            for name in files.names():
                file = files.open(name)
                found[name] = file.read(0, file.size)
    return Made(found, entries, tables)


def log_of(*payloads: bytes) -> bytes:
    """A log, or a MANIFEST, of these records."""
    data = b""
    for payload in payloads:
        data += frame(payload, len(data) % BLOCK_SIZE)
    return data


def flipped(data: bytes, at: int) -> bytes:
    """The same bytes, but for one bit of one of them."""
    return data[:at] + bytes([data[at] ^ 3]) + data[at + 1 :]
