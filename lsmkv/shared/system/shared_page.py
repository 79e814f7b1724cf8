"""The page of a shared store: words of memory that its owner writes and all its processes read.

A page lies in a memory file without a name.  The owner hands it to each member with the member's
connection, for reading only.  It is sealed: it cannot be shortened, so no process that has mapped
it can be killed by a bus error.  It lives as long as a process has it open.

=============  ====================================================================================
word           what it is
=============  ====================================================================================
0              ``MAGIC``
1              the epoch: the time of one owner
2              a random number, by which a page is known again
3              the sequence of the last write that has happened; ``SUPERSEDED`` after the epoch
4              how many versions the MANIFEST has had, counted through all epochs
5              whose turns there are (``shared/turns.py``); 0 of an owner that grants none
8 + 3 s        of slot ``s``: the number of the request that is, or was, committed last
9 + 3 s        the sequence of its first operation
10 + 3 s       how many operations it has
=============  ====================================================================================

Each word is stored in one step.  No order between two stores is assumed: what a reader concludes
from one word it checks by what it reads from the files after it.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from lsmkv.engine.env import forks
from lsmkv.engine.env.descriptors import is_one_of_the_last
from lsmkv.engine.env.local_file import Descriptor
from lsmkv.engine.util.signals import deferred

try:
    fcntl: Any = import_module("fcntl")
except ImportError:  # Windows, where no store is shared
    fcntl = None

linux: Any = os
"""``os``, with what only some systems have."""

MAGIC: Final = 0x3173_6B76_6D73_6C00
EPOCH: Final = 1
TOKEN: Final = 2
SEQUENCE: Final = 3
VERSIONS: Final = 4
TURNS: Final = 5
SUPERSEDED: Final = (1 << 63) - 1
"""A sequence that no store assigns: the epoch of the page is over."""
SLOTS: Final = 2048
"""Connections that an owner accepts at a time."""
_FIRST_SLOT: Final = 8
_SLOT_WORDS: Final = 3
_WORDS: Final = _FIRST_SLOT + _SLOT_WORDS * SLOTS
SIZE: Final = 8 * _WORDS

HAS_PAGES: bool = hasattr(os, "memfd_create") and hasattr(fcntl, "F_ADD_SEALS")
"""True if this system has memory files that can be sealed."""


class SharedPage(Descriptor):
    """A mapped page.  The owner's can be written to."""

    def __init__(self, fd: int, writable: bool) -> None:
        """``fd`` stays open until :meth:`close`.  Raises ``ValueError`` if it is not a page.

        The caller defers signals until this object has it.
        """
        if not self.is_page(fd):
            raise ValueError("not a page of a shared store")
        access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        self._map = mmap.mmap(fd, SIZE, access=access)
        self.words: Any = memoryview(self._map).cast("Q")
        """The words, as the table in the module's text has them."""
        if self.words[0] != MAGIC:
            raise ValueError("not a page of a shared store")
        super().__init__(fd, "")  # last: from here on there is something to close

    @property
    def fd(self) -> int:
        """The descriptor; -1 once closed.  The memory stays mapped while :attr:`words` is used."""
        return self._fd

    @staticmethod
    def is_page(fd: int) -> bool:
        """Return True if a descriptor is that of memory of the right size, which no process can
        shorten."""
        return os.fstat(fd).st_size == SIZE and _is_sealed(fd)

    @property
    def superseded(self) -> bool:
        """True if the epoch of this page is over."""
        return bool(self.words[SEQUENCE] == SUPERSEDED)

    def note(self, slot: int, request: int, first: int, count: int) -> None:
        """Note which sequences a request is about to get."""
        at = _FIRST_SLOT + _SLOT_WORDS * slot
        words = self.words
        words[at] = 0  # so that a kill in between leaves no half of it
        words[at + 1] = first
        words[at + 2] = count
        words[at] = request

    def clear(self, slot: int) -> None:
        """Note that the slot's request was not written."""
        self.words[_FIRST_SLOT + _SLOT_WORDS * slot] = 0

    def noted(self, slot: int) -> tuple[int, int]:
        """The number of the slot's last request, and the sequence of its last operation.

        What it says of a request is final once the owner is dead.
        """
        at = _FIRST_SLOT + _SLOT_WORDS * slot
        words = self.words
        return words[at], words[at + 1] + words[at + 2] - 1

    def supersede(self) -> None:
        """End the epoch of a dead owner, through any descriptor of its page."""
        with deferred:
            fd = os.open(f"/proc/self/fd/{self.fd}", os.O_RDWR | linux.O_CLOEXEC)
            other = SharedPage(fd, True)
            try:
                other.words[SEQUENCE] = SUPERSEDED
            finally:
                other.close()

    def end(self) -> None:
        """End one's own epoch: no other owner looks for this page."""
        self.words[SEQUENCE] = SUPERSEDED


