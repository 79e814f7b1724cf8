"""What tests of whole stores share: content, views of the files, and an env that waits."""

from __future__ import annotations

import errno
import os
import pathlib
import threading
from collections.abc import Iterable
from typing import Any

from lsmkv import DB, Directory, Env, MemoryEnv
from lsmkv.engine.format.filenames import FileType, parse_filename

ENTRIES = {b"key%04d" % n: b"value %d" % n * 4 for n in range(300)}


TINY: dict[str, Any] = {
    "write_buffer_size": 1024,
    "max_file_size": 1024,
    "block_size": 256,
    "block_restart_interval": 4,
}


SMALL: dict[str, Any] = {
    "block_size": 256,
    "max_file_size": 4096,
    "compression": None,
    "seek_compaction": False,
}
"""Many blocks and tables, and no compactions for seeks."""


def some(first: int, last: int) -> dict[bytes, bytes]:
    """Numbered entries."""
    return {b"key%04d" % n: b"value %d " % n * 4 for n in range(first, last)}


def fill(db: Any, entries: dict[bytes, bytes] | None = None) -> None:
    for key, value in (ENTRIES if entries is None else entries).items():
        db.put(key, value)


def put_numbered(db: Any, key: bytes, numbers: Iterable[int], value: bytes) -> None:
    """Put a value under each of some numbers; ``key`` is a format such as ``b"key%03d"``."""
    for number in numbers:
        db.put(key % number, value)


def pairs_in(path: str | pathlib.Path, **options: Any) -> dict[bytes, bytes]:
    """The keys and values of a store, which is opened for reading only unless options say so."""
    settings: dict[str, Any] = {"read_only": True} | options
    with DB(path, **settings) as db:
        return dict(db)


def files(path: str, kind: FileType) -> set[str]:
    """The names of the engine's files of one type."""
    found = set()
    for name in os.listdir(path):
        parsed = parse_filename(name)
        if parsed is not None and parsed[1] is kind:
            found.add(name)
    return found


def names(env: Env, path: str = "/") -> list[str]:
    """All names in a directory of an env."""
    with env.open_directory(path) as directory:
        return sorted(directory.names())


def rewrite(directory: Directory, name: str, data: bytes) -> None:
    """Give a file of a directory another content, durably."""
    directory.remove(name)
    with directory.create(name) as file:
        file.append(data)
        file.sync()
    directory.sync()


def contents(path: str | pathlib.Path) -> dict[str, bytes]:
    """Every file of a directory, byte for byte."""
    return {p.name: p.read_bytes() for p in pathlib.Path(path).iterdir() if p.is_file()}


def data_files(path: str) -> dict[str, bytes]:
    """The files that hold data or lead to it."""
    return {
        name: data for name, data in contents(path).items() if not name.startswith(("LOG", "LOCK"))
    }


def log_of(store: str | pathlib.Path) -> pathlib.Path:
    """The only log."""
    (log,) = pathlib.Path(store).glob("*.log")
    return log


def flip(path: str | pathlib.Path, at: int, mask: int = 0xFF) -> None:
    """Flip bits of a byte: all, or those of the mask."""
    file = pathlib.Path(path)
    data = bytearray(file.read_bytes())
    data[at] ^= mask
    file.write_bytes(data)


def settle(db: DB) -> None:
    """Wait until background work, should there be any, has ended."""
    assert db._background is not None
    db._background.wait_until_idle()


def pinned(db: DB) -> int:
    """How many sequences are pinned."""
    assert db._store is not None
    return len(db._store.pinned)


def files_at(db: DB) -> list[int]:
    return [int(str(db.get_property(f"leveldb.num-files-at-level{n}"))) for n in range(7)]


class GatedEnv(MemoryEnv):
    """Holds up every creation of a table until it is let go, or fails then.

    With ``no_logs`` there is no room for a log before one is removed, and with ``half`` its name
    is there all the same.
    """

    def __init__(self) -> None:
        super().__init__()
        self.open = threading.Event()
        self.open.set()
        self.waiting = threading.Event()
        self.full = False
        self.no_logs = self.half = False
        self.refused = 0
        self.logs_made = 0

    def open_directory(self, path: str, create: bool = False) -> Any:
        directory: Any = super().open_directory(path, create)
        inner = directory.create

        def gated(name: str) -> Any:
            if name.endswith(".ldb"):
                self.waiting.set()
                self.open.wait()
                if self.full:
                    raise OSError(errno.ENOSPC, "disk full")
            if self.no_logs and name.endswith(".log"):
                self.refused += 1
                if self.half:
                    inner(name).close()
                raise OSError(errno.ENOSPC, "disk full")
            self.logs_made += name.endswith(".log")
            return inner(name)

        def remove(name: str) -> None:
            inner_remove(name)
            if name.endswith(".log"):
                self.no_logs = False

        inner_remove = directory.remove
        directory.create = gated
        directory.remove = remove
        return directory
