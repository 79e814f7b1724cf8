"""The directory of a store: opens it, and destroys the store in it.

Opening, surveys and repairs call :func:`open_database_directory` or :func:`open_remains` before any
lock is taken; :func:`destroy_db` is for users, and takes the store's lock.
"""

from __future__ import annotations

import errno
import os
import time

from lsmkv.env.base import Directory, Env, FileLock
from lsmkv.env.local import LocalEnv
from lsmkv.env.place import EMPTY_PATH
from lsmkv.env.sharing import SharingDirectory
from lsmkv.errors import CorruptionError, LockedError, NotFoundError, raise_typed
from lsmkv.format.filenames import (
    CURRENT,
    LOCK,
    LOST,
    LOST_RECORD,
    LOST_RECORD_NEW,
    SHARED,
    FileType,
    parse_filename,
)
from lsmkv.format.foreign import refuse_certain, refuse_foreign
from lsmkv.options import MIB, checked_lock_timeout
from lsmkv.util.signals import deferred

NO_DATABASE = "no database here"
_LOCK_PAUSE = 0.05
"""Seconds between two attempts to take a lock that is waited for."""
_DATA = (FileType.CURRENT, FileType.MANIFEST, FileType.TABLE, FileType.LOG)
_NOT_FOUND = f"{NO_DATABASE}, and create_if_missing is false"


def open_database_directory(env: Env, path: str, create: bool) -> Directory:
    """The directory of a store, which is created if ``create`` is true and it does not exist.

    Raises :class:`NotFoundError` if there is no store and ``create`` is false; nothing is created
    then.
    """
    try:
        directory = env.open_directory(path, create=create)
    except FileNotFoundError:
        reason = "the directory above it does not exist" if create else _NOT_FOUND
        raise NotFoundError(errno.ENOENT, reason if path else EMPTY_PATH, path) from None
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


def take_lock(directory: Directory, timeout: float, shares: bool = False) -> FileLock:
    """The store's lock.  Another process that holds it is waited for, up to ``timeout`` seconds;
    then :class:`LockedError` is raised.

    So it is while processes share the store, though none of them may own it at the moment: unless
    the caller is one of those that share it (``shares``).
    """
    wait = LockWait(timeout)
    while True:
        try:
            lock = directory.lock(LOCK)
            try:
                if not shares and directory.is_shared(SHARED):
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
    try:
        directory = env.open_directory(path)
    except FileNotFoundError:
        raise NotFoundError(errno.ENOENT, NO_DATABASE if path else EMPTY_PATH, path) from None
    for name in directory.names():
        parsed = parse_filename(name)
        if parsed is not None and parsed[1] in _DATA:
            return directory
    directory.close()
    raise NotFoundError(errno.ENOENT, NO_DATABASE, path)


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
    """Whether a log holds only zeros: space that was reserved when the store was made."""
    with directory.open(name) as file:
        for offset in range(0, file.size, MIB):
            if file.read(offset, MIB).strip(b"\0"):
                return False
    return True


def destroy_db(
    path: str | os.PathLike[str], *, env: Env | None = None, lock_timeout: float = 0.0
) -> None:
    """Remove a store: its files, and the directory if it has no others.

    A missing store is not an error.  Raises :class:`LockedError` if the store is open, and still
    open after ``lock_timeout`` seconds, and :class:`IOError` if the file system fails.  Cost: one
    removal per file.

    >>> from lsmkv import DB, MemoryEnv
    >>> env = MemoryEnv()  # on disk, leave it out
    >>> DB("store", create_if_missing=True, env=env).close()
    >>> destroy_db("store", env=env)
    >>> DB("store", env=env)
    Traceback (most recent call last):
    lsmkv.errors.NotFoundError: [Errno 2] no database here, and create_if_missing is false: 'store'
    """
    where = os.fsdecode(path)
    seconds = checked_lock_timeout(lock_timeout)
    env = LocalEnv() if env is None else env
    try:
        try:
            directory = env.open_directory(where)
        except FileNotFoundError:
            return
        with directory:
            names = [name for name in directory.names() if parse_filename(name) is not None]
            if not names:
                return
            lock = take_lock(directory, seconds)
            try:
                _remove_lost(env, directory)
                if SHARED in names and isinstance(directory, SharingDirectory):
                    directory.forget_sharing(SHARED)
                for name in names:
                    if name not in (LOCK, CURRENT):
                        directory.remove(name)
                for name in (CURRENT, LOCK):
                    if directory.exists(name):
                        directory.remove(name)
                directory.sync()
            finally:
                lock.close()
            empty = not directory.names()
        if empty:
            try:
                env.remove_directory(where)
            except NotADirectoryError:
                pass  # the path is a link: the link and its directory stay
    except OSError as error:
        raise_typed(error)


def _remove_lost(env: Env, directory: Directory) -> None:
    """Remove the store's files from ``lost/``, and the directory if it has no others."""
    if not directory.exists(LOST):
        return
    with directory.subdirectory(LOST) as lost:
        for name in lost.names():
            # A second file of one name has a number after its name.
            known = name in (LOST_RECORD, LOST_RECORD_NEW)
            if known or parse_filename(name) or parse_filename(name.rpartition(".")[0]):
                lost.remove(name)
        empty = not lost.names()
    if empty:
        env.remove_directory(os.path.join(directory.path, LOST))