def make_page(epoch: int, token: int) -> tuple[SharedPage, int]:
    """A new page, and a descriptor of it for reading only, to be handed on.  ``OSError``."""
    fd = _sealed_memory("lsmkv page", SIZE)
    reading = -1
    try:
        linux.pwrite(fd, MAGIC.to_bytes(8, "little"), 0)
        reading = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | linux.O_CLOEXEC)
        page = SharedPage(fd, True)
    except BaseException:
        os.close(fd)
        if reading >= 0:
            os.close(reading)
        raise
    page.words[EPOCH] = epoch
    page.words[TOKEN] = token
    return page, reading


def _sealed_memory(name: str, size: int) -> int:
    """A descriptor of new memory of this user, whose size cannot be changed."""
    fd: int = linux.memfd_create(name, linux.MFD_CLOEXEC | linux.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(fd, size)
        linux.fchmod(fd, 0o600)
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _is_sealed(fd: int) -> bool:
    """Return True if no process can shorten a file: only then may it be mapped."""
    try:
        return bool(fcntl.fcntl(fd, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK)
    except OSError:
        return False  # no memory file


def map_memory(
    fd: int, words: int, is_sealed: Callable[[int], bool] = _is_sealed
) -> SharedMemory | None:
    """The memory of another process, for reading; None if it is no such memory, if it could be cut
    while it is mapped, or if this process has used half of its descriptors."""
    try:
        if is_one_of_the_last(2 * fd) or os.fstat(fd).st_size < 8 * words or not is_sealed(fd):
            return None
        return SharedMemory(fd, words, False)
    except (OSError, ValueError):
        return None


def find_page(pid: int, fd: int, token: int) -> SharedPage | None:
    """Return the page that a process has open under that descriptor; None if there is none, or the
    process has ended."""
    try:
        found = os.open(f"/proc/{pid}/fd/{fd}", os.O_RDONLY | linux.O_CLOEXEC | linux.O_NONBLOCK)
    except OSError:
        return None
    try:
        page = SharedPage(found, False)
    except (OSError, ValueError):
        os.close(found)
        return None
    if page.words[TOKEN] != token:
        page.close()
        return None
    return page


def end_page(members: list[tuple[int, int]], token: int) -> bool:
    """End the epoch of a dead owner: its page is that of one of these processes and descriptors.

    False if none of them has it.
    """
    for pid, fd in members:
        found = find_page(pid, fd, token)
        if found is not None:
            try:
                found.supersede()
            finally:
                found.close()
            return True
    return False


class SharedMemory:
    """Words of memory that a member counts in, and its owner reads (``shared/counting.py``).

    A forked child has its own words instead of the parent's.
    """

    def __init__(self, fd: int, words: int, writable: bool) -> None:
        """``fd`` stays the caller's.  ``OSError``."""
        access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        self._size = words
        with forks.changing:
            mapped = mmap.mmap(fd, 8 * words, access=access, **_NO_DESCRIPTOR)
            self.words: Any = memoryview(mapped).cast("Q")
            forks.note(self)

    def close_in_child(self) -> None:
        """Release the parent's memory in a forked child."""
        self.words = [0] * self._size


_NO_DESCRIPTOR: Final[dict[str, Any]] = {"trackfd": False} if sys.version_info >= (3, 13) else {}
"""Otherwise a mapping keeps its own descriptor."""


def make_memory(words: int) -> tuple[SharedMemory, int]:
    """Memory that this process writes, and a descriptor of it for another one.  ``OSError``."""
    fd = _sealed_memory("lsmkv counts", 8 * words)
    try:
        return SharedMemory(fd, words, True), fd
    except BaseException:
        os.close(fd)
        raise


def close_descriptor(fd: int) -> None:
    """Close a descriptor that may be closed already, in a forked child for example."""
    try:
        os.close(fd)
    except OSError:
        pass
