"""The local file system, through POSIX calls with one descriptor for the directory.

Files are opened so that a hostile directory can do no harm: symbolic links are not followed,
opening never waits (a FIFO), and only regular files are accepted.  A directory that is renamed or
replaced while it is open stays the same directory.

Windows has no descriptors for directories: there ``LocalEnv`` opens those of ``windows.py``.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time

from lsmkv.engine.env.base import Directory, Env, RandomAccessFile, WritableFile, check_name
from lsmkv.engine.env.descriptors import with_room
from lsmkv.engine.env.forks import refuse_unseen_forks
from lsmkv.engine.env.local_file import (
    Descriptor,
    LocalRandomAccessFile,
    LocalWritableFile,
    MappedFile,
    make_private,
    naming,
    refuse_links,
    require_regular,
    sync_descriptor,
)
from lsmkv.engine.env.local_log import LocalLogFile
from lsmkv.engine.env.lock import (
    FIRST_LEASE,
    HAS_LOCKS,
    HAS_OFD_LOCKS,
    LocalFileLock,
    is_locked_from,
    lock_holder,
    take_lock,
)
from lsmkv.engine.env.mounts import keeps_reservations, shared_file_system_of
from lsmkv.engine.env.place import absolute
from lsmkv.engine.util.signals import deferred

_CLOEXEC: int = getattr(os, "O_CLOEXEC", 0)
_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_NONBLOCK: int = getattr(os, "O_NONBLOCK", 0)
_DIRECTORY: int = getattr(os, "O_DIRECTORY", 0)
_FILE_MODE = 0o644
_PRIVATE_MODE = 0o600
"""The mode of files that are locked: a process that may open one can keep its users out of the
store."""
_DIRECTORY_MODE = 0o755

_SECOND = 1_000_000_000
_COARSE_TIME = 100_000_000
_COARSEST_TIME = 2_500_000_000
"""Nanoseconds after which a directory's time of change distinguishes later changes."""

# Errors when opening something other than a regular file: a symbolic link, a FIFO or socket, a
# device.
_ODD_FILE = (errno.ELOOP, errno.EMLINK, errno.ENOTDIR, errno.ENXIO, errno.EISDIR)
# Errors of a directory that this user cannot fsync, in contrast to a failed fsync.
_NOT_SYNCABLE = (errno.EACCES, errno.EPERM, errno.EINVAL, errno.ENOTSUP, errno.EROFS)


