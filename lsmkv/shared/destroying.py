"""Destroys a store, and what processes that shared it have left outside of its directory."""

from __future__ import annotations

import os

from lsmkv.engine.db.opening.directory import take_lock
from lsmkv.engine.env.base import Directory, Env
from lsmkv.engine.env.local import LocalDirectory, LocalEnv
from lsmkv.engine.errors import raise_typed
from lsmkv.engine.format.filenames import (
    CURRENT,
    LOCK,
    LOST,
    LOST_RECORD,
    LOST_RECORD_NEW,
    SHARED,
    parse_filename,
)
from lsmkv.engine.options import checked_lock_timeout
from lsmkv.shared.system.local import LocalPlace


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
                if SHARED in names and isinstance(directory, LocalDirectory):
                    LocalPlace(directory).forget(SHARED)
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
