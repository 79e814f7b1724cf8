"""The local file system, by POSIX calls: one descriptor for the directory, names relative to it.

Files are opened so that a hostile directory can do no harm: never through a symbolic link, never
waiting (a FIFO), and only regular files are accepted.  A directory that is renamed or replaced
while it is open stays the same directory.

Handles close their descriptor when they are deleted (a table cache drops them that way).  A
handle that is used after ``close`` raises ``OSError`` with ``EBADF``.  Closing while another thread
is *inside* a call on the same handle is the caller's fault: the descriptor's number may be given
to another file at that moment.  Share a handle by reference, and let the last user drop it.

Windows is not supported: it has no descriptors for directories.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lsmkv.env.base import Directory, Env, RandomAccessFile, WritableFile, check_name
from lsmkv.env.lock import HAS_OFD_LOCKS, LocalFileLock, lock_holder, take_lock

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_CLOEXEC: int = getattr(os, "O_CLOEXEC", 0)
_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_NONBLOCK: int = getattr(os, "O_NONBLOCK", 0)
_DIRECTORY: int = getattr(os, "O_DIRECTORY", 0)
_FILE_MODE = 0o644
_DIRECTORY_MODE = 0o755

# fdatasync writes the content and the length, which is all that a reader needs; not the times.
_sync_content: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)
# macOS: fsync hands the data to the drive, which may keep it in its cache.
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
_NO_FULL_SYNC = (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY)

# How an open fails on what is not a regular file: a symbolic link, a FIFO or socket, a device.
_ODD_FILE = (errno.ELOOP, errno.EMLINK, errno.ENOTDIR, errno.ENXIO, errno.EISDIR)
# A directory that this user cannot fsync, as against one whose fsync failed.
_NOT_SYNCABLE = (errno.EACCES, errno.EPERM, errno.EINVAL, errno.ENOTSUP, errno.EROFS)


class _Descriptor:
    """Owns one descriptor; -1 once closed.

    A file that others may still be reading is closed by the last of them to let go, in a finalizer.
    Ctrl-C in the microsecond that this takes is reported and lost, as in every finalizer of Python,
    and may leave the descriptor open.
    """

    _fd = -1
    path = ""

    def __init__(self, fd: int, path: str) -> None:
        self._fd = fd
        self.path = path

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()


class LocalRandomAccessFile(_Descriptor, RandomAccessFile):
    """A file read with ``pread``: one system call a read, unless the kernel gives less."""

    def __init__(self, fd: int, path: str, size: int) -> None:
        super().__init__(fd, path)
        self.size = size

    def read(self, offset: int, length: int) -> bytes:
        try:
            if offset + length > self.size:
                # A read allocates all that it asks for: never ask for more than there is.
                length = min(length, max(0, os.fstat(self._fd).st_size - offset))
            data = os.pread(self._fd, length, offset)
            if len(data) < length:
                return self._read_on(data, offset, length)
            return data
        except OSError as error:
            error.filename = self.path
            raise

    def _read_on(self, data: bytes, offset: int, length: int) -> bytes:
        """Complete a short read, up to the end of the file."""
        parts = [data]
        done = len(data)
        while data and done < length:
            data = os.pread(self._fd, length - done, offset + done)
            parts.append(data)
            done += len(data)
        return b"".join(parts)


class LocalWritableFile(_Descriptor, WritableFile):
    """A file opened with ``O_APPEND``: every write goes to its end, after a truncation too."""

    _raw: io.FileIO | None = None
    _sync_failed = False
    _synced = False
    _sync_begun = 0
    """The number of bytes whose write-out was begun already."""

    @property
    def raw_write(self) -> Callable[[bytes], int]:
        """The system's own write, unless a derived class has an ``append`` of its own."""
        if type(self).append is not LocalWritableFile.append:
            return self._append_all
        if self._raw is None:
            # A file object knows when it is closed, which a descriptor's number does not.
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
                raise OSError(errno.EIO, "the system takes no more bytes", self.path)
            done += written

    def size(self) -> int:
        with _naming(self.path):
            return os.fstat(self._fd).st_size

    def truncate(self, length: int) -> None:
        size = self.size()
        if not 0 <= length <= size:
            raise ValueError(f"cannot cut {self.path} back to {length} bytes: it has {size}")
        with _naming(self.path):
            os.ftruncate(self._fd, length)
        self._sync_begun = min(self._sync_begun, length)

    def sync(self) -> None:
        """Make the content durable; once that failed, every later call fails as well.

        After a failed fsync the kernel forgets the bytes that it could not write, and would
        report success to the next one.
        """
        if self._sync_failed:
            raise OSError(errno.EIO, "an earlier sync of this file failed", self.path)
        try:
            _sync(self._fd, _sync_content)
        except OSError as error:
            self._sync_failed = True
            error.filename = self.path
            raise
        self._synced = True

    def begin_sync(self) -> None:
        """Begin the write-out by ``posix_fadvise``; an error is left for ``sync`` to raise.

        Linux, told that these bytes are not needed soon, begins to write out the ones that it may
        not drop yet (source: ``mm/fadvise.c``).  It would drop bytes that are written out already,
        and they may be read soon: so this is done once for each byte, and not for a file that is
        synced now and then.
        """
        begun = self._sync_begun
        if self._synced or not hasattr(os, "posix_fadvise"):
            return
        try:
            size = os.fstat(self._fd).st_size
            if size <= begun:
                return
            os.posix_fadvise(self._fd, begun, size - begun, os.POSIX_FADV_DONTNEED)
            self._sync_begun = size
        except OSError:
            pass