class LocalDirectory(Descriptor, Directory):
    """A directory of the local file system, held by its descriptor."""

    _maps_tables: bool | None = None  # until a table is opened
    _maps_logs: bool | None = None  # until it is first read

    def __init__(self, fd: int, path: str, env: LocalEnv) -> None:
        super().__init__(fd, path)
        self._env = env
        self._place = absolute(path)  # independent of later changes of the working directory

    @property
    def descriptor(self) -> int:
        """The descriptor, for a worker process in the same directory; -1 once closed."""
        return self._fd

    def replaced(self) -> bool:
        with naming(self.path):
            ours = os.fstat(self._fd)
        try:
            there = os.stat(self._place)
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:
            return False  # which does not describe this directory
        return (ours.st_dev, ours.st_ino) != (there.st_dev, there.st_ino)

    def change_mark(self) -> int | None:
        """The time of the last change.

        None while another change could get the same time: the resolution may be 10 ms, or 2 s on
        file systems without fractions of seconds.
        """
        with naming(self.path):
            changed = os.fstat(self._fd).st_mtime_ns
        coarse = _COARSEST_TIME if changed % _SECOND == 0 else _COARSE_TIME
        return changed if time.time_ns() - changed > coarse else None

    def leads_to(self, name: str, file: RandomAccessFile) -> bool:
        if not isinstance(file, LocalRandomAccessFile):
            return True
        with naming(self._path_of(name)):
            try:
                status = os.stat(name, dir_fd=self._fd, follow_symlinks=self._env.follow_symlinks)
            except FileNotFoundError:
                return False
        return os.path.samestat(status, file.status())

    def names(self) -> list[str]:
        with naming(self.path), deferred:
            # Uses its own descriptor: listing moves the position that all users of one share.
            flags = os.O_RDONLY | _DIRECTORY | _CLOEXEC
            fd = with_room(lambda: os.open(".", flags, dir_fd=self._fd))
            try:
                return with_room(lambda: os.listdir(fd))  # it makes another one for itself
            finally:
                os.close(fd)

    def exists(self, name: str) -> bool:
        with naming(self._path_of(name)):
            try:
                os.stat(name, dir_fd=self._fd, follow_symlinks=False)
            except FileNotFoundError:
                return False
            return True

    def size(self, name: str) -> int:
        path = self._path_of(name)
        with naming(path):
            follow = self._env.follow_symlinks
            status = os.stat(name, dir_fd=self._fd, follow_symlinks=follow)
        require_regular(status, path)
        return status.st_size

    def modified(self, name: str) -> float:
        with naming(self._path_of(name)):
            follow = self._env.follow_symlinks
            return os.stat(name, dir_fd=self._fd, follow_symlinks=follow).st_mtime

    def free_bytes(self) -> int | None:
        if sys.platform == "win32":
            return None
        with naming(self.path):
            status = os.fstatvfs(self._fd)
        return status.f_bavail * status.f_frsize

    def open(self, name: str) -> LocalRandomAccessFile:
        flags = os.O_RDONLY | (0 if self._env.follow_symlinks else _NOFOLLOW)
        with deferred:
            fd, size = self._open(name, flags)
            return LocalRandomAccessFile(fd, self._path_of(name), size)

    def open_mapped(self, name: str) -> RandomAccessFile:
        if self._maps_tables is None:
            self._maps_tables = not shared_file_system_of(self.path)
        file = self.open(name)
        if not self._maps_tables or type(file) is not LocalRandomAccessFile:
            return file
        try:
            return MappedFile(file)
        except (OSError, ValueError):  # no room for it, an empty file, or one that was cut
            return file

    def create(self, name: str) -> LocalWritableFile:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | _NOFOLLOW
        with deferred:
            fd, _ = self._open(name, flags)
            return LocalWritableFile(fd, self._path_of(name))

    def append_to(self, name: str) -> LocalWritableFile:
        with deferred:
            fd, _ = self._open_again(name, os.O_WRONLY)
            return LocalWritableFile(fd, self._path_of(name))

    @property
    def maps_logs(self) -> bool:
        """True if logs may be mapped: on a file system that keeps reserved space, unless a subclass
        overrides ``create`` or ``append_to``."""
        if self._maps_logs is None:
            own = (
                getattr(self.create, "__func__", None) is LocalDirectory.create
                and getattr(self.append_to, "__func__", None) is LocalDirectory.append_to
            )
            self._maps_logs = own and keeps_reservations(self._fd)
        return self._maps_logs

    def create_log(self, name: str, mapped: bool = True) -> LocalWritableFile:
        if not (mapped and self.maps_logs):
            return self.create(name)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | _NOFOLLOW
        with deferred:
            fd, _ = self._open(name, flags)
            return LocalLogFile(fd, self._path_of(name))

    def continue_log(self, name: str, end: int, mapped: bool = True) -> WritableFile:
        if not (mapped and self.maps_logs):
            return super().continue_log(name, end)
        with deferred:
            fd, size = self._open_again(name, os.O_RDWR)
            file = LocalLogFile(fd, self._path_of(name), end)
        if size > end:
            try:
                file.truncate(end)
            except BaseException:
                file.close()
                raise
        return file

    def rename(self, old: str, new: str) -> None:
        with naming(self._path_of(old), self._path_of(new)):
            os.rename(old, new, src_dir_fd=self._fd, dst_dir_fd=self._fd)

    def remove(self, name: str) -> None:
        with naming(self._path_of(name)):
            os.unlink(name, dir_fd=self._fd)

    def link(self, name: str, target: Directory) -> None:
        path = self._path_of(name)
        if not isinstance(target, LocalDirectory):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
        if not hasattr(os, "link"):  # in WebAssembly
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), path)
        with naming(path, target._path_of(name)):
            os.link(name, name, src_dir_fd=self._fd, dst_dir_fd=target._fd, follow_symlinks=False)

    def sync(self) -> None:
        with naming(self.path):
            sync_descriptor(self._fd, os.fsync)

    def lock(self, name: str, shares: bool = False) -> LocalFileLock:
        """Also as the owner of a shared store does (``shares``): its members have a byte of it."""
        refuse_unseen_forks(self.path)
        path = self._path_of(name)
        flags = os.O_RDWR | os.O_CREAT | _NOFOLLOW
        with naming(path), deferred:
            return take_lock(
                *(self._fd, name, path, lambda: self._open(name, flags, True)[0]),
                *(self._env.ofd_locks, shares),
            )

    def lock_holder(self, name: str) -> int | None:
        path = self._path_of(name)
        flags = os.O_RDONLY | _NOFOLLOW
        with naming(path), deferred:
            return lock_holder(
                self._fd, name, lambda: self._open(name, flags)[0], self._env.ofd_locks
            )

    def is_shared(self, name: str) -> bool:
        """Return True if processes share the store.  ``OSError`` if that cannot be found out."""
        try:
            with deferred:
                fd = self.open_descriptor(name, os.O_RDONLY)
                try:
                    return is_locked_from(fd, FIRST_LEASE)
                finally:
                    os.close(fd)
        except FileNotFoundError:
            return False

    def open_descriptor(self, name: str, flags: int) -> int:
        """A new descriptor of a regular file, opened with these flags.  Caller closes it, and
        defers signals.

        With ``O_CREAT`` only its user may open the file afterwards, and those that could write
        to it before.
        """
        return self._open(name, flags | _NOFOLLOW, bool(flags & os.O_CREAT))[0]

    def inode(self, name: str) -> int:
        """The number in the file system of the file of that name; 0 if there is none."""
        try:
            return os.stat(name, dir_fd=self._fd, follow_symlinks=False).st_ino
        except FileNotFoundError:
            return 0

    def subdirectory(self, name: str, create: bool = False) -> LocalDirectory:
        """A directory inside this one; with ``create`` its own name is durable afterwards."""
        path = self._path_of(name)
        with naming(path), deferred:
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

    def _open_again(self, name: str, flags: int) -> tuple[int, int]:
        """Open a file to write on at its end, unless it has other names.  Caller defers signals."""
        fd, size = self._open(name, flags | os.O_APPEND | _NOFOLLOW)
        try:
            refuse_links(os.fstat(fd), self._path_of(name))
        except BaseException:
            os.close(fd)
            raise
        return fd, size

    def _open(self, name: str, flags: int, private: bool = False) -> tuple[int, int]:
        """Open a regular file: its descriptor and its length in bytes.  Caller defers signals.

        A ``private`` file is its user's alone; see :func:`make_private`.
        """
        path = self._path_of(name)
        with naming(path):
            try:
                every = flags | _NONBLOCK | _CLOEXEC
                mode = _PRIVATE_MODE if private else _FILE_MODE
                fd = with_room(lambda: os.open(name, every, mode, dir_fd=self._fd))
            except OSError as error:
                self._explain(error, name, path)
                raise
            try:
                status = os.fstat(fd)
                require_regular(status, path)
                if private:
                    make_private(fd, status)
            except BaseException:
                os.close(fd)
                raise
            return fd, status.st_size

    def _open_directory(self, name: str) -> int:
        try:
            flags = os.O_RDONLY | _DIRECTORY | _NOFOLLOW | _CLOEXEC
            return with_room(lambda: os.open(name, flags, dir_fd=self._fd))
        except NotADirectoryError as error:  # the error that Linux raises for a symbolic link here
            status = os.stat(name, dir_fd=self._fd, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                raise OSError(errno.ELOOP, "refused: a symbolic link", error.filename) from error
            raise

    def _explain(self, error: OSError, name: str, path: str) -> None:
        """The error of a failed open, with the kind of file that was found."""
        if error.errno in _ODD_FILE:
            status = os.stat(name, dir_fd=self._fd, follow_symlinks=False)
            require_regular(status, path)

    def _sync_parent(self, made: bool) -> None:
        """Make this directory's own name durable.

        If the parent cannot be synced (it may be unreadable), everything is synced if the directory
        was just ``made``; otherwise nothing is done.
        """
        try:
            flags = os.O_RDONLY | _DIRECTORY | _CLOEXEC
            with deferred:
                fd = with_room(lambda: os.open("..", flags, dir_fd=self._fd))
                try:
                    sync_descriptor(fd, os.fsync)
                finally:
                    os.close(fd)
        except OSError as error:
            if error.errno not in _NOT_SYNCABLE:
                raise
            if made and sys.platform != "win32":
                os.sync()


class LocalEnv(Env):
    """The local file system.

    With ``follow_symlinks`` files are *read* through symbolic links, too (nothing is ever written
    through one).  ``ofd_locks=False`` takes POSIX locks, as on systems without OFD locks.

    Errors are ``OSError``, with ``errno`` and the whole path.  Each method costs its system calls;
    one that makes or renames a directory also waits for the disk.

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

    supported = (
        _DIRECTORY != 0
        and HAS_LOCKS
        and any(
            # By name, since eventlet replaces os.open with its own function.
            call.__name__ == "open"
            for call in os.supports_dir_fd
        )
    )
    """True if this platform supports the necessary calls."""

    def __init__(self, *, follow_symlinks: bool = False, ofd_locks: bool = HAS_OFD_LOCKS) -> None:
        self.follow_symlinks = follow_symlinks
        self.ofd_locks = ofd_locks

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), self.follow_symlinks, self.ofd_locks))

    def __repr__(self) -> str:
        links, locks = self.follow_symlinks, self.ofd_locks
        return f"{type(self).__name__}(follow_symlinks={links}, ofd_locks={locks})"

    def open_directory(self, path: str, create: bool = False) -> Directory:
        """Open a directory; with ``create`` it is made if missing, and its name is durable.

        The path may be a symbolic link to a directory.  Raises ``OSError`` with ``ENOSYS`` if the
        platform has no directory descriptors and is not Windows.
        """
        if sys.platform == "win32":
            from lsmkv.engine.env import windows  # noqa: PLC0415 - nowhere else

            return windows.open_directory(path, create, self.follow_symlinks)
        return self._open_directory(path, create)

    def _open_directory(self, path: str, create: bool) -> LocalDirectory:
        if not self.supported:
            why = "LocalEnv needs directory descriptors (dir_fd), which this platform lacks"
            raise OSError(errno.ENOSYS, why, path)
        flags = os.O_RDONLY | _DIRECTORY | _CLOEXEC
        made = False
        with deferred:
            try:
                fd = with_room(lambda: os.open(path, flags))
            except FileNotFoundError:
                if not create:
                    raise
                made = _make_directory(path)
                fd = with_room(lambda: os.open(path, flags))
            directory = LocalDirectory(fd, path, self)
        if create:
            with naming(path):
                directory._sync_parent(made)
        return directory

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory; ``OSError`` with ``ENOTEMPTY`` if it is not."""
        if sys.platform == "win32":
            from lsmkv.engine.env import windows  # noqa: PLC0415 - as above

            windows.remove_directory(path)
        else:
            os.rmdir(path)

    def rename_directory(self, old: str, new: str) -> None:
        """Rename, and fsync the directory that holds both names.

        If another process makes ``new`` between the check and the rename, it is replaced only if it
        is an empty directory: otherwise the system refuses.
        """
        if os.path.lexists(new):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)
        if sys.platform == "win32":
            from lsmkv.engine.env import windows  # noqa: PLC0415 - as above

            windows.rename_directory(old, new)
            return
        os.rename(old, new)
        with self.open_directory(os.path.dirname(absolute(new))) as parent:
            parent.sync()


def _make_directory(path: str, parent: int | None = None) -> bool:
    """Make a directory.  Returns whether this call made it."""
    try:
        os.mkdir(path, _DIRECTORY_MODE, dir_fd=parent)
    except FileExistsError:
        return False
    return True


def is_write_protected(path: str) -> bool:
    """Return True if a directory exists in which this process may not create files."""
    return os.path.isdir(path) and not os.access(path, os.W_OK)
