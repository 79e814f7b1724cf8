"""The lock on a local store: one owner, whether that is lsmkv or LevelDB.

LevelDB takes a POSIX record lock (``fcntl``) on the whole of the file ``LOCK``.  Such a lock has a
hole.  It belongs to the process, so a second open in the same process gets it again, and closing
*any* descriptor of the file drops it.  The open file description (OFD) locks of Linux and macOS
conflict with POSIX locks, belong to one descriptor, and have no such hole.  They are used wherever
the kernel supports them.  Elsewhere the POSIX lock is taken, and the table below closes the hole
within this process.

No lock on a file notices that the file was unlinked and created again: the second file can
also be locked.  Two guards reduce this risk.  The name is compared with the descriptor after
locking, and the table refuses a second owner of one *directory* inside this process.  Between
processes, ``LOCK`` must not be unlinked while a process may hold it.

The owner writes its process id into ``LOCK`` (LevelDB never reads the file), because the kernel
does not report who holds an OFD lock.  The id is for messages, and an error in writing it is
ignored.  It is removed on release, so the directory looks as LevelDB leaves it, and a released lock
names no process.

An OFD lock may briefly outlive a killed owner that was just starting another program: between fork
and exec the child has the owner's descriptors.  So if the process named in ``LOCK`` is dead, the
next owner retries for a short time.

Processes that share a store (``shared/``) divide the file.  Each member has an OFD lock for reading
on its first byte, the owner has that too, and a lock for writing on all the others.  So owners
succeed each other, and while one process of them lives, no lock of the whole file succeeds:
LevelDB does not open a store in the moment between a killed owner and the next.  A query for
the holder is about the owner's bytes.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
from collections.abc import Callable
from typing import Any

from lsmkv.engine.env import forks
from lsmkv.engine.env.base import FileLock
from lsmkv.engine.errors import LockedError
from lsmkv.engine.util.signals import deferred
from lsmkv.engine.util.threads import pause

try:
    if sys.platform == "win32":  # there windows_lock.py is used instead
        fcntl: Any = None
    else:
        import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment,unused-ignore]

_LINUX = sys.platform.startswith("linux")
_DARWIN = sys.platform == "darwin"
# The numbers of Linux, and those of XNU since 2015; many an interpreter lacks the names.
OFD_GETLK: int = 92 if _DARWIN else 36
OFD_SETLK: int = 90 if _DARWIN else 37
HAS_LOCKS: bool = fcntl is not None
"""True if the platform has file locks at all, as POSIX defines them."""
HAS_OFD_LOCKS = _LINUX or _DARWIN
"""True if OFD locks should be tried; if the system refuses them, a POSIX lock is taken."""

FIRST_LEASE = 1 << 61
"""Members of a shared store have locks on bytes of a file from this offset on (``shared/``)."""

_MEMBERS = 1
"""Number of bytes at the beginning of the lock file that are not the owner's alone."""

_HELD_ELSEWHERE = (errno.EAGAIN, errno.EACCES)
_NO_OFD_LOCKS = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)
_ATTEMPTS = 100
_PATIENCE = 100
"""Attempts, with a pause after each, at a lock whose owner is dead."""
_PAUSE = 0.01  # seconds
PID_DIGITS = 20
_PID_LIMIT = 2**31

_Key = tuple[int, int, str]


class _OrphanedLockError(LockedError):
    """The lock is held but its owner is dead: a child of the owner still has the descriptor."""


_held: set[_Key] = set()
"""The table: what this process holds, lock files and their directories, by device and inode.

Code that looks at it or changes it holds ``forks.changing``.  So a child never has the descriptor
of a lock that another thread was just taking or releasing.
"""


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_held.clear)


class LocalFileLock(FileLock):
    """A held lock.  Its directory should stay open while the lock is held."""

    _fd = -1

    def __init__(self, fd: int, ofd: bool, keys: set[_Key]) -> None:
        self._ofd = ofd
        self._keys = keys
        self._pid = os.getpid()
        self._fd = fd  # last: from here on there is something to close
        forks.note(self)

    @property
    def is_ofd(self) -> bool:
        """True if this is an OFD lock, not a POSIX one."""
        return self._ofd

    def close(self) -> None:
        """Release the lock.  In a forked child only the child's descriptor is closed.

        The lock is released explicitly: a child that was forked meanwhile has the same open file,
        and would keep an OFD lock alive.  The child itself must not release anything, because the
        lock is its parent's.
        """
        if self._fd < 0:
            return
        with deferred, forks.changing:
            fd, self._fd = self._fd, -1
            if fd < 0:
                return  # another thread was faster
            try:
                if os.getpid() == self._pid:
                    _held.difference_update(self._keys)
                    _write_pid(fd, b"")
                    _set_lock(fd, self._ofd, fcntl.F_UNLCK)
            finally:
                os.close(fd)

    def close_in_child(self) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


