"""The system calls of the local file system, made to fail or to do half of what they are asked."""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from lsmkv.engine.env import local, local_file, local_log
from lsmkv.engine.env.descriptors import OPEN_TABLES

_FAILING = frozenset(
    {
        *("open", "pread", "write", "fsync", "fdatasync", "ftruncate", "fstat", "stat", "listdir"),
        *("rename", "unlink", "link", "mkdir", "rmdir", "posix_fadvise"),
        *("posix_fallocate", "preadv"),
    }
)
_OPENING = frozenset({"open", "listdir"})
"""Those that take a descriptor."""
_SHORT = frozenset({"pread", "preadv", "write"})


class FaultySystem:
    """Stands in for ``os`` and ``io`` in the local file system; see :func:`faulty_system`."""

    def __init__(self) -> None:
        self.calls = 0
        """That were counted: those that can fail, or those that can be short."""
        self.struck: list[tuple[str, str]] = []
        """Which calls it was, and the names that they were about.  ``create`` stands for those by
        which a file is made, and ``begin_sync`` for all that it calls."""
        self.has_room = False
        """Whether the last of them opens a file while tables are open, which can be closed for it.
        """
        self._lock = threading.Lock()
        self._names: dict[int, str] = {}
        self._n = 0
        self._code: int | None = None
        self._sticky = False

    def fail_at(self, n: int, code: int | None, sticky: bool) -> None:
        """Let the n-th call fail with ``code``; with None, do half of its work."""
        self._n, self._code, self._sticky = n, code, sticky

    def heal(self) -> None:
        """Let no more calls fail."""
        self._n = 0

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        return self._wrapped(name, real) if name in _FAILING else real

    def sync_content(self, fd: int) -> None:
        """``fdatasync``, which the module has looked up already."""
        self._wrapped("fdatasync", getattr(os, "fdatasync", os.fsync))(fd)

    def FileIO(self, fd: int, mode: str, closefd: bool) -> io.FileIO:
        """One whose ``write`` is counted, and fails, as that of ``os``."""
        system = self

        class File(io.FileIO):
            def write(self, data: Any) -> int:
                real = super().write
                written: int = system._wrapped("write", lambda _, some: real(some))(fd, data)
                return written

        return File(fd, mode, closefd)

    def _wrapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            about = self._about(arguments)
            if self._strikes(name, _purpose(name, sys._getframe().f_back), about):
                if self._code is not None:
                    raise OSError(self._code, os.strerror(self._code), about)
                arguments = _halved(name, arguments)
            result = real(*arguments, **keywords)
            if name == "open":
                self._names[result] = about
            return result

        return call

    def _about(self, arguments: tuple[Any, ...]) -> str:
        first = arguments[0]
        return self._names.get(first, "") if isinstance(first, int) else os.fspath(first)

    def _strikes(self, name: str, purpose: str, about: str) -> bool:
        with self._lock:
            if self._n > 0 and self._code is None and name not in _SHORT:
                return False
            self.calls += 1
            struck = self._n > 0 and (
                self.calls == self._n or (self._sticky and self.calls > self._n)
            )
            if struck:
                self.struck.append((purpose, about))
                self.has_room = name in _OPENING and len(OPEN_TABLES) > 0
            return struck


def _purpose(name: str, caller: FrameType | None) -> str:
    """What the call is for; None is a thread of compiled code, which has no frames."""
    if caller is None:
        return name
    function = caller.f_code.co_name
    above = caller.f_back
    if "begin_sync" in (function, above.f_code.co_name if above else ""):
        return "begin_sync"
    return "create" if function == "_open" and caller.f_locals["flags"] & os.O_CREAT else name


def _halved(name: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    if name == "write":
        fd, data = arguments
        return fd, data[: max(1, len(data) // 2)]
    if name == "preadv":
        fd, (view,), offset = arguments
        return fd, [view[: max(1, len(view) // 2)]], offset
    fd, length, offset = arguments
    return fd, length if length < 2 else length // 2, offset


@contextmanager
def faulty_system() -> Iterator[FaultySystem]:
    """Put one in the place of ``os`` and ``io``, for the local file system alone."""
    system = FaultySystem()
    modules: tuple[Any, ...] = (local, local_file, local_log)
    content: Any = local_file
    real = content.io, content.SYNC_CONTENT
    try:
        for module in modules:
            module.os = system
        content.io = system
        content.SYNC_CONTENT = system.sync_content
        yield system
    finally:
        for module in modules:
            module.os = os
        content.io, content.SYNC_CONTENT = real
