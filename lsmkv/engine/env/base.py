"""The interface between the engine and the file system.

An :class:`Env` opens directories.  A :class:`Directory` contains files under plain names, and is
all that the engine sees.  The directory's own path is resolved once, when it is opened.  From then
on every name is looked up in that same directory, even if the path leads elsewhere.

Contract, for every implementation:

* A file is named by one path component; anything else raises ``ValueError``.
* Failures of the system raise ``OSError`` (``FileNotFoundError``, ``FileExistsError``, ...)
  with ``errno`` set.  The engine turns them into :class:`lsmkv.errors.IOError`.
* Short reads and writes are completed, except in ``raw_read`` and ``raw_write``, and EINTR is
  retried.
* What is durable after a power cut is what ``WritableFile.sync`` (content) and ``Directory.sync``
  (names: creations, renames, removals) have confirmed, and nothing more.
* All methods may be called from any thread; one writable file is used by one thread at a time.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

NO_LIMIT = 1 << 62
"""The result of :meth:`WritableFile.reserve` for a file without reserved space."""


class _Closeable(ABC):
    """The base of everything that has to be closed; ``with`` closes it."""

    @abstractmethod
    def close(self) -> None:
        """Close the descriptor.  A second close has no effect."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class RandomAccessFile(_Closeable):
    """A file that any number of threads may read at given positions: ``Directory.open``.

    Errors and costs are those of the system's calls: ``OSError`` with ``errno`` set.

    >>> from lsmkv import MemoryEnv
    >>> directory = MemoryEnv().open_directory("files", create=True)
    >>> with directory.create("a") as new:
    ...     new.append(b"a few bytes")
    >>> file = directory.open("a")
    >>> file.size, file.read(2, 3), file.raw_read(5, 6)
    (11, b'few', b'bytes')
    >>> file.close()
    """

    path: str
    """The file's path, for messages."""
    size: int
    """Length in bytes when it was opened."""
    mapping: Any = None
    """The buffer that slices are read from, if the file is mapped into memory: see
    ``Directory.open_mapped``."""

    @abstractmethod
    def read(self, offset: int, length: int) -> bytes:
        """``length`` bytes from ``offset``; fewer only at the end of the file."""

    @property
    def raw_read(self) -> Callable[[int, int], bytes]:
        """A callable that takes a length and an offset and returns some of these bytes, usually
        all.

        It serves frequent reads, and may be the system's own call.  Its errors need not name the
        file, and it must not be called once the file is closed.  If bytes are missing, the caller
        calls :meth:`read` for all of them.
        """
        return self._read_all

    def _read_all(self, length: int, offset: int) -> bytes:
        return self.read(offset, length)


class WritableFile(_Closeable):
    """A file that is written at its end: ``Directory.create``.

    Errors and costs are those of the system's calls: ``OSError`` with ``errno`` set.

    >>> from lsmkv import MemoryEnv
    >>> directory = MemoryEnv().open_directory("files", create=True)
    >>> file = directory.create("a")
    >>> file.append(b"some content")
    >>> file.raw_write(b" more")
    5
    >>> file.begin_sync()
    >>> file.sync()
    >>> file.truncate(4)
    >>> file.size(), file.mapped, file.reserve(1 << 20) > 1 << 20
    (4, False, True)
    >>> file.close()
    """

    path: str
    """The file's path, for messages."""

    @property
    def mapped(self) -> bool:
        """True if an append is a copy into mapped memory: see :meth:`Directory.create_log`."""
        return False

    @abstractmethod
    def append(self, data: bytes) -> None:
        """Write all of ``data``, unbuffered: after it returns, a killed process loses none of it.

        After an error a part of it may have been written: see ``size``.
        """

    @property
    def raw_write(self) -> Callable[[bytes], int]:
        """A callable that writes some of its bytes, usually all, and returns how many.

        It serves small and frequent writes, and may be the system's own call.  The caller passes
        the bytes that were not written to :meth:`append`.  Its errors need not name the file; once
        the file is closed it raises ``OSError`` or ``ValueError``.  It writes nothing beyond the
        offset that :meth:`reserve` returned.  Each call of ``reserve`` may replace it.
        """
        return self._append_all

    def reserve(self, length: int) -> int:
        """Reserve space for ``length`` more bytes.  Returns the offset up to which there is now
        space.

        Only a file with reserved space (:meth:`Directory.create_log`) has a limit.  If there is no
        space for all of the bytes, it raises ``OSError`` and changes nothing.
        """
        return NO_LIMIT

    @abstractmethod
    def size(self) -> int:
        """The file's current length, from the system."""

    @abstractmethod
    def truncate(self, length: int) -> None:
        """Truncate the file to ``length`` bytes; the next write goes there."""

    @abstractmethod
    def sync(self) -> None:
        """Make the content durable.  A failure is final: the file is not synced again."""

    def begin_sync(self) -> None:
        """Ask the system to begin writing what was appended, so that a later :meth:`sync` takes
        less time.  Does not wait, guarantees nothing and never fails."""

    def _append_all(self, data: bytes) -> int:
        self.append(data)
        return len(data)


