"""The lock on a store under Windows, through ``msvcrt.locking``: one owner, lsmkv or LevelDB.

The lock is on the first byte of ``LOCK``.  LevelDB locks the whole file, and opens it so that no
other process can open it for writing; so the two exclude each other.  A lock belongs to an open
file, so a second open in the same process is also refused.  An open file can be neither removed nor
renamed, so the holes of POSIX (``lock.py``) do not exist.

Locks in Windows are mandatory: no other open file can read the locked byte.  A failed read shows
that the lock is held, without taking it.  The owner writes its process id after that byte, for
messages, and an error in writing it is ignored.  It is removed on release.

Windows releases the lock of a killed process, but not immediately.  So a held lock is retried for a
fifth of a second.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable

from lsmkv.engine.env.base import FileLock
from lsmkv.engine.env.lock import PID_DIGITS, pid_in
from lsmkv.engine.errors import LockedError

try:
    import msvcrt
except ImportError:  # POSIX, where these are not used
    msvcrt = None  # type: ignore[assignment]

_HELD_ELSEWHERE = (errno.EACCES, errno.EDEADLK)
_ATTEMPTS = 20
_PAUSE = 0.01  # seconds
_MARK = b"\n"  # the byte that is locked
_PID_LIMIT = 2**32


class WindowsFileLock(FileLock):
    """A held lock."""

    _fd = -1
    _doomed: str | None = None

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def remove_when_released(self, path: str) -> bool:
        """Remove the lock file when the lock is released; False if it is not held now."""
        if self._fd < 0:
            return False
        self._doomed = path
        return True

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        try:
            _write(fd, b"")
            _unlock(fd)
        finally:
            os.close(fd)
        if self._doomed is not None:
            try:
                os.unlink(self._doomed)
            except OSError:
                pass  # its next owner has it open

    def __del__(self) -> None:
        self.close()


def take_lock(real_path: str, path: str, open_file: Callable[[], int]) -> WindowsFileLock:
    """Lock a file that ``open_file`` opens for reading and writing, and makes if necessary.

    ``path`` is for messages.  Raises ``LockedError`` if the lock is held.
    """
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_PAUSE)
        try:
            fd = open_file()
        except PermissionError:
            # LevelDB does not share the file with writers.
            if not os.access(real_path, os.W_OK):
                raise
            continue
        try:
            _lock(fd)
        except OSError as error:
            holder = _written_pid(fd)
            os.close(fd)
            if error.errno not in _HELD_ELSEWHERE:
                raise
            if holder == os.getpid():
                break
            continue
        except BaseException:
            os.close(fd)
            raise
        lock = WindowsFileLock(fd)
        _write(fd, _MARK + b"%d" % os.getpid())
        return lock
    raise LockedError(path, _holder_in(open_file))


def lock_holder(open_file: Callable[[], int]) -> int | None:
    """The process that holds the lock: its id, 0 if unknown, or None if the lock is free.

    ``open_file`` opens the lock file for reading.  Nothing is locked.  LevelDB leaves the file
    empty, so there is no byte to test: LevelDB's lock is not noticed.
    """
    try:
        fd = open_file()
    except FileNotFoundError:
        return None
    except PermissionError:
        return 0
    try:
        os.lseek(fd, 0, os.SEEK_SET)
        os.read(fd, 1)
    except PermissionError:
        return _written_pid(fd) or 0
    else:
        return None
    finally:
        os.close(fd)


def _holder_in(open_file: Callable[[], int]) -> int | None:
    try:
        fd = open_file()
    except OSError:
        return None
    try:
        return _written_pid(fd)
    finally:
        os.close(fd)


def _written_pid(fd: int) -> int | None:
    """The pid that the owner wrote; None if there is no number."""
    try:
        os.lseek(fd, len(_MARK), os.SEEK_SET)
        content = os.read(fd, PID_DIGITS + 1)
    except OSError:
        return None
    return pid_in(content, _PID_LIMIT)


def _write(fd: int, content: bytes) -> None:
    """Replace the content of the lock file, if it clearly is a lock file's content.

    A file with several names, or with more than a pid in it, may be a user's data that a hostile
    directory calls ``LOCK``: it is locked, but never written.
    """
    try:
        status = os.fstat(fd)
        if status.st_nlink <= 1 and status.st_size <= len(_MARK) + PID_DIGITS:
            os.ftruncate(fd, 0)
            os.lseek(fd, 0, os.SEEK_SET)
            os.write(fd, content)
    except OSError:
        return  # the pid is for messages, and a store must also open on a full disk


def _lock(fd: int) -> None:
    """Lock the first byte, without waiting."""
    if sys.platform == "win32":
        os.lseek(fd, 0, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_NBLCK, len(_MARK))


def _unlock(fd: int) -> None:
    if sys.platform == "win32":
        os.lseek(fd, 0, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, len(_MARK))
