"""The local file system of Windows, by paths: Windows has no descriptors for directories.

``LocalEnv`` opens these directories if ``sys.platform`` is ``win32``.  Differences from POSIX:

* A file that any process has open can be neither removed nor renamed nor replaced: Windows answers
  ``PermissionError``.  ``remove`` raises it at once, and the engine tries again at the next
  collection of obsolete files or when the store is opened next.  ``rename`` tries for about two
  seconds, since readers of the files that the engine replaces (``CURRENT``, ``STATS``) close them
  at once, as virus scanners do.
* A directory cannot be synced: NTFS writes its journal of names in their order, and syncing a file
  writes out the journal before it.  So ``rename`` syncs the file under its new name, and
  ``Directory.sync`` does nothing.
* There is no ``pread``: a file's reads take turns, by a lock.
* There is no ``O_NOFOLLOW``: a name is checked before it is opened and again afterwards.  While
  a file is open its name cannot be given to another, so only a change to a link and back within
  one opening goes unnoticed.
* The directory's path is resolved when it is opened.  While the store's ``LOCK`` is open, Windows
  keeps others from renaming or removing that directory.

Not supported: mapped logs (a mapped file cannot be truncated), and paths of more than 260
characters unless the system allows them.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import threading
import time
import weakref
from collections.abc import Callable
from typing import TypeVar

from lsmkv.engine.env.base import Directory, RandomAccessFile, check_name
from lsmkv.engine.env.descriptors import with_room
from lsmkv.engine.env.local_file import Descriptor, LocalWritableFile, naming, require_regular
from lsmkv.engine.env.windows_lock import WindowsFileLock, lock_holder, take_lock
from lsmkv.engine.util.signals import deferred

R = TypeVar("R")

# Without O_BINARY the C library changes line ends; without O_NOINHERIT started programs would hold
# the file open.
_FLAGS: int = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)
_FILE_MODE = 0o644
_PAUSES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.5, 0.7)
"""Seconds between attempts at a call that fails because a reader has the file open."""
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE | re.DOTALL)
_FORBIDDEN = frozenset('<>:"/\\|?*')
_JUNCTION = 0xA0000003  # IO_REPARSE_TAG_MOUNT_POINT: another directory, anywhere

# winerror of CreateHardLink: a file system without hard links, such as FAT (1, 50), another volume
# (17), 1023 links already (1142).
_LINK_ERRNOS = {1: errno.ENOTSUP, 17: errno.EXDEV, 50: errno.ENOTSUP, 1142: errno.EMLINK}


class WindowsRandomAccessFile(Descriptor, RandomAccessFile):
    """A file whose reads seek, one after another under a lock."""

    def __init__(self, fd: int, path: str, size: int) -> None:
        super().__init__(fd, path)
        self.size = size
        self._lock = threading.Lock()

    def read(self, offset: int, length: int) -> bytes:
        with naming(self.path), self._lock:
            if offset + length > self.size:
                # A read allocates everything that it asks for: never ask for more than there is.
                length = min(length, max(0, os.fstat(self._fd).st_size - offset))
            os.lseek(self._fd, offset, os.SEEK_SET)
            data = os.read(self._fd, length)
            if len(data) == length:
                return data
            parts = [data]
            done = len(data)
            while data and done < length:
                data = os.read(self._fd, length - done)
                parts.append(data)
                done += len(data)
            return b"".join(parts)


class WindowsDirectory(Directory):
    """A directory of the local file system, identified by its path."""

    def __init__(self, real_path: str, path: str, follow_symlinks: bool) -> None:
        """``real_path`` is absolute and resolved; ``path`` is the caller's, for messages."""
        self.path = path
        self._real = real_path
        self._follow_symlinks = follow_symlinks
        self._closed = False
        self._locks: weakref.WeakValueDictionary[str, WindowsFileLock] = (
            weakref.WeakValueDictionary()
        )

    def names(self) -> list[str]:
        self._refuse_closed()
        with naming(self.path):
            return os.listdir(self._real)

    def exists(self, name: str) -> bool:
        real = self._real_path_of(name)
        with naming(self._path_of(name)):
            try:
                os.lstat(real)
            except FileNotFoundError:
                return False
            return True

    def size(self, name: str) -> int:
        real = self._real_path_of(name)
        with naming(self._path_of(name)):
            return self._look_at(real, self._path_of(name), self._follow_symlinks).st_size

    def modified(self, name: str) -> float:
        real = self._real_path_of(name)
        with naming(self._path_of(name)):
            return os.stat(real, follow_symlinks=self._follow_symlinks).st_mtime

    def open(self, name: str) -> WindowsRandomAccessFile:
        with deferred:
            fd, size = self._open(name, os.O_RDONLY, self._follow_symlinks)
            return WindowsRandomAccessFile(fd, self._path_of(name), size)

    def create(self, name: str) -> LocalWritableFile:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        with deferred:
            fd, _ = self._open(name, flags)
            return LocalWritableFile(fd, self._path_of(name))

    def append_to(self, name: str) -> LocalWritableFile:
        with deferred:
            fd, _ = self._open(name, os.O_WRONLY | os.O_APPEND)
            return LocalWritableFile(fd, self._path_of(name))

    def rename(self, old: str, new: str) -> None:
        source, target = self._real_path_of(old), self._real_path_of(new)
        with naming(self._path_of(old), self._path_of(new)):
            patiently(lambda: os.replace(source, target))
            patiently(lambda: _sync(target))

    def remove(self, name: str) -> None:
        """Remove a file; a lock file that this directory holds is removed once it is released."""
        real = self._real_path_of(name)
        lock = self._locks.get(name)
        if lock is not None and lock.remove_when_released(real):
            return
        with naming(self._path_of(name)):
            os.unlink(real)

    def link(self, name: str, target: Directory) -> None:
        real, path = self._real_path_of(name), self._path_of(name)
        if not isinstance(target, WindowsDirectory):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
        new = target._real_path_of(name)
        with naming(path, target._path_of(name)):
            self._look_at(real, path, False)
            try:
                os.link(real, new)
            except OSError as error:
                number = _LINK_ERRNOS.get(getattr(error, "winerror", 0) or 0)
                if number is None:
                    raise
                raise OSError(number, os.strerror(number)) from error

    def sync(self) -> None:
        """Does nothing, because Windows cannot sync a directory: see the module's text."""
        self._refuse_closed()

    def lock(self, name: str) -> WindowsFileLock:
        path = self._path_of(name)
        real = self._real_path_of(name)
        with naming(path), deferred:
            lock = take_lock(real, path, lambda: self._open(name, os.O_RDWR | os.O_CREAT)[0])
            self._locks[name] = lock
        return lock

    def lock_holder(self, name: str) -> int | None:
        with naming(self._path_of(name)):
            return lock_holder(lambda: self._open(name, os.O_RDONLY)[0])

    def subdirectory(self, name: str, create: bool = False) -> WindowsDirectory:
        real, path = self._real_path_of(name), self._path_of(name)
        with naming(path):
            try:
                status = os.lstat(real)
            except FileNotFoundError:
                if not create:
                    raise
                _make_directory(real)
                status = os.lstat(real)
            if stat.S_ISLNK(status.st_mode) or _is_junction(status):
                raise OSError(errno.ELOOP, "refused: a symbolic link")
            if not stat.S_ISDIR(status.st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        return WindowsDirectory(real, path, self._follow_symlinks)

    def close(self) -> None:
        self._closed = True

    def _path_of(self, name: str) -> str:
        return os.path.join(self.path, _check_name(name))

    def _real_path_of(self, name: str) -> str:
        real = os.path.join(self._real, _check_name(name))
        self._refuse_closed()
        return real

    def _refuse_closed(self) -> None:
        if self._closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self.path)

    def _open(self, name: str, flags: int, follow: bool = False) -> tuple[int, int]:
        """Open a regular file: its descriptor and its length in bytes."""
        real, path = self._real_path_of(name), self._path_of(name)
        with naming(path):
            if not flags & os.O_EXCL:
                try:
                    self._look_at(real, path, follow)
                except FileNotFoundError:
                    if not flags & os.O_CREAT:
                        raise
            fd = with_room(lambda: os.open(real, flags | _FLAGS, _FILE_MODE))
            try:
                self._look_at(real, path, follow)
                status = os.fstat(fd)
                require_regular(status, path)  # a device has no normal file name
            except BaseException:
                os.close(fd)
                raise
            return fd, status.st_size

    def _look_at(self, real: str, path: str, follow: bool) -> os.stat_result:
        """The status of a regular file; ``OSError`` for anything else."""
        status = os.stat(real, follow_symlinks=follow)
        require_regular(status, path)
        return status


