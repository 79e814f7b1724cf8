"""Files of the local file system, through POSIX calls on one descriptor each.

``LocalDirectory`` opens them.  Handles close their descriptor when they are deleted, as a table
cache does.  Using a handle after ``close`` raises ``OSError`` with ``EBADF``.  The caller must not
close a handle while another thread is *inside* a call on it: the descriptor's number may be given
to another file at that moment.  Share a handle by reference, and let the last user drop it.
"""

from __future__ import annotations

import errno
import functools
import io
import mmap
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from lsmkv.engine.env.base import RandomAccessFile, WritableFile
from lsmkv.engine.util.signals import deferred

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# fdatasync writes the content and the length, which is all that a reader needs, but not the times.
SYNC_CONTENT: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)
# macOS: fsync passes the data to the drive, which may keep the data in its cache.
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
_NO_FULL_SYNC = (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY)


class Descriptor:
    """Owns one descriptor; -1 once closed.

    The caller that opens it defers signals until this object has it.  A file that others may still
    be reading is closed by the last user, in a finalizer.  No file object owns it: in a cycle that
    is collected, that would be closed before the log is synced.
    """

    _fd = -1
    path = ""

    def __init__(self, fd: int, path: str) -> None:
        self._fd = fd
        self.path = path

    def close(self) -> None:
        with deferred:
            fd, self._fd = self._fd, -1
            if fd >= 0:
                os.close(fd)

    def __del__(self) -> None:
        if self._fd < 0:
            return  # at the interpreter's end what close() needs may be gone
        try:
            self.close()
        finally:
            if self._fd >= 0:  # a signal has ended the first call before it began
                self.close()


class LocalRandomAccessFile(Descriptor, RandomAccessFile):
    """A file read with ``pread``: one system call per read, unless the kernel returns less.

    Not for Windows, which has no ``pread``: ``windows.py`` has its own class.
    """

    def __init__(self, fd: int, path: str, size: int) -> None:
        super().__init__(fd, path)
        self.size = size

    def read(self, offset: int, length: int) -> bytes:
        try:
            if offset + length > self.size:
                # A read allocates everything that it asks for: never ask for more than there is.
                length = min(length, max(0, os.fstat(self._fd).st_size - offset))
            data: bytes = os.pread(self._fd, length, offset)  # type: ignore[attr-defined,unused-ignore]
            if len(data) < length:
                return self._read_on(data, offset, length)
            return data
        except OSError as error:
            error.filename = self.path
            raise

    @property
    def raw_read(self) -> Callable[[int, int], bytes]:
        """The system's own ``pread``, unless a subclass has its own ``read``."""
        if self._fd < 0 or type(self).read is not LocalRandomAccessFile.read:
            return self._read_all
        return functools.partial(os.pread, self._fd)  # type: ignore[attr-defined,unused-ignore]

    def fileno(self) -> int:
        """The descriptor."""
        return self._fd

    def status(self) -> os.stat_result:
        """The system's current record of the file."""
        with naming(self.path):
            return os.fstat(self._fd)

    def _read_on(self, data: bytes, offset: int, length: int) -> bytes:
        """Complete a short read, up to the end of the file."""
        parts = [data]
        done = len(data)
        while data and done < length:
            data = os.pread(self._fd, length - done, offset + done)  # type: ignore[attr-defined,unused-ignore]
            parts.append(data)
            done += len(data)
        return b"".join(parts)


class MappedFile(RandomAccessFile):
    """A file whose content is mapped into memory, read by slices of :attr:`mapping`.

    A slice is a copy from the system's cache, without a call of the system.  It raises nothing: if
    the device fails, or the file was cut, SIGBUS ends the process.
    """

    def __init__(self, file: LocalRandomAccessFile) -> None:
        """Take the place of an open file, which is closed: the mapping has its own
        descriptor.  ``OSError`` or ``ValueError`` if it cannot be mapped; then ``file`` stays
        open."""
        self.path = file.path
        self.size = file.size
        self.mapping = mmap.mmap(file.fileno(), file.size, access=mmap.ACCESS_READ)
        file.close()

    def read(self, offset: int, length: int) -> bytes:
        if self.mapping is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self.path)
        data: bytes = self.mapping[offset : offset + length]
        return data

    def close(self) -> None:
        self.mapping = None  # unmapped once no other thread reads it


