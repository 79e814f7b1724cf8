"""A file system in memory that says of each call when it is about to be made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lsmkv import MemoryEnv
from lsmkv.engine.env.memory import MemoryDirectory


def ignore(call: str, name: str) -> None:
    """No hook."""


class HookedEnv(MemoryEnv):
    """``before`` is called with each call and the name of its file; it may wait, or raise.

    Directories have the calls ``create``, ``open``, ``rename`` and ``remove``, and with their own
    path ``names`` and ``sync directory``; files have ``append``, ``sync`` and ``read``.
    """

    def __init__(
        self, before: Callable[[str, str], None] = ignore, files_of: MemoryEnv | None = None
    ) -> None:
        super().__init__(None if files_of is None else files_of.root)
        if files_of is not None:
            self.mutex = files_of.mutex
        self.before = before

    def open_directory(self, path: str, create: bool = False) -> MemoryDirectory:
        inner = super().open_directory(path, create)
        directory = _HookedDirectory(path, self.mutex, inner._folder)
        directory.env = self
        return directory


class _HookedDirectory(MemoryDirectory):
    env: HookedEnv

    def names(self) -> list[str]:
        self.env.before("names", self.path)
        return super().names()

    def sync(self) -> None:
        self.env.before("sync directory", self.path)
        super().sync()

    def create(self, name: str) -> Any:
        self.env.before("create", name)
        return self._hooked(super().create(name), name, ("append", "sync"))

    def open(self, name: str) -> Any:
        self.env.before("open", name)
        return self._hooked(super().open(name), name, ("read",))

    def rename(self, old: str, new: str) -> None:
        self.env.before("rename", old)
        super().rename(old, new)

    def remove(self, name: str) -> None:
        self.env.before("remove", name)
        super().remove(name)

    def _hooked(self, file: Any, name: str, calls: tuple[str, ...]) -> Any:
        for call in calls:
            setattr(file, call, self._before(call, name, getattr(file, call)))
        return file

    def _before(self, call: str, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def hooked(*arguments: Any) -> Any:
            self.env.before(call, name)
            return method(*arguments)

        return hooked
