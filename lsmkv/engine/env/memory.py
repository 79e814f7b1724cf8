"""A file system in memory, for ``:memory:`` stores and for tests.

It returns and fails like the local file system: the same exceptions with the same ``errno``, a
removed file stays readable through open handles, and a store has one owner.  Paths are looked up
from one root, with or without a leading slash.
"""

from __future__ import annotations

import errno
import os
import posixpath
import time
from typing import Any, Never

from lsmkv.engine.env.base import (
    Directory,
    Env,
    FileLock,
    RandomAccessFile,
    WritableFile,
    check_name,
)
from lsmkv.engine.errors import LockedError
from lsmkv.engine.former_paths import keep_paths
from lsmkv.engine.util.copying import refuse_copy
from lsmkv.engine.util.threads import new_reentrant_lock

_LOG_STEP = 4096
"""Bytes that a mapped log reserves at a time."""


class MemoryFile:
    """A file's content, which several names and handles may share."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.made = time.time()

    def append(self, data: bytes) -> None:
        """Add bytes at the end."""
        self.data += data

    def store(self, offset: int, data: bytes) -> None:
        """Replace bytes, as a store into a mapped page does."""
        self.data[offset : offset + len(data)] = data

    def truncate(self, length: int) -> None:
        """Keep the first ``length`` bytes."""
        del self.data[length:]

    def sync(self) -> None:
        """Does nothing: memory has no durable part."""


class MemoryFolder:
    """A directory's names, independent of its handles.

    Names change only through the methods, so a subclass sees every change.
    """

    def __init__(self) -> None:
        self.entries: dict[str, MemoryNode] = {}
        self.locked: set[str] = set()
        self.removed = False

    def new_file(self) -> MemoryFile:
        """A file without a name."""
        return MemoryFile()

    def new_folder(self) -> MemoryFolder:
        """A directory without a name."""
        return MemoryFolder()

    def link(self, name: str, node: MemoryNode) -> None:
        """Give a file or directory its first name."""
        self.entries[name] = node

    def unlink(self, name: str) -> None:
        """Remove an existing name."""
        del self.entries[name]

    def move(self, old: str, new: str) -> None:
        """Rename an existing name."""
        self.entries[new] = self.entries.pop(old)

    def sync(self) -> None:
        """Make all changes of names durable; see :meth:`MemoryFile.sync`."""

    def confirm(self, name: str) -> None:
        """Make one name durable."""


MemoryNode = MemoryFile | MemoryFolder


class _MemoryHandle:
    """The base of all handles: a path for messages, the file system's mutex, a closed flag."""

    path = ""
    _open = False

    def __init__(self, path: str, mutex: Any) -> None:
        self.path = path
        self._mutex = mutex
        self._open = True

    def close(self) -> None:
        self._open = False

    def _check_open(self) -> None:
        if not self._open:
            raise _error(errno.EBADF, self.path)


class MemoryRandomAccessFile(_MemoryHandle, RandomAccessFile):
    """A file of a :class:`MemoryEnv`, open for reading."""

    def __init__(self, path: str, mutex: Any, file: MemoryFile) -> None:
        super().__init__(path, mutex)
        self._file = file
        self.size = len(file.data)

    def read(self, offset: int, length: int) -> bytes:
        with self._mutex:
            self._check_open()
            if offset < 0 or length < 0:
                raise _error(errno.EINVAL, self.path)
            with memoryview(self._file.data) as view:
                return bytes(view[offset : offset + length])


class MemoryWritableFile(_MemoryHandle, WritableFile):
    """A file of a :class:`MemoryEnv`, open for writing."""

    def __init__(self, path: str, mutex: Any, file: MemoryFile) -> None:
        super().__init__(path, mutex)
        self.file = file

    def append(self, data: bytes) -> None:
        with self._mutex:
            self._check_open()
            self.file.append(data)

    def size(self) -> int:
        with self._mutex:
            self._check_open()
            return len(self.file.data)

    def truncate(self, length: int) -> None:
        with self._mutex:
            size = self.size()
            if not 0 <= length <= size:
                raise ValueError(f"cannot truncate {self.path} to {length} bytes: it has {size}")
            self.file.truncate(length)

    def sync(self) -> None:
        with self._mutex:
            self._check_open()
            self.file.sync()