class FileLock(_Closeable):
    """Exclusive ownership of a store, until it is closed or garbage-collected: ``Directory.lock``.

    Errors and costs are those of the system's calls: ``OSError`` with ``errno`` set.

    >>> from lsmkv import LockedError, MemoryEnv
    >>> directory = MemoryEnv().open_directory("files", create=True)
    >>> lock = directory.lock("LOCK")
    >>> try:
    ...     directory.lock("LOCK")
    ... except LockedError:
    ...     print("held")
    held
    >>> lock.close()
    """


class Directory(_Closeable):
    """A directory that is held open: ``Env.open_directory``.

    Errors and costs are those of the system's calls: ``OSError`` with ``errno`` set, and
    ``ValueError`` for a name that is not one plain component.

    >>> from lsmkv import MemoryEnv
    >>> directory = MemoryEnv(mapped_logs=True).open_directory("files", create=True)
    >>> directory.create("a").close()
    >>> with directory.append_to("a") as more:
    ...     more.append(b"content")
    >>> directory.names(), directory.exists("a"), directory.size("a")
    (['a'], True, 7)
    >>> directory.read_file("a", limit=100), directory.modified("a") > 0
    (b'content', True)
    >>> directory.rename("a", "b")
    >>> with directory.open("b") as file, directory.subdirectory("c", create=True) as other:
    ...     directory.leads_to("b", file), directory.open_mapped("b").mapping is None
    ...     directory.link("b", other)
    ...     directory.remove("b")
    ...     directory.leads_to("b", file), other.names()
    (True, True)
    (False, ['b'])
    >>> directory.sync()
    >>> with directory.lock("LOCK"):
    ...     directory.lock_holder("LOCK") is None
    False
    >>> with directory.create_log("log") as log:
    ...     log.append(b"record")
    ...     end = log.size()
    >>> with directory.continue_log("log", end) as log:
    ...     log.append(b", another")
    >>> directory.read_file("log", limit=100)
    b'record, another'

    What an implementation may know about itself:

    >>> directory.replaced(), directory.immutable, directory.maps_logs, directory.is_entered
    (False, False, True, False)
    >>> directory.is_shared("SHARED")
    False
    >>> directory.change_mark() is None, directory.free_bytes() is None
    (True, True)
    >>> directory.close()
    """

    path: str
    """As messages name it."""

    @abstractmethod
    def names(self) -> list[str]:
        """The names in it, unordered."""

    def replaced(self) -> bool:
        """True if its path now leads to another directory or to none.

        An implementation that cannot know this may inherit this method, which returns False.
        """
        return False

    @property
    def immutable(self) -> bool:
        """True if its names and files never change.  Then an open file has no descriptor, and
        opening one may cost more than keeping it."""
        return False

    def change_mark(self) -> object:
        """A value that changes whenever a name is made, replaced or removed.

        None, as here, if that is unknown: the caller then lists the names.
        """
        return None

    def leads_to(self, name: str, file: RandomAccessFile) -> bool:
        """Return True if a name still refers to an open file of this directory.

        An implementation that cannot know this may inherit this method, which returns True.
        """
        return True

    @abstractmethod
    def exists(self, name: str) -> bool:
        """Return True if the name exists, for a file of any kind."""

    @abstractmethod
    def size(self, name: str) -> int:
        """Length of a regular file in bytes."""

    def modified(self, name: str) -> float:
        """The time when a file was last written, in seconds since 1970.

        An implementation that cannot know this may inherit this method.  It returns the current
        time, so a file is never considered old.
        """
        return time.time()

    def free_bytes(self) -> int | None:
        """About how many bytes new files may take; None if that is unknown.

        An implementation that cannot know this may inherit this method, which returns None.
        """
        return None

    @abstractmethod
    def open(self, name: str) -> RandomAccessFile:
        """Open a regular file for reading; never follows a symbolic link."""

    def open_mapped(self, name: str) -> RandomAccessFile:
        """The same, with the content mapped into memory where the system can do that and no other
        machine may write to the file; else it is read."""
        return self.open(name)

    @abstractmethod
    def create(self, name: str) -> WritableFile:
        """Make a new file; ``FileExistsError`` if the name is taken."""

    @abstractmethod
    def append_to(self, name: str) -> WritableFile:
        """Continue at the end of an existing regular file."""

    takes_lock = False
    """True if calls hold a lock that other threads wait for: see :attr:`is_entered`."""

    @property
    def is_entered(self) -> bool:
        """True if the calling thread is inside a call that holds such a lock, and was interrupted
        there by a signal handler or finalizer.  That code must not wait for the lock."""
        return False

    @property
    def maps_logs(self) -> bool:
        """True if :meth:`create_log` maps logs into memory; otherwise it writes to them."""
        return False

    def create_log(self, name: str, mapped: bool = True) -> WritableFile:
        """:meth:`create` for a log: many small appends, each of which survives the process.

        If it may be ``mapped``, its bytes may be reserved in advance.  Then zeros follow its
        ``size()`` until it is closed, and remain if the process is killed.
        """
        return self.create(name)

    def continue_log(self, name: str, end: int, mapped: bool = True) -> WritableFile:
        """:meth:`create_log` for an existing log, whose last record ends at ``end``.

        Everything after ``end`` is removed.
        """
        file = self.append_to(name)
        try:
            if file.size() > end:
                file.truncate(end)
        except BaseException:
            file.close()
            raise
        return file

    @abstractmethod
    def rename(self, old: str, new: str) -> None:
        """Rename a file, atomically replacing any file of that name."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file."""

    @abstractmethod
    def link(self, name: str, target: Directory) -> None:
        """Make a hard link to a regular file in another directory, under the same name.

        ``OSError`` if that is impossible (on another file system), and ``FileExistsError``.
        """

    @abstractmethod
    def sync(self) -> None:
        """Make creations, renames and removals durable."""

    @abstractmethod
    def lock(self, name: str) -> FileLock:
        """Take the store's lock, a file of this name; :class:`lsmkv.errors.LockedError` if held."""

    def lock_holder(self, name: str) -> int | None:
        """The holder of the lock of this name: a process id, 0 if unknown, or None if it is free.

        Takes no lock.  An implementation that cannot know this may inherit this method, which
        returns 0.
        """
        return 0

    def is_shared(self, name: str) -> bool:
        """True if processes share the store, by the file of this name: see :mod:`lsmkv.shared`.

        ``OSError`` if that cannot be found out: then the store is not opened.

        An implementation whose stores cannot be shared may inherit this method, which returns
        False.
        """
        return False

    @abstractmethod
    def subdirectory(self, name: str, create: bool = False) -> Directory:
        """A directory inside this one; with ``create`` it is made if it does not exist.

        With ``create`` its name is durable afterwards.
        """

    def read_file(self, name: str, limit: int) -> bytes:
        """The content of a small file; ``ValueError`` if it is longer than ``limit`` bytes."""
        with self.open(name) as file:
            if file.size > limit:
                raise ValueError(f"{file.path} has {file.size} bytes; at most {limit} are expected")
            return file.read(0, file.size)


