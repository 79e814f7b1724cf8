"""Calls on local paths: for ``lsmkv.open`` and ``lsmkv.Cache`` when they make a store, and between
processes."""

from __future__ import annotations

import errno
import os

from lsmkv.engine.errors import NotFoundError

EMPTY_PATH = "the path is empty"
_NO_WORKING_DIRECTORY = "the working directory, which this path is relative to, was removed"


def resolve(path: str) -> str:
    """The path with symbolic links resolved, so that the directory that they lead to can be
    replaced.

    Raises :class:`NotFoundError` for an empty path, which is not the working directory, and for a
    relative one if the working directory was removed.
    """
    absolute(path)  # which refuses it
    return os.path.realpath(path)


def absolute(path: str) -> str:
    """The path for another process, whose working directory is another one.

    Raises as :func:`resolve` does.
    """
    if not path:
        raise NotFoundError(errno.ENOENT, EMPTY_PATH, path)
    try:
        return os.path.abspath(path)
    except FileNotFoundError:
        raise NotFoundError(errno.ENOENT, _NO_WORKING_DIRECTORY, path) from None


def make_directory(path: str, mode: int) -> bool:
    """Make a directory for files of ``mode``.  Returns whether it was made.

    Entering a directory needs its ``x`` bits, so each is set where ``r`` is.  The owner gets all
    three bits, which are needed to make files in it.  The umask is subtracted.  Raises no error:
    the call that opens the directory next raises it.
    """
    try:
        os.mkdir(path, mode | (mode & 0o444) >> 2 | 0o700)
    except OSError:
        return False
    return True


def make_directories(path: str) -> str:
    """The path with ``~`` replaced, once the directories above it exist.

    Raises ``OSError`` if one cannot be made.
    """
    where = os.path.expanduser(path)
    above = os.path.dirname(absolute(where))
    os.makedirs(above, exist_ok=True)
    return where


def temporary_directory(prefix: str) -> str:
    """A new directory where the system keeps temporary files.  Only its user removes it."""
    import tempfile  # noqa: PLC0415 - few stores are temporary; it imports five modules

    return tempfile.mkdtemp(prefix=prefix)


def is_running(pid: int) -> bool:
    """Return True if there is a process with this id; only where processes can share a store."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
