"""The page of a shared store where there are no sealed memory files: on macOS.

It is the same page as in :mod:`lsmkv.shared.system.shared_page`, in POSIX shared memory.  Its name
is made of the epoch's random number, which is in ``SHARED``: so the next owner finds the page
without any help of the members, ends the epoch, and removes the name.  The owner hands a descriptor
to each member, for reading only.  macOS allows the size of such memory to be set only once, so it
cannot be cut.

A kill leaves the name, and 64 KB of memory, until the store is opened or destroyed the next time,
or the machine starts again.
"""

from __future__ import annotations

import errno
import mmap
import os
from importlib import import_module
from typing import Any, Final

from lsmkv.shared.system import shared_page
from lsmkv.shared.system.shared_page import EPOCH, MAGIC, SEQUENCE, SIZE, SUPERSEDED, TOKEN

SharedMemory = shared_page.SharedMemory
close_descriptor = shared_page.close_descriptor

try:
    memory: Any = import_module("_posixshmem")
except ImportError:  # Windows, and interpreters built without it
    memory = None

HAS_NAMED_PAGES: Final[bool] = hasattr(memory, "shm_open")
"""True if this system has named memory."""


class SharedPage(shared_page.SharedPage):
    """A mapped page, whose memory has a name until the epoch is over."""

    @staticmethod
    def is_page(fd: int) -> bool:
        return os.fstat(fd).st_size >= SIZE  # the system rounds it up

    def supersede(self) -> None:
        if not end_page([], self.words[TOKEN]):
            name = _name(self.words[TOKEN])
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)

    def end(self) -> None:
        super().end()
        _remove(self.words[TOKEN])


def make_page(epoch: int, token: int) -> tuple[SharedPage, int]:
    """A new page, and a descriptor of it for reading only, to be handed on.  ``OSError``."""
    fd = _open(token, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    reading = -1
    try:
        os.ftruncate(fd, SIZE)
        with mmap.mmap(fd, SIZE) as begun:  # such memory cannot be written to as a file
            begun[:8] = MAGIC.to_bytes(8, "little")
        reading = _open(token, os.O_RDONLY)
        page = SharedPage(fd, True)
    except BaseException:
        _remove(token)
        os.close(fd)
        if reading >= 0:
            os.close(reading)
        raise
    page.words[EPOCH] = epoch
    page.words[TOKEN] = token
    return page, reading


def make_memory(words: int) -> tuple[SharedMemory, int]:
    """As :func:`lsmkv.shared.system.shared_page.make_memory`; the name is removed immediately."""
    token = int.from_bytes(os.urandom(8), "little")
    fd = _open(token, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    try:
        _remove(token)
        os.ftruncate(fd, 8 * words)
        return SharedMemory(fd, words, True), fd
    except BaseException:
        os.close(fd)
        raise


def map_memory(fd: int, words: int) -> SharedMemory | None:
    """As :func:`lsmkv.shared.system.shared_page.map_memory`."""
    return shared_page.map_memory(fd, words, lambda _fd: True)


def end_page(_members: list[tuple[int, int]], token: int) -> bool:
    """End the epoch of a dead owner, and remove the name of its page.

    False if this process has no access to the page, which may be another user's.  A page without a
    name is over, for each process that has it: a name is only removed after the epoch's end.
    """
    try:
        fd = _open(token, os.O_RDWR)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        page = SharedPage(fd, True)
    except (OSError, ValueError):  # its owner was killed before it was made, so no process has it
        os.close(fd)
    else:
        page.words[SEQUENCE] = SUPERSEDED
        page.close()
    _remove(token)
    return True


def _name(token: int) -> str:
    """At most 31 characters, as macOS demands."""
    return f"/lsmkv-{token:016x}"


def _open(token: int, flags: int) -> int:
    fd: int = memory.shm_open(_name(token), flags, 0o600)
    os.set_inheritable(fd, False)
    return fd


def _remove(token: int) -> None:
    try:
        memory.shm_unlink(_name(token))
    except OSError:
        pass  # it no longer has one, or never had one
