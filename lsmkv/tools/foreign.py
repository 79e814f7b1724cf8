"""Opens files in directories that somebody else may have made: downloads, backups, submissions.

Opening never waits, as it would for the writer of a FIFO, and follows no link below the directory.
Only regular files are opened.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO, Final

_NOFOLLOW: Final[int] = getattr(os, "O_NOFOLLOW", 0)
_NONBLOCK: Final[int] = getattr(os, "O_NONBLOCK", 0)
_BINARY: Final[int] = getattr(os, "O_BINARY", 0)
_DIRECTORY: Final[int] = getattr(os, "O_DIRECTORY", 0)
_BY_DESCRIPTOR: Final = os.open in os.supports_dir_fd
# Errors when opening something other than a regular file: a link, a FIFO or socket, a device.
_ODD: Final = (errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EISDIR, errno.ENOTDIR)


class NotRegularError(OSError):
    """The name is not that of a regular file; ``EINVAL``."""

    def __init__(self, path: str, what: str = "not a regular file") -> None:
        super().__init__(errno.EINVAL, what, path)


def open_foreign(directory: str, *names: str, alone: bool = False) -> BinaryIO:
    """Open the file ``names[-1]`` for reading bytes, in directories below each other.

    ``directory`` may itself be a link.  ``alone`` refuses files with other names (hard links),
    which may be anywhere.  :class:`NotRegularError`; ``OSError`` if it cannot be opened.
    """
    path = os.path.join(directory, *names)
    if any(
        name in ("", ".", "..") or "\0" in name or os.path.basename(name) != name for name in names
    ):
        raise NotRegularError(path, "not a name in the directory")
    try:
        fd = _descriptor(directory, names) if _BY_DESCRIPTOR else _checked(directory, names)
    except OSError as error:
        if error.errno in _ODD:
            raise NotRegularError(path) from None
        error.filename = path
        raise
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise NotRegularError(path)
        if alone and status.st_nlink > 1:
            raise NotRegularError(path, "it has other names (hard links): import a copy")
        return open(fd, "rb")
    except BaseException:
        os.close(fd)
        raise


def _descriptor(directory: str, names: tuple[str, ...]) -> int:
    """A descriptor that was reached by those of the directories."""
    here = os.open(directory, os.O_RDONLY | _DIRECTORY)
    for name in names[:-1]:
        try:
            inner = os.open(name, os.O_RDONLY | _DIRECTORY | _NOFOLLOW, dir_fd=here)
        finally:
            os.close(here)
        here = inner
    try:
        return os.open(names[-1], os.O_RDONLY | _NOFOLLOW | _NONBLOCK, dir_fd=here)
    finally:
        os.close(here)


def _checked(directory: str, names: tuple[str, ...]) -> int:
    """A descriptor where there are none of directories (Windows): each name is looked at first."""
    path = directory
    for at, name in enumerate(names):
        path = os.path.join(path, name)
        mode = os.lstat(path).st_mode
        if not (stat.S_ISREG(mode) if at + 1 == len(names) else _is_directory(path)):
            raise NotRegularError(path)
    return os.open(path, os.O_RDONLY | _BINARY | _NOFOLLOW | _NONBLOCK)


def _is_directory(path: str) -> bool:
    """True for a directory that is neither a link nor a junction."""
    status = os.lstat(path)
    return stat.S_ISDIR(status.st_mode) and not getattr(status, "st_reparse_tag", 0)
