"""Sources of bytes: a file by its path, bytes in memory, or a readable object.

This is the one place where :mod:`lsmkv.files` opens anything.
"""

from __future__ import annotations

import os
from typing import Protocol, Self

from lsmkv.engine.env.base import RandomAccessFile
from lsmkv.engine.env.local import LocalEnv


class Readable(Protocol):
    """An object that can be read at any position; the files of all of lsmkv's environments are
    readable.

    >>> class Zeros:
    ...     path, size = "zeros", 100
    ...     def read(self, offset: int, length: int, /) -> bytes:
    ...         return bytes(min(length, max(0, self.size - offset)))
    ...     def close(self) -> None: ...
    >>> from lsmkv.files import Log
    >>> with Log(Zeros()) as log:
    ...     list(log.records())
    []
    """

    @property
    def path(self) -> str:
        """Its name, for messages."""
        ...

    @property
    def size(self) -> int:
        """Its length in bytes."""
        ...

    def read(self, offset: int, length: int, /) -> bytes:
        """``length`` bytes from ``offset``; fewer only where it ends.  Raises ``OSError``.

        The cost depends on the object; callers ask for each block once.
        """
        ...

    def close(self) -> None:
        """Release what it holds; a second close has no effect."""
        ...


FileSource = str | os.PathLike[str] | bytes | Readable
"""An object that can be inspected: the path of a file, its bytes, or a :class:`Readable`."""

_IN_MEMORY = "<bytes>"


def open_source(source: FileSource) -> RandomAccessFile:
    """The file; ``OSError`` if there is none, or if it is not a regular file.

    Symbolic links are not followed, as in the engine.
    """
    if isinstance(source, RandomAccessFile):
        return source
    if isinstance(source, bytes):
        return _InMemory(source)
    if isinstance(source, (str, os.PathLike)):
        parent, name = os.path.split(os.fspath(source))
        with LocalEnv().open_directory(parent or ".") as directory:
            return directory.open(name)
    if not hasattr(source, "read"):
        kind = type(source).__name__
        raise TypeError(f"give a path, bytes or a readable object, not {kind}")
    return _Adapted(source)


class _InMemory(RandomAccessFile):
    def __init__(self, data: bytes) -> None:
        self.path = _IN_MEMORY
        self.size = len(data)
        self._data = data

    def read(self, offset: int, length: int) -> bytes:
        return self._data[offset : offset + length]

    def close(self) -> None:
        pass


class _Adapted(RandomAccessFile):
    """A :class:`Readable` as the engine's kind of file."""

    def __init__(self, source: Readable) -> None:
        self.path = source.path
        self.size = source.size
        self._source = source

    def read(self, offset: int, length: int) -> bytes:
        data: object = self._source.read(offset, length)
        if not isinstance(data, bytes):
            raise TypeError(f"{self.path}: read returned {type(data).__name__}, not bytes")
        return data

    def close(self) -> None:
        self._source.close()


class FromBlock(RandomAccessFile):
    """A file from one of its blocks on, so that a log reader can begin there.

    ``before`` replaces the first bytes of that block.
    """

    def __init__(self, file: RandomAccessFile, base: int, before: bytes) -> None:
        self.path = file.path
        self.size = max(0, file.size - base)
        self._file = file
        self._base = base
        self._before = before

    def read(self, offset: int, length: int) -> bytes:
        """Read from the underlying file."""
        if offset >= self.size:
            return b""
        data = self._file.read(self._base + offset, length)
        before = self._before[offset : offset + length]
        return before + data[len(before) :]

    def close(self) -> None:
        """Do nothing: the file stays open."""


class OpenFile:
    """An inspected file: the common base of tables, logs and MANIFESTs."""

    def __init__(self, source: FileSource) -> None:
        self._file = open_source(source)

    @property
    def path(self) -> str:
        """The path, for messages; ``<bytes>`` for bytes in memory."""
        return self._file.path

    @property
    def size(self) -> int:
        """The length in bytes when it was opened."""
        return self._file.size

    def read(self, start: int, end: int) -> bytes:
        """The bytes from ``start`` to ``end``; fewer where the file ends.  Raises ``OSError``."""
        end = min(end, self._file.size)
        return self._file.read(start, end - start) if 0 <= start < end else b""

    def close(self) -> None:
        """Close the file, even if the caller opened it.  A second close has no effect."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<lsmkv.files.{type(self).__name__} {self.path!r}, {self.size:,} bytes>"