def take_lock(
    directory: int,
    name: str,
    path: str,
    open_file: Callable[[], int],
    ofd: bool,
    shares: bool = False,
) -> LocalFileLock:
    """Lock the file ``name`` in the directory with the descriptor ``directory``.  Caller defers
    signals.

    ``open_file`` opens it for reading and writing, and makes it if necessary; ``path`` is for
    messages; ``shares`` is whether members may have the first byte.  Raises ``LockedError`` if the
    lock is held: at once, or after a second if its owner is dead or cannot be seen from here (in
    another pid namespace).  See the module's text.
    """
    for _ in range(_PATIENCE):
        try:
            return _take_lock(directory, name, path, open_file, ofd, shares)
        except _OrphanedLockError:
            deferred.deliver()
            pause(_PAUSE)
    raise LockedError(path)


def _take_lock(
    directory: int, name: str, path: str, open_file: Callable[[], int], ofd: bool, shares: bool
) -> LocalFileLock:
    with forks.changing:
        home = os.fstat(directory)
        home_key = (home.st_dev, home.st_ino, name)
        for _ in range(_ATTEMPTS):
            # Before the file is opened: where locks are POSIX, closing it again would drop ours.
            if home_key in _held or _key_of(directory, name) in _held:
                raise LockedError(path, os.getpid())
            fd = open_file()
            try:
                ofd = _lock(fd, ofd, shares, path)
                key = _file_key(os.fstat(fd))
                if key == _key_of(directory, name):
                    keys = {home_key, key}
                    lock = LocalFileLock(fd, ofd, keys)
                    fd = -1
                    _held.update(keys)
                    _write_pid(lock._fd, b"%d" % os.getpid())
                    return lock
                _set_lock(fd, ofd, fcntl.F_UNLCK)
            finally:
                if fd >= 0:
                    os.close(fd)
        raise LockedError(path)


def lock_holder(directory: int, name: str, open_file: Callable[[], int], ofd: bool) -> int | None:
    """The process that holds the lock: its id, 0 if unknown, or None if the lock is free.

    ``open_file`` opens the lock file for reading.  Nothing is locked, not even for a moment, so no
    new owner is refused because of this.
    """
    with forks.changing:
        home = os.fstat(directory)
        home_key = (home.st_dev, home.st_ino, name)
        # Before the file is opened: where locks are POSIX, closing it again would drop ours.
        if home_key in _held or _key_of(directory, name) in _held:
            return os.getpid()
        try:
            fd = open_file()
        except FileNotFoundError:
            return None
        except PermissionError:
            return 0
        try:
            kind, pid = _asked(fd, ofd)
            if kind == fcntl.F_UNLCK:
                return None
            return pid if pid != -1 else _written_pid(fd) or 0
        finally:
            os.close(fd)


def _key_of(directory: int, name: str) -> _Key | None:
    try:
        return _file_key(os.stat(name, dir_fd=directory, follow_symlinks=False))
    except FileNotFoundError:
        return None


def _file_key(status: os.stat_result) -> _Key:
    return status.st_dev, status.st_ino, ""


def _lock(fd: int, ofd: bool, shares: bool, path: str) -> bool:
    """Take the lock.  Returns whether it is an OFD lock."""
    try:
        try:
            if shares and ofd:
                lock_for_member(fd)
                fcntl.fcntl(fd, OFD_SETLK, pack_flock(fcntl.F_WRLCK, _MEMBERS))
            else:
                _set_lock(fd, ofd, fcntl.F_WRLCK)
        except OSError as error:
            if not ofd or error.errno not in _NO_OFD_LOCKS:
                raise
            ofd = False  # a kernel, or a file system, without OFD locks
            _set_lock(fd, ofd, fcntl.F_WRLCK)
    except OSError as error:
        if error.errno in _HELD_ELSEWHERE:
            if shares and ofd:  # a child that is forked now would keep the first byte
                unlock(fd)
            raise _refusal(fd, ofd, path) from None
        error.filename = path
        raise
    return ofd


def _set_lock(fd: int, ofd: bool, kind: int) -> None:
    """Lock or unlock the whole file, as LevelDB does, without waiting."""
    if ofd:
        fcntl.fcntl(fd, OFD_SETLK, pack_flock(kind))
    elif kind == fcntl.F_UNLCK:
        fcntl.lockf(fd, fcntl.LOCK_UN)
    else:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock_for_member(fd: int) -> None:
    """Take a member's part of the lock; ``OSError`` if the whole file is locked by others."""
    fcntl.fcntl(fd, OFD_SETLK, pack_flock(fcntl.F_RDLCK, 0, _MEMBERS))