class MemoryLogFile(MemoryWritableFile):
    """A log like the mapped one of the local file system: space is reserved, and bytes are stored
    into it."""

    @property
    def mapped(self) -> bool:
        return True

    def __init__(self, path: str, mutex: Any, file: MemoryFile, end: int = 0) -> None:
        super().__init__(path, mutex, file)
        self._end = end
        self.reserve(1)  # the local one also begins with reserved space: zeros precede any record

    def reserve(self, length: int) -> int:
        with self._mutex:
            self._check_open()
            missing = self._end + length - len(self.file.data)
            if missing > 0:
                self.file.append(bytes(-(-missing // _LOG_STEP) * _LOG_STEP))
            return len(self.file.data)

    def append(self, data: bytes) -> None:
        with self._mutex:
            self.reserve(len(data))
            self.file.store(self._end, data)
            self._end += len(data)

    def size(self) -> int:
        with self._mutex:
            self._check_open()
            return self._end

    def truncate(self, length: int) -> None:
        with self._mutex:
            size = self.size()
            if not 0 <= length <= size:
                raise ValueError(f"cannot truncate {self.path} to {length} bytes: it has {size}")
            self.file.store(length, bytes(size - length))
            self._end = length

    def close(self) -> None:
        with self._mutex:
            if self._open and len(self.file.data) > self._end:
                self.file.truncate(self._end)
            super().close()


class MemoryFileLock(_MemoryHandle, FileLock):
    """A held lock of a :class:`MemoryEnv`; deleting it also releases it."""

    def __init__(self, path: str, mutex: Any, folder: MemoryFolder, name: str) -> None:
        self._folder = folder
        self._name = name
        super().__init__(path, mutex)
        folder.locked.add(name)

    def close(self) -> None:
        with self._mutex:
            if self._open:
                self._folder.locked.discard(self._name)
                self._open = False

    def __del__(self) -> None:
        if self._open:
            self.close()


class MemoryDirectory(_MemoryHandle, Directory):
    """A directory of a :class:`MemoryEnv`."""

    takes_lock = True

    def __init__(
        self,
        path: str,
        mutex: Any,
        folder: MemoryFolder,
        maps_logs: bool = False,
        env: MemoryEnv | None = None,
    ) -> None:
        super().__init__(path, mutex)
        self._folder = folder
        self._maps_logs = maps_logs
        self._memory = env  # None if the path is not looked up again

    @property
    def is_entered(self) -> bool:
        return bool(self._mutex._is_owned())

    def names(self) -> list[str]:
        with self._mutex:
            self._check_open()
            return list(self._folder.entries)

    def replaced(self) -> bool:
        with self._mutex:
            self._check_open()
            return (
                self._memory is not None and self._memory._folder_at(self.path) is not self._folder
            )

    def leads_to(self, name: str, file: RandomAccessFile) -> bool:
        with self._mutex:
            self._check_open()
            node = self._folder.entries.get(check_name(name))
            return not isinstance(file, MemoryRandomAccessFile) or node is file._file

    def exists(self, name: str) -> bool:
        check_name(name)
        with self._mutex:
            self._check_open()
            return name in self._folder.entries

    def size(self, name: str) -> int:
        with self._mutex:
            return len(self._file(name).data)

    def modified(self, name: str) -> float:
        """Return the time at which the file was created: later writes do not change it."""
        with self._mutex:
            return self._file(name).made

    def open(self, name: str) -> MemoryRandomAccessFile:
        with self._mutex:
            return MemoryRandomAccessFile(self._path_of(name), self._mutex, self._file(name))

    def create(self, name: str) -> MemoryWritableFile:
        path = self._path_of(name)
        with self._mutex:
            self._check_open()
            if name in self._folder.entries:
                raise _error(errno.EEXIST, path)
            return MemoryWritableFile(path, self._mutex, self._make_file(name))

    def append_to(self, name: str) -> MemoryWritableFile:
        with self._mutex:
            return MemoryWritableFile(self._path_of(name), self._mutex, self._file(name))

    @property
    def maps_logs(self) -> bool:
        return self._maps_logs

    def create_log(self, name: str, mapped: bool = True) -> WritableFile:
        return self._log(self.create(name), mapped)

    def continue_log(self, name: str, end: int, mapped: bool = True) -> WritableFile:
        return self._log(super().continue_log(name, end), mapped)

    def _log(self, file: WritableFile, mapped: bool) -> WritableFile:
        """The file, as a mapped log if requested and if the file is not of a subclass."""
        if not (mapped and self._maps_logs) or type(file) is not MemoryWritableFile:
            return file
        return MemoryLogFile(file.path, self._mutex, file.file, file.size())

    def rename(self, old: str, new: str) -> None:
        path, target = self._path_of(old), self._path_of(new)
        with self._mutex:
            self._file(old)
            if isinstance(self._folder.entries.get(new), MemoryFolder):
                raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), path, None, target)
            if old != new:
                self._folder.move(old, new)

    def remove(self, name: str) -> None:
        with self._mutex:
            self._file(name)
            self._folder.unlink(name)

    def link(self, name: str, target: Directory) -> None:
        check_name(name)
        if not isinstance(target, MemoryDirectory) or target._mutex is not self._mutex:
            raise _error(errno.EXDEV, self._path_of(name))
        with self._mutex:
            target._check_open()
            file = self._file(name)
            if target._folder.removed:
                raise _error(errno.ENOENT, target._path_of(name))
            if name in target._folder.entries:
                raise _error(errno.EEXIST, target._path_of(name))
            target._folder.link(name, file)

    def sync(self) -> None:
        with self._mutex:
            self._check_open()
            self._folder.sync()

    def lock(self, name: str) -> FileLock:
        path = self._path_of(name)
        with self._mutex:
            self._check_open()
            if name in self._folder.locked:
                raise LockedError(path, os.getpid())
            if name in self._folder.entries:
                self._file(name)
            else:
                self._make_file(name)
            return MemoryFileLock(path, self._mutex, self._folder, name)

    def lock_holder(self, name: str) -> int | None:
        with self._mutex:
            return os.getpid() if name in self._folder.locked else None

    def subdirectory(self, name: str, create: bool = False) -> MemoryDirectory:
        path = self._path_of(name)
        with self._mutex:
            self._check_open()
            folder = _step(self._folder, name, path, create and not self._folder.removed)
            return MemoryDirectory(path, self._mutex, folder, self._maps_logs, self._memory)

    def _path_of(self, name: str) -> str:
        return os.path.join(self.path, check_name(name))

    def _file(self, name: str) -> MemoryFile:
        """The file of this name; the local file system's error if it does not exist."""
        path = self._path_of(name)
        self._check_open()
        node = self._folder.entries.get(name)
        if node is None:
            raise _error(errno.ENOENT, path)
        if isinstance(node, MemoryFolder):
            raise _error(errno.EISDIR, path)
        return node

    def _make_file(self, name: str) -> MemoryFile:
        if self._folder.removed:
            raise _error(errno.ENOENT, self._path_of(name))
        file = self._folder.new_file()
        self._folder.link(name, file)
        return file


class MemoryEnv(Env):
    """A file system in memory.  Its directories live as long as it does; two of them share nothing.

    It raises what the local file system raises, with the same ``errno``.  Every call costs O(1) or
    O(bytes copied); there is no disk to wait for.

    >>> from lsmkv import DB
    >>> env = MemoryEnv()
    >>> with DB("store", create_if_missing=True, env=env) as db:
    ...     db.put(b"k", b"v")
    >>> env.rename_directory("store", "moved")
    >>> with DB("moved", env=env) as db:
    ...     db.get(b"k")
    b'v'
    >>> with env.open_directory("empty", create=True) as directory:
    ...     directory.names()
    []
    >>> env.remove_directory("empty")
    """

    def __init__(self, root: MemoryFolder | None = None, *, mapped_logs: bool = False) -> None:
        """With ``mapped_logs`` a store's log is like a mapped one of the local file system:
        reserved in advance, with zeros after its end."""
        self.root = MemoryFolder() if root is None else root
        """The root of all nodes, for subclasses that use the nodes behind the handles."""
        self.mapped_logs = mapped_logs
        self.mutex = new_reentrant_lock()
        """Held in every call on this file system; hold it to make several calls atomic."""

    def open_directory(self, path: str, create: bool = False) -> MemoryDirectory:
        """Open a directory; with ``create`` the last part of its path is made if missing.

        The root always exists.
        """
        parts = _parts(path)
        with self.mutex:
            folder = self.root
            for index, name in enumerate(parts):
                folder = _step(folder, name, path, create and index == len(parts) - 1)
            return MemoryDirectory(path, self.mutex, folder, self.mapped_logs, self)

    def _folder_at(self, path: str) -> MemoryFolder | None:
        """The directory at a path, or None.  The caller holds the mutex."""
        node: MemoryNode | None = self.root
        for name in _parts(path):
            node = node.entries.get(name) if isinstance(node, MemoryFolder) else None
        return node if isinstance(node, MemoryFolder) else None

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory; ``OSError`` with ``ENOTEMPTY`` if it is not."""
        parts = _parts(path)
        with self.mutex:
            if not parts:
                raise _error(errno.EBUSY, path)
            parent = self.root
            for name in parts[:-1]:
                parent = _step(parent, name, path, False)
            folder = _step(parent, parts[-1], path, False)
            if folder.entries:
                raise _error(errno.ENOTEMPTY, path)
            folder.removed = True
            parent.unlink(parts[-1])

    def rename_directory(self, old: str, new: str) -> None:
        """Give a directory another name in the directory that holds it."""
        parts, target = _parts(old), _parts(new)
        with self.mutex:
            if not parts or not target or parts[:-1] != target[:-1]:
                raise _error(errno.EXDEV, new)
            parent = self.root
            for name in parts[:-1]:
                parent = _step(parent, name, old, False)
            _step(parent, parts[-1], old, False)
            if target[-1] in parent.entries:
                raise _error(errno.EEXIST, new)
            parent.move(parts[-1], target[-1])
            parent.sync()

    def __reduce__(self) -> Never:
        refuse_copy("a file system in memory", "its files are in the memory of this process")


def _error(code: int, path: str) -> OSError:
    """The exception that the local file system raises for this ``errno``."""
    return OSError(code, os.strerror(code), path)


def _parts(path: str) -> list[str]:
    if not path:
        raise _error(errno.ENOENT, path)
    if "\0" in path:
        raise ValueError("embedded null byte in a path")
    return [part for part in posixpath.normpath("/" + path).split("/") if part]


def _step(folder: MemoryFolder, name: str, path: str, create: bool) -> MemoryFolder:
    """The directory of this name inside another one."""
    node = folder.entries.get(name)
    if node is None:
        if not create:
            raise _error(errno.ENOENT, path)
        node = folder.new_folder()
        folder.link(name, node)
    if not isinstance(node, MemoryFolder):
        raise _error(errno.ENOTDIR, path)
    if create:
        folder.confirm(name)
    return node


keep_paths(MemoryEnv)
