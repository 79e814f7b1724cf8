"""Files that a visitor has dropped on a page, as a file system that can only be read.

The files stay where they are: each read asks the browser for these bytes alone, through a
``FileReaderSync`` in the page's worker.  Nothing is written, and no lock is taken.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from typing import Never, Protocol

from lsmkv import Directory, Env, FileLock, RandomAccessFile, WritableFile

_CHUNK = 32 << 10
"""The fewest bytes that are read at once; those of the last read are kept for the next one."""
_LONGEST = 1 << 20
"""The most bytes that are read ahead."""


class Dropped(Protocol):
    """A file as the browser shows it."""

    @property
    def size(self) -> int:
        """Its length in bytes."""

    @property
    def modified(self) -> float:
        """The time of its last write: seconds since 1970."""

    def read(self, offset: int, length: int) -> bytes:
        """These bytes.  ``OSError`` if the browser does not give them."""


class DroppedFile(RandomAccessFile):
    """A dropped file, open for reading.

    A read is answered from the last piece, if it has these bytes.  A read that continues where that
    piece ends takes a piece twice as long; any other one begins with :data:`_CHUNK` again.
    """

    def __init__(self, path: str, file: Dropped) -> None:
        self.path = path
        self.size = file.size
        self._file = file
        self._kept = (0, b"")
        self._is_open = True

    def read(self, offset: int, length: int) -> bytes:
        """``length`` bytes from ``offset``; fewer only at the end of the file."""
        if not self._is_open:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self.path)
        if offset < 0 or length < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), self.path)
        length = max(0, min(length, self.size - offset))
        if not length:
            return b""
        start, kept = self._kept
        end = start + len(kept)
        if start <= offset and offset + length <= end:
            return kept[offset - start : offset - start + length]
        if length >= _LONGEST:
            return self._bytes(offset, length)
        if kept and start <= offset <= end:
            piece = kept[offset - start :]
            ahead = min(2 * len(kept), _LONGEST, self.size - end)
            piece += self._bytes(end, max(ahead, length - len(piece)))
            start = offset
        else:
            start = offset // _CHUNK * _CHUNK
            stop = -(-(offset + length) // _CHUNK) * _CHUNK
            piece = self._bytes(start, min(stop, self.size) - start)
        self._kept = start, piece
        return piece[offset - start : offset - start + length]

    def close(self) -> None:
        """Drop what is kept of it."""
        self._is_open = False
        self._kept = (0, b"")

    def _bytes(self, offset: int, length: int) -> bytes:
        data = self._file.read(offset, length)
        if len(data) != length:
            raise OSError(errno.EIO, "the browser gave fewer bytes", self.path)
        return data


class DroppedDirectory(Directory):
    """The dropped files of one directory."""

    def __init__(self, path: str, files: Mapping[str, Dropped]) -> None:
        self.path = path
        self._files = files

    def close(self) -> None:
        """Does nothing: the page keeps the files."""

    def names(self) -> list[str]:
        """The names of the files."""
        return list(self._files)

    def exists(self, name: str) -> bool:
        """True if there is a file of this name."""
        return name in self._files

    def size(self, name: str) -> int:
        """Length of a file in bytes."""
        return self._file(name).size

    def modified(self, name: str) -> float:
        """The time when a file was last written, in seconds since 1970."""
        return self._file(name).modified

    def open(self, name: str) -> RandomAccessFile:
        """Open a file for reading."""
        return DroppedFile(f"{self.path}/{name}", self._file(name))

    def _file(self, name: str) -> Dropped:
        try:
            return self._files[name]
        except KeyError:
            place = f"{self.path}/{name}"
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), place) from None

    def create(self, name: str) -> WritableFile:
        """Refused."""
        self._refuse(name)

    def append_to(self, name: str) -> WritableFile:
        """Refused."""
        self._refuse(name)

    def rename(self, old: str, new: str) -> None:
        """Refused."""
        self._refuse(old)

    def remove(self, name: str) -> None:
        """Refused."""
        self._refuse(name)

    def link(self, name: str, target: Directory) -> None:
        """Refused."""
        self._refuse(name)

    def sync(self) -> None:
        """Does nothing: nothing is written."""

    def lock(self, name: str) -> FileLock:
        """Refused."""
        self._refuse(name)

    def lock_holder(self, name: str) -> int | None:
        """None: nobody else can have the page's files open through it."""
        return None

    def subdirectory(self, name: str, create: bool = False) -> Directory:
        """There is none."""
        if create:
            self._refuse(name)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), f"{self.path}/{name}")

    def _refuse(self, name: str) -> Never:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), f"{self.path}/{name}")


class DroppedEnv(Env):
    """One directory of dropped files, under whatever path it is opened."""

    def __init__(self, files: Mapping[str, Dropped]) -> None:
        self._files = files

    def open_directory(self, path: str, create: bool = False) -> Directory:
        """The directory; its files are those of the call that made this."""
        return DroppedDirectory(path, self._files)

    def remove_directory(self, path: str) -> None:
        """Refused."""
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    def rename_directory(self, old: str, new: str) -> None:
        """Refused."""
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), old)
