"""The directory of a store, and its lock.

Opening, surveys and repairs call :func:`open_database_directory` or :func:`open_remains` before any
lock is taken.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable

from lsmkv.engine.env.base import Directory, Env, FileLock
from lsmkv.engine.env.place import EMPTY_PATH
from lsmkv.engine.errors import CorruptionError, LockedError, NotFoundError
from lsmkv.engine.format.filenames import CURRENT, LOCK, SHARED, FileType, parse_filename
from lsmkv.engine.format.foreign import refuse_certain, refuse_foreign
from lsmkv.engine.options import MIB
from lsmkv.engine.util.signals import deferred

NO_DATABASE = "no database here"
_LOCK_PAUSE = 0.05
"""Seconds between two attempts to take a lock that is waited for."""
_DATA = (FileType.CURRENT, FileType.MANIFEST, FileType.TABLE, FileType.LOG)
_NOT_FOUND = f"{NO_DATABASE}, and create_if_missing is false"


def open_database_directory(env: Env, path: str, create: bool) -> Directory:
    """The directory of a store, which is created if ``create`` is true and it does not exist.

    Raises :class:`NotFoundError` if there is no store and ``create`` is false; in that case
    nothing is created.
    """
    reason = "the directory above it does not exist" if create else _NOT_FOUND
    directory = _open(env, path, create, reason)
    try:
        if not directory.exists(CURRENT):
            _refuse_remains(directory)
            if not create:
                raise NotFoundError(errno.ENOENT, _NOT_FOUND, path)
    except BaseException:
        directory.close()
        raise
    return directory


class LockWait:
    """The pauses of an opening that waits for the store's lock, until its time is over."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def pause(self) -> float:
        """Seconds to wait before the next attempt; 0.0 once there is no time left."""
        return min(_LOCK_PAUSE, max(0.0, self._until - time.monotonic()))


def take_lock(
    directory: Directory, timeout: float, take: Callable[[Directory], FileLock] | None = None
) -> FileLock:
    """The store's lock.  Another process that holds it is waited for, up to ``timeout`` seconds;
    then :class:`LockedError` is raised.

    So it is while processes share the store, though none of them may own it at the moment: unless
    the caller is one of those that share it, and takes the lock in their way (``take``).
    """
    wait = LockWait(timeout)
    while True:
        try:
            if take is not None:
                return take(directory)
            lock = directory.lock(LOCK)
            try:
                if directory.is_shared(SHARED):  # by a release whose members have no byte of LOCK
                    raise LockedError(f"{directory.path}/{LOCK}", None, shared=True)
            except BaseException:
                lock.close()
                raise
            return lock
        except LockedError as error:
            pause = wait.pause()
            if pause == 0:
                if error.pid is not None and directory.exists(SHARED):
                    raise LockedError(str(error.filename), error.pid, shared=True) from None
                raise
        deferred.deliver()  # Ctrl-C ends the wait
        time.sleep(pause)


def open_remains(env: Env, path: str) -> Directory:
    """The directory of a store that may be too damaged to be opened.

    Raises :class:`NotFoundError` if no file has the name of a store's file.
    """
    directory = _open(env, path, False, NO_DATABASE)
    for name in directory.names():
        parsed = parse_filename(name)
        if parsed is not None and parsed[1] in _DATA:
            return directory
    directory.close()
    raise NotFoundError(errno.ENOENT, NO_DATABASE, path)


def _open(env: Env, path: str, create: bool, reason: str) -> Directory:
    """The directory; ``reason`` says why it cannot be opened if it does not exist."""
    try:
        return env.open_directory(path, create=create)
    except FileNotFoundError:
        raise NotFoundError(errno.ENOENT, reason if path else EMPTY_PATH, path) from None


def _refuse_remains(directory: Directory) -> None:
    """A directory with data but without CURRENT is a damaged store, not a missing one."""
    names = directory.names()
    refuse_certain(directory.path, names)
    for name in names:
        parsed = parse_filename(name)
        if parsed is None:
            continue
        if parsed[1] is FileType.TABLE or (
            parsed[1] is FileType.LOG and not _is_empty_log(directory, name)
        ):
            if directory.exists(CURRENT):
                return  # another process has just made the store
            refuse_foreign(directory.path, names)
            raise CorruptionError(
                f"CURRENT is missing, but {name} is here: repair the database",
                f"{directory.path}/{CURRENT}",
            )


def _is_empty_log(directory: Directory, name: str) -> bool:
    """Return True if a log holds only zeros: space that was reserved when the store was made."""
    with directory.open(name) as file:
        for offset in range(0, file.size, MIB):
            if file.read(offset, MIB).strip(b"\0"):
                return False
    return True