class LocalDirectory(_Descriptor, Directory):
    """A directory of the local file system, held by its descriptor."""

    def __init__(self, fd: int, path: str, env: LocalEnv) -> None:
        super().__init__(fd, path)
        self._env = env

    @property
    def descriptor(self) -> int:
        """The descriptor, for a worker process in the same directory; -1 once closed."""
        return self._fd

    def names(self) -> list[str]:
        with _naming(self.path):
            # A descriptor of its own: listing moves the position that all users of one share.
            fd = os.open(".", os.O_RDONLY | _DIRECTORY | _CLOEXEC, dir_fd=self._fd)
            try:
                return os.listdir(fd)
            finally:
                os.close(fd)

    def exists(self, name: str) -> bool:
        with _naming(self._path_of(name)):
            try:
                os.stat(name, dir_fd=self._fd, follow_symlinks=False)
            except FileNotFoundError:
                return False
            return True

    def size(self, name: str) -> int:
        path = self._path_of(name)
        with _naming(path):
            follow = self._env.follow_symlinks
            status = os.stat(name, dir_fd=self._fd, follow_symlinks=follow)
        _require_regular(status, path)
        return status.st_size

    def open(self, name: str) -> LocalRandomAccessFile:
        flags = os.O_RDONLY | (0 if self._env.follow_symlinks else _NOFOLLOW)
        fd, size = self._open(name, flags)
        return LocalRandomAccessFile(fd, self._path_of(name), size)

    def create(self, name: str) -> LocalWritableFile:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | _NOFOLLOW
        fd, _ = self._open(name, flags)
        return LocalWritableFile(fd, self._path_of(name))

    def append_to(self, name: str) -> LocalWritableFile:
        fd, _ = self._open(name, os.O_WRONLY | os.O_APPEND | _NOFOLLOW)
        return LocalWritableFile(fd, self._path_of(name))

    def rename(self, old: str, new: str) -> None:
        with _naming(self._path_of(old), self._path_of(new)):
            os.rename(old, new, src_dir_fd=self._fd, dst_dir_fd=self._fd)

    def remove(self, name: str) -> None:
        with _naming(self._path_of(name)):
            os.unlink(name, dir_fd=self._fd)

    def link(self, name: str, target: Directory) -> None:
        path = self._path_of(name)
        if not isinstance(target, LocalDirectory):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
        with _naming(path, target._path_of(name)):
            os.link(name, name, src_dir_fd=self._fd, dst_dir_fd=target._fd, follow_symlinks=False)

    def sync(self) -> None:
        with _naming(self.path):
            _sync(self._fd, os.fsync)

    def lock(self, name: str) -> LocalFileLock:
        path = self._path_of(name)
        flags = os.O_RDWR | os.O_CREAT | _NOFOLLOW
        with _naming(path):
            return take_lock(
                self._fd, name, path, lambda: self._open(name, flags)[0], self._env.ofd_locks
            )

    def lock_holder(self, name: str) -> int | None:
        path = self._path_of(name)
        flags = os.O_RDONLY | _NOFOLLOW
        with _naming(path):
            return lock_holder(
                self._fd, name, lambda: self._open(name, flags)[0], self._env.ofd_locks
            )

    def subdirectory(self, name: str, create: bool = False) -> LocalDirectory:
        """A directory inside this one; with ``create`` its own name is durable afterwards."""
        path = self._path_of(name)
        with _naming(path):
            try:
                fd = self._open_directory(name)
            except FileNotFoundError:
                if not create:
                    raise
                _make_directory(name, self._fd)
                fd = self._open_directory(name)
            directory = LocalDirectory(fd, path, self._env)
            if create:
                self.sync()
            return directory

    def _path_of(self, name: str) -> str:
        return os.path.join(self.path, check_name(name))

    def _open(self, name: str, flags: int) -> tuple[int, int]:
        """Open a regular file: its descriptor and its length in bytes."""
        path = self._path_of(name)
        with _naming(path):
            try:
                fd = os.open(name, flags | _NONBLOCK | _CLOEXEC, _FILE_MODE, dir_fd=self._fd)
            except OSError as error:
                self._explain(error, name, path)
                raise
            try:
                status = os.fstat(fd)
                _require_regular(status, path)
            except BaseException:
                os.close(fd)
                raise
            return fd, status.st_size

    def _open_directory(self, name: str) -> int:
        try:
            flags = os.O_RDONLY | _DIRECTORY | _NOFOLLOW | _CLOEXEC
            return os.open(name, flags, dir_fd=self._fd)
        except NotADirectoryError as error:  # the error that Linux raises for a symbolic link here
            status = os.stat(name, dir_fd=self._fd, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                raise OSError(errno.ELOOP, "refused: a symbolic link", error.filename) from error
            raise

    def _explain(self, error: OSError, name: str, path: str) -> None:
        """The error of a failed open, which names the kind of file that was found."""
        if error.errno in _ODD_FILE:
            status = os.stat(name, dir_fd=self._fd, follow_symlinks=False)
            _require_regular(status, path)

    def _sync_parent(self, made: bool) -> None:
        """Make this directory's own name durable.

        A parent that cannot be synced (it may be unreadable) costs a ``sync`` of everything if
        the directory is ``made`` just now, and is left alone otherwise.
        """
        try:
            fd = os.open("..", os.O_RDONLY | _DIRECTORY | _CLOEXEC, dir_fd=self._fd)
            try:
                _sync(fd, os.fsync)
            finally:
                os.close(fd)
        except OSError as error:
            if error.errno not in _NOT_SYNCABLE:
                raise
            if made:
                os.sync()


class LocalEnv(Env):
    """The local file system.

    ``follow_symlinks`` lets files be *read* through symbolic links (nothing is ever written
    through one).  ``ofd_locks=False`` takes POSIX locks, as on systems that have no others.

    Errors are ``OSError``, with ``errno`` and the whole path.  Each method costs its system calls;
    one that makes or renames a directory waits for the disk, too.

    >>> import tempfile
    >>> env = LocalEnv()
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with env.open_directory(f"{place}/new", create=True) as directory:
    ...         with directory.create("file") as file:
    ...             file.append(b"content")
    ...         directory.read_file("file", limit=100)
    ...         directory.remove("file")
    ...     env.rename_directory(f"{place}/new", f"{place}/old")
    ...     env.remove_directory(f"{place}/old")
    b'content'
    """

    supported = _DIRECTORY != 0 and fcntl is not None and os.open in os.supports_dir_fd
    """Whether this platform has the necessary calls."""

    def __init__(self, *, follow_symlinks: bool = False, ofd_locks: bool = HAS_OFD_LOCKS) -> None:
        self.follow_symlinks = follow_symlinks
        self.ofd_locks = ofd_locks

    def open_directory(self, path: str, create: bool = False) -> LocalDirectory:
        """Open a directory; with ``create`` it is made if missing, and its own name is durable.

        The path may be a symbolic link to a directory.  ``OSError`` with ``ENOSYS`` where the
        platform lacks directory descriptors.
        """
        if not self.supported:
            why = "LocalEnv needs directory descriptors (dir_fd), which this platform lacks"
            raise OSError(errno.ENOSYS, why, path)
        flags = os.O_RDONLY | _DIRECTORY | _CLOEXEC
        made = False
        try:
            fd = os.open(path, flags)
        except FileNotFoundError:
            if not create:
                raise
            made = _make_directory(path)
            fd = os.open(path, flags)
        directory = LocalDirectory(fd, path, self)
        if create:
            with _naming(path):
                directory._sync_parent(made)
        return directory

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory; ``OSError`` with ``ENOTEMPTY`` if it is not."""
        os.rmdir(path)

    def rename_directory(self, old: str, new: str) -> None:
        """Rename, and fsync the directory that holds both names.

        If another process makes ``new`` between the check and the rename, it is replaced only if
        it is an empty directory: the system refuses otherwise.
        """
        if os.path.lexists(new):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)
        os.rename(old, new)
        with self.open_directory(os.path.dirname(os.path.abspath(new))) as parent:
            parent.sync()


@contextmanager
def _naming(path: str, target: str | None = None) -> Iterator[None]:
    """Errors from inside name the full path, not the bare name or nothing at all."""
    try:
        yield
    except OSError as error:
        error.filename = path
        if target is not None:
            error.filename2 = target
        raise


def _make_directory(path: str, parent: int | None = None) -> bool:
    """Make a directory; returns whether this call made it."""
    try:
        os.mkdir(path, _DIRECTORY_MODE, dir_fd=parent)
    except FileExistsError:
        return False
    return True


def _require_regular(status: os.stat_result, path: str) -> None:
    """``OSError`` that says what the file is, unless it is a regular one."""
    mode = status.st_mode
    if stat.S_ISREG(mode):
        return
    if stat.S_ISLNK(mode):
        way_out = "follow_symlinks=True, with read_only=True, reads through it"
        raise OSError(errno.ELOOP, f"refused: a symbolic link ({way_out})", path)
    if stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, "a directory, where a file is expected", path)
    raise OSError(errno.EINVAL, "not a regular file", path)


def _sync(fd: int, call: Callable[[int], None]) -> None:
    """Make data durable, by ``call`` or by the stronger call of this system."""
    if fd < 0:  # which Python's own fsync takes for a ValueError
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    if not _full_sync(fd):
        call(fd)


def _full_sync(fd: int) -> bool:
    """Flush the drive's cache if the system has a call for that; returns whether it has."""
    if _FULL_SYNC is None:
        return False
    try:
        fcntl.fcntl(fd, _FULL_SYNC)
    except OSError as error:
        if error.errno not in _NO_FULL_SYNC:
            raise
        return False
    return True


def is_write_protected(path: str) -> bool:
    """Whether a directory is there in which this process may not make files."""
    return os.path.isdir(path) and not os.access(path, os.W_OK)