def unlock(fd: int) -> None:
    """Give up all OFD locks that were taken through a descriptor."""
    _set_lock(fd, True, fcntl.F_UNLCK)


def is_open_to_members(fd: int) -> bool:
    """Return True if no process has locked the whole file.  ``OSError``."""
    answer = fcntl.fcntl(fd, OFD_GETLK, pack_flock(fcntl.F_RDLCK, 0, _MEMBERS))
    return unpack_flock(answer)[0] == int(fcntl.F_UNLCK)


def is_locked_from(fd: int, start: int) -> bool:
    """Return True if any process has an OFD lock on a byte of a file from this offset on; False on
    a system without OFD locks.  ``OSError`` if that cannot be found out."""
    if not HAS_OFD_LOCKS:
        return False
    try:
        answer = fcntl.fcntl(fd, OFD_GETLK, pack_flock(fcntl.F_WRLCK, start))
    except OSError as error:
        if error.errno in _NO_OFD_LOCKS:
            return False
        raise
    return unpack_flock(answer)[0] != int(fcntl.F_UNLCK)


def pack_flock(kind: int, start: int = 0, length: int = 0) -> bytes:
    """C's ``struct flock``; without a length it goes on to the end of the file."""
    if _LINUX:
        return struct.pack("@hhqqi0q", kind, os.SEEK_SET, start, length, 0)
    return struct.pack("@qqihh0q", start, length, 0, kind, os.SEEK_SET)


def unpack_flock(answer: bytes) -> tuple[int, int, int, int]:
    """``(kind, pid, start, length)`` out of a ``struct flock``."""
    if _LINUX:
        kind, _, start, length, pid = struct.unpack("@hhqqi0q", answer)
    else:
        start, length, pid, kind, _ = struct.unpack("@qqihh0q", answer)
    return kind, pid, start, length


def _refusal(fd: int, ofd: bool, path: str) -> LockedError:
    """The error for a refused lock, with its holder if that can be found."""
    kind, pid = _asked(fd, ofd)
    if kind == fcntl.F_UNLCK:  # released in the meantime, or no process owns what members share
        return LockedError(path, None, ofd and is_locked_from(fd, 0))
    if pid != -1:
        return LockedError(path, pid if pid > 0 else None)  # 0: in another pid namespace
    # An OFD lock: held by lsmkv, which wrote its pid.
    written = _written_pid(fd)
    if written is not None and not _alive(written):
        return _OrphanedLockError(path)
    return LockedError(path, written)


def _asked(fd: int, ofd: bool) -> tuple[int, int]:
    """Return the state of an owner's lock, ``F_UNLCK`` if there is none, and its holder's id.

    The id is -1 for an OFD lock, which has no process, and 0 for a process of another pid
    namespace.
    """
    try:
        asked = pack_flock(fcntl.F_WRLCK, _MEMBERS)
        answer = fcntl.fcntl(fd, OFD_GETLK if ofd else fcntl.F_GETLK, asked)
    except OSError:
        return fcntl.F_WRLCK, -1
    kind, pid, _, _ = unpack_flock(answer)
    return kind, pid


def _written_pid(fd: int) -> int | None:
    """The pid that the owner wrote; None if it is this process or not a number, so cannot be the
    owner.

    An owner that has only just locked the file has not yet replaced what a killed owner left.
    """
    try:
        content: bytes = os.pread(fd, PID_DIGITS + 1, 0)  # type: ignore[attr-defined,unused-ignore]
    except OSError:
        return None
    pid = pid_in(content, _PID_LIMIT)
    return None if pid == os.getpid() else pid


def pid_in(content: bytes, limit: int) -> int | None:
    """The process id in a lock file, above 0 and below ``limit``; None if it is invalid."""
    if not content.isdigit() or len(content) > PID_DIGITS:  # bytes.isdigit accepts ASCII only
        return None
    pid = int(content)
    return pid if 0 < pid < limit else None


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _write_pid(fd: int, content: bytes) -> None:
    """Replace the content of the lock file, if it clearly is a lock file's content.

    A file with several names, or with more than a pid in it, may be a user's data that a hostile
    directory calls ``LOCK``: it is locked, but never written.
    """
    try:
        status = os.fstat(fd)
        if status.st_nlink <= 1 and status.st_size <= PID_DIGITS:
            os.ftruncate(fd, 0)
            if content:
                os.pwrite(fd, content, 0)  # type: ignore[attr-defined,unused-ignore]
    except OSError:
        return  # the pid is for messages, and a store must also open on a full disk
