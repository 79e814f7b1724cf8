"""Facilities by which this system's processes share stores in local directories."""

from __future__ import annotations

import os
import sys
from typing import Any, Final

from lsmkv.engine.env import forks
from lsmkv.engine.env.base import Directory, FileLock
from lsmkv.engine.env.local import LocalDirectory
from lsmkv.engine.env.lock import is_open_to_members, lock_for_member, unlock
from lsmkv.engine.format.filenames import SHARED
from lsmkv.engine.util.signals import deferred
from lsmkv.shared.system import named_page, named_sockets, shared_page, sockets
from lsmkv.shared.system.shared_file import SharedFile, open_shared
from lsmkv.shared.system.sharing import SharingPlace

_NAMED: bool = not shared_page.HAS_PAGES and sys.platform == "darwin" and named_page.HAS_NAMED_PAGES
SHARES: Final[bool] = shared_page.HAS_PAGES or _NAMED
"""True if processes can share a store on this platform."""
PAGES: Final[Any] = named_page if _NAMED else shared_page
SOCKETS: Final[Any] = named_sockets if _NAMED else sockets


class MemberLock(FileLock):
    """A member's part of the store's lock, by its own descriptor.

    A forked child closes it immediately: it would keep the lock of a parent that is killed.
    """

    def __init__(self, fd: int) -> None:
        """Caller defers signals, and holds ``forks.changing``."""
        self.fd = fd
        """The descriptor; -1 once closed."""
        forks.note(self)

    def close(self) -> None:
        """Give it up, also for children that were forked without this module's knowledge."""
        with deferred, forks.changing:
            fd, self.fd = self.fd, -1
            if fd >= 0:
                unlock(fd)
                os.close(fd)

    def close_in_child(self) -> None:
        """In a forked child: the lock stays the parent's."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        if self.fd >= 0:  # at the interpreter's end what close() needs may be gone
            self.close()


class LocalPlace(SharingPlace):
    """A directory of the local file system whose store processes share."""

    def __init__(self, directory: LocalDirectory) -> None:
        self._directory = directory
        self._claim: SharedFile | None = None

    def shared_file(self, name: str, create: bool) -> SharedFile:
        flags = os.O_RDWR | os.O_CREAT if create else os.O_RDONLY
        open_file = self._directory.open_descriptor
        return open_shared(lambda: open_file(name, flags), os.path.join(self._directory.path, name))

    def lock_as_owner(self, name: str) -> FileLock:
        return self._directory.lock(name, shares=True)

    def lock_as_member(self, name: str) -> FileLock | None:
        lock = self._open_lock(name)
        if lock is None:
            return None
        try:
            lock_for_member(lock.fd)
        except BlockingIOError:
            lock.close()
            return None
        except BaseException:
            lock.close()
            raise
        return lock

    def is_lock_shared(self, name: str) -> bool:
        lock = self._open_lock(name)
        if lock is None:
            return False
        try:
            return is_open_to_members(lock.fd)
        finally:
            lock.close()

    def _open_lock(self, name: str) -> MemberLock | None:
        with deferred, forks.changing:
            try:
                return MemberLock(self._directory.open_descriptor(name, os.O_RDONLY))
            except FileNotFoundError:
                return None

    def forget(self, name: str) -> None:
        """Free what a killed owner has left outside of the directory; ``name`` is that of the file
        by which the store was shared.  Caller holds ``LOCK``."""
        try:
            file = self.shared_file(name, False)
        except OSError:
            return  # no process has written it
        try:
            last = file.read_head() if SHARES else None
            if last is not None:
                PAGES.end_page([], last.token)
                SOCKETS.forget(last.token, last.epoch)
        finally:
            file.close()

    def is_writable(self) -> bool:
        return os.access(".", os.W_OK, dir_fd=self._directory.descriptor, effective_ids=True)

    def claim_start(self) -> bool:
        file = self.shared_file(SHARED, True)
        if not file.claim_start():
            file.close()
            return False
        self._claim = file
        return True

    def end_start(self) -> None:
        claim, self._claim = self._claim, None
        if claim is not None:
            claim.end_start()
            claim.close()


def place_of(directory: Directory) -> SharingPlace:
    """Return the place of a directory whose store processes share; ``TypeError`` if they cannot."""
    if isinstance(directory, SharingPlace):
        return directory
    if isinstance(directory, LocalDirectory):
        return LocalPlace(directory)
    raise TypeError(f"processes cannot share a store in a {type(directory).__name__}")
