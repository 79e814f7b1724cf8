"""Stores in memory whose files a test takes, changes, and repairs."""

from __future__ import annotations

from collections.abc import Iterable

from live_copies import STORE, Files

import lsmkv
from lsmkv import DB, MemoryEnv

OPTIONS = {"compression": None, "write_buffer_size": 65536}


class Store:
    """A store in memory, and copies of its files."""

    def __init__(self) -> None:
        self.env = MemoryEnv()
        self.db = DB(STORE, create_if_missing=True, env=self.env, **OPTIONS)

    def fill(self, numbers: Iterable[int], value: bytes) -> None:
        """Put a value under each of some numbers, as keys of three digits."""
        for number in numbers:
            self.db.put(b"%03d" % number, value)

    def files(self) -> Files:
        """The files as they are now."""
        with self.env.open_directory(STORE) as directory:
            files = {}
            for name in directory.names():
                if name not in ("LOCK", "LOG") and not name.startswith("lost"):
                    with directory.open(name) as file:
                        files[name] = file.read(0, file.size)
            return files


def env_of(files: Files) -> MemoryEnv:
    """A file system in which these files are a store."""
    env = MemoryEnv()
    with env.open_directory(STORE, create=True) as directory:
        for name, content in files.items():
            with directory.create(name) as file:
                file.append(content)
        directory.sync()
    return env


def repaired(files: Files) -> tuple[dict[bytes, bytes], lsmkv.RepairPlan]:
    """What a repair makes of these files, and its plan."""
    env = env_of(files)
    plan = lsmkv.repair_db(STORE, into="/new", env=env)
    with DB("/new", env=env) as db:
        assert db.verify() == []
        return dict(db), plan


def without(files: Files, *kinds: str) -> Files:
    return {name: files[name] for name in files if not name.endswith(kinds)}


def only(files: Files, kind: str) -> Files:
    """The files whose names contain this."""
    return {name: files[name] for name in files if kind in name}


def name_of(files: Files, kind: str) -> str:
    """The name of the only such file."""
    (name,) = only(files, kind)
    return name


def tables(files: Files) -> list[str]:
    """The names of the tables, the oldest first."""
    return sorted(only(files, ".ldb"))


def newest(files: Files) -> str:
    """The name of the newest table."""
    return tables(files)[-1]


def foreign(kind: str, numbers: Iterable[int]) -> bytes:
    """A table or the log of another store, with keys of this one."""
    other = Store()
    other.fill(numbers, b"foreign")
    if kind == ".ldb":
        other.db.flush()
    files = other.files()
    other.db.close()
    return files[name_of(files, kind)]