class Env(ABC):
    """A file system.  A subclass of it, or of an env of lsmkv, can replace the local one.

    Errors are ``OSError`` with ``errno`` set: see the module's contract.  Cost: a few system calls
    each; the engine calls them when a store is opened, copied or destroyed.

    >>> from lsmkv import DB, MemoryEnv
    >>> class Watched(MemoryEnv):
    ...     def open_directory(self, path, create=False):
    ...         self.opened = path
    ...         return super().open_directory(path, create)
    >>> env = Watched()
    >>> with DB("store", create_if_missing=True, env=env):
    ...     env.opened
    'store'
    >>> env.open_directory("empty", create=True).close()
    >>> env.rename_directory("empty", "old")
    >>> env.remove_directory("old")
    """

    @abstractmethod
    def open_directory(self, path: str, create: bool = False) -> Directory:
        """Open a directory; with ``create`` it is made if missing (one level, its parent must
        exist).

        With ``create`` its name is durable afterwards.
        """

    @abstractmethod
    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""

    @abstractmethod
    def rename_directory(self, old: str, new: str) -> None:
        """Rename a directory within its parent, durably; ``FileExistsError`` if it is taken."""


def check_name(name: str) -> str:
    """Return ``name`` if it is one plain path component; otherwise raise ``ValueError``."""
    if name in ("", ".", "..") or "\0" in name or name != os.path.basename(name):
        raise ValueError(f"not a plain file name: {name!r}")
    return name