def open_directory(path: str, create: bool, follow_symlinks: bool) -> WindowsDirectory:
    """``LocalEnv.open_directory``."""
    with naming(path):
        try:
            status = os.stat(path)
        except FileNotFoundError:
            if not create:
                raise
            _make_directory(path)
            status = os.stat(path)
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return WindowsDirectory(os.path.realpath(path), path, follow_symlinks)


def remove_directory(path: str) -> None:
    """``LocalEnv.remove_directory``.  A link is left alone, although Windows' ``rmdir`` would
    remove it."""
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode) or _is_junction(status):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    patiently(lambda: os.rmdir(path))


def rename_directory(old: str, new: str) -> None:
    """``LocalEnv.rename_directory``: ``FileExistsError`` if the new name is taken."""
    patiently(lambda: os.rename(old, new))
    with os.scandir(new) as entries:
        files = (entry.path for entry in entries if entry.is_file(follow_symlinks=False))
        synced = next(files, None)
    if synced is not None:
        patiently(lambda: _sync(synced))


def _sync(path: str) -> None:
    """Sync a file, and with it the journal, which contains the earlier changes of names."""
    fd = os.open(path, os.O_RDWR | _FLAGS)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def patiently(call: Callable[[], R]) -> R:
    """Call until no reader has the file open, for about two seconds; then raise its
    ``PermissionError``."""
    for pause in _PAUSES:
        try:
            return call()
        except PermissionError:
            time.sleep(pause)
    return call()


def _check_name(name: str) -> str:
    """A plain name that stands for a file: not for a device, a stream of a file, or a name without
    the dots and spaces at its end, which Windows drops."""
    check_name(name)
    if _FORBIDDEN & set(name) or name[-1] in ". " or _DEVICES.fullmatch(name):
        raise ValueError(f"not a plain file name on Windows: {name!r}")
    return name


def _is_junction(status: os.stat_result) -> bool:
    return getattr(status, "st_reparse_tag", 0) == _JUNCTION


def _make_directory(path: str) -> None:
    try:
        os.mkdir(path)
    except FileExistsError:
        pass
