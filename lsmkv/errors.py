"""Every exception that lsmkv raises, under one root: :class:`Error`.

An exception also inherits from the builtin that a Python programmer would catch in its place
(``OSError``, ``FileNotFoundError``, ``BlockingIOError``, ``RuntimeError``), so code that knows
nothing of lsmkv still handles it.  Wrong *types* raise plain ``TypeError`` and wrong *values*
``ValueError``: these are mistakes in the program, not states of a store.
"""

from __future__ import annotations

import errno as _errno
from typing import NoReturn

__all__ = [
    "ClosedError",
    "ComparatorMismatchError",
    "ConflictError",
    "CorruptionError",
    "Error",
    "ForeignFormatError",
    "ForkedError",
    "IOError",
    "IteratorInvalidError",
    "LockedError",
    "NotFoundError",
    "ReadOnlyError",
    "UnsupportedCompressionError",
]


class Error(Exception):
    """Root of all lsmkv exceptions."""


class CorruptionError(Error):
    """Bytes on disk are not what their format allows.

    ``path`` is the damaged file and ``offset`` the byte position of the damage in it; either is
    ``None`` where it cannot be known (bytes that never came from a file, say).
    """

    def __init__(self, reason: str, path: str | None = None, offset: int | None = None) -> None:
        self.reason = reason
        self.path = path
        self.offset = offset
        super().__init__(reason, path, offset)

    def __str__(self) -> str:
        where = "" if self.path is None else f"{self.path}: "
        at = "" if self.offset is None else f" (at offset {self.offset})"
        return f"{where}{self.reason}{at}"

    def located(self, path: str, base: int = 0) -> CorruptionError:
        """The same damage, told with its file; ``base`` is added to the offset known so far.

        A path that is known already stays: the code nearest to the bytes knows best.
        """
        if self.path is not None:
            return self
        return type(self)(self.reason, path, base + (self.offset or 0))


class UnsupportedCompressionError(Error):
    """A block names a codec that this installation cannot decode.  The data may be sound."""


class ComparatorMismatchError(Error):
    """The store was made with another comparator than the one given; both are named."""


class ConflictError(Error):
    """A transaction touched a key that someone else wrote since it began; nothing was written."""


class ForeignFormatError(Error):
    """The directory belongs to another engine (RocksDB, say), and is not damaged."""


class IOError(Error, OSError):
    """The operating system refused a call; ``errno``, ``strerror`` and ``filename`` say which."""


class NotFoundError(Error, FileNotFoundError):
    """There is no database at this path, and ``create_if_missing`` is false."""


class LockedError(IOError, BlockingIOError):
    """Another process, or another ``DB`` of this one, holds the store open.

    ``pid`` is the holder's process id, or ``None`` where it cannot be known.
    """

    def __init__(self, path: str, pid: int | None = None) -> None:
        holder = "" if pid is None else f" (held by process {pid})"
        super().__init__(_errno.EAGAIN, f"the database is in use{holder}", path)
        self.pid = pid

    def __reduce__(self) -> tuple[type[LockedError], tuple[str, int | None]]:
        return type(self), (self.filename, self.pid)


class ClosedError(Error, RuntimeError):
    """The store, iterator or snapshot was closed before this call."""


class ForkedError(ClosedError):
    """The store was opened by the parent of this process; open it anew after the fork."""


class ReadOnlyError(Error):
    """A write was asked of a store that is open for reading only."""


class IteratorInvalidError(Error):
    """The iterator stands on no entry, so it has no current key or value."""


def io_error(error: OSError) -> Error:
    """What an env raised, as :class:`IOError`; an error of lsmkv's own stays as it is."""
    if isinstance(error, Error):
        return error
    typed = IOError(error.errno, error.strerror or str(error), error.filename)
    typed.__cause__ = error
    return typed


def raise_typed(error: OSError) -> NoReturn:
    """Raise the :func:`io_error` of ``error``."""
    raise io_error(error)