class LocalWritableFile(Descriptor, WritableFile):
    """A file opened with ``O_APPEND``: every write goes to its end, also after a truncation."""

    _raw: io.FileIO | None = None
    _sync_failed = False
    _synced = False
    _sync_begun = 0
    """The number of bytes whose write-out was already begun."""

    @property
    def raw_write(self) -> Callable[[bytes], int]:
        """The system's own write, unless a subclass has its own ``append``."""
        if type(self).append is not LocalWritableFile.append:
            return self._append_all
        if self._raw is None:
            # A file object knows when it is closed; a descriptor's number does not.
            self._raw = io.FileIO(self._fd, "ab", closefd=False)
        return self._raw.write

    def close(self) -> None:
        if self._raw is not None:
            self._raw.close()
        super().close()

    def append(self, data: bytes) -> None:
        try:
            written = os.write(self._fd, data)
            if written < len(data):
                self._write_on(data, written)
        except OSError as error:
            error.filename = self.path
            raise

    def _write_on(self, data: bytes, done: int) -> None:
        """Complete a short write."""
        view = memoryview(data)
        while done < len(data):
            written = os.write(self._fd, view[done:])
            if written == 0:
                raise OSError(errno.EIO, "the system wrote no more bytes", self.path)
            done += written

    def size(self) -> int:
        with naming(self.path):
            return os.fstat(self._fd).st_size

    def truncate(self, length: int) -> None:
        size = self.size()
        if not 0 <= length <= size:
            raise ValueError(f"cannot truncate {self.path} to {length} bytes: it has {size}")
        with naming(self.path):
            os.ftruncate(self._fd, length)
        self._sync_begun = min(self._sync_begun, length)

    def sync(self) -> None:
        """Make the content durable; after a failure every later call also fails.

        After a failed fsync the kernel forgets the bytes that it could not write, and the next one
        would succeed.
        """
        if self._sync_failed:
            raise OSError(errno.EIO, "an earlier sync of this file failed", self.path)
        try:
            sync_descriptor(self._fd, SYNC_CONTENT)
        except OSError as error:
            self._sync_failed = True
            error.filename = self.path
            raise
        self._synced = True

    def begin_sync(self) -> None:
        """Begin the write-out with ``posix_fadvise``; errors are left for ``sync`` to raise.

        This call says that the bytes are not needed soon.  Linux then begins to write those that it
        may not drop yet (source: ``mm/fadvise.c``).  It would drop bytes that are already written,
        although they may be read soon.  So this is done once per byte, and not for a file that is
        synced occasionally.
        """
        begun = self._sync_begun
        if sys.platform != "linux" or self._synced or not hasattr(os, "posix_fadvise"):
            return
        try:
            size = self.size()
            if size <= begun:
                return
            os.posix_fadvise(self._fd, begun, size - begun, os.POSIX_FADV_DONTNEED)
            self._sync_begun = size
        except OSError:
            pass


@contextmanager
def naming(path: str, target: str | None = None) -> Iterator[None]:
    """Errors inside the block name the full path, instead of the bare name or nothing."""
    try:
        yield
    except OSError as error:
        error.filename = path
        if target is not None:
            error.filename2 = target
        raise


def require_regular(status: os.stat_result, path: str) -> None:
    """Raise ``OSError`` with the kind of the file unless it is a regular file."""
    mode = status.st_mode
    if stat.S_ISREG(mode):
        return
    if stat.S_ISLNK(mode):
        way_out = "follow_symlinks=True with read_only=True reads through it"
        raise OSError(errno.ELOOP, f"refused: a symbolic link ({way_out})", path)
    if stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, "a directory where a file is expected", path)
    raise OSError(errno.EINVAL, "not a regular file", path)


def refuse_links(status: os.stat_result, path: str) -> None:
    """Raise ``OSError`` for a file with several names: writing changes it under each."""
    if status.st_nlink > 1:
        reason = f"refused: a file with {status.st_nlink} names (hard links)"
        raise OSError(errno.EMLINK, reason, path)


def make_private(fd: int, status: os.stat_result) -> None:
    """Take a file from its group and from others, unless they may write to it.

    A process that may open a file can lock it.  lsmkv lets no group write, so a mode that does was
    set on purpose, and stays.  So does that of a file with several names: it may be a user's data.
    """
    mode = stat.S_IMODE(status.st_mode)
    taken = (0 if mode & 0o020 else 0o070) | (0 if mode & 0o002 else 0o007)
    if mode & taken and status.st_nlink <= 1:
        with suppress(OSError):  # another user's, or on a file system without modes
            os.chmod(fd, mode & ~taken)


def sync_descriptor(fd: int, call: Callable[[int], None]) -> None:
    """Make data durable, with ``call`` or with a stronger call of this system."""
    if fd < 0:  # Python's own fsync takes it for a ValueError
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    if not _full_sync(fd):
        call(fd)


def _full_sync(fd: int) -> bool:
    """Flush the drive's cache if the system has a call for that.  Returns whether it has."""
    if sys.platform == "win32" or _FULL_SYNC is None:
        return False
    try:
        fcntl.fcntl(fd, _FULL_SYNC)
    except OSError as error:
        if error.errno not in _NO_FULL_SYNC:
            raise
        return False
    return True
