"""A directory in which new files get different names from those that the engine gives them.

A worker process writes its tables through it: their names include its owner's token until the owner
renames the files.
"""

from __future__ import annotations

from collections.abc import Callable

from lsmkv.engine.env.base import Directory, FileLock, RandomAccessFile, WritableFile


class RenamingDirectory(Directory):
    """Wraps a directory: files are created and removed under the names that ``alias`` returns.

    They are read under their own names.  The owner renames the new files and makes their names
    durable, so ``sync`` does nothing.
    """

    def __init__(self, directory: Directory, alias: Callable[[str], str]) -> None:
        self.path = directory.path
        self._directory = directory
        self._alias = alias

    def names(self) -> list[str]:
        return self._directory.names()

    def exists(self, name: str) -> bool:
        return self._directory.exists(name)

    def size(self, name: str) -> int:
        return self._directory.size(name)

    def modified(self, name: str) -> float:
        return self._directory.modified(name)

    def open(self, name: str) -> RandomAccessFile:
        return self._directory.open(name)

    def create(self, name: str) -> WritableFile:
        return self._directory.create(self._alias(name))

    def append_to(self, name: str) -> WritableFile:
        return self._directory.append_to(self._alias(name))

    def rename(self, old: str, new: str) -> None:
        self._directory.rename(self._alias(old), self._alias(new))

    def remove(self, name: str) -> None:
        self._directory.remove(self._alias(name))

    def link(self, name: str, target: Directory) -> None:
        self._directory.link(name, target)

    def sync(self) -> None:
        pass

    def lock(self, name: str) -> FileLock:
        return self._directory.lock(name)

    def lock_holder(self, name: str) -> int | None:
        return self._directory.lock_holder(name)

    def subdirectory(self, name: str, create: bool = False) -> Directory:
        return self._directory.subdirectory(name, create)

    def close(self) -> None:
        self._directory.close()
