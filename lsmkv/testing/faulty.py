"""A file system that fails on demand and knows what a power cut would leave.

:class:`FaultyEnv` is for the tests of lsmkv and of programs that use it.  It works in memory, and
can

* fail a chosen call: run once, read ``calls``, then run again with ``fail_at(n)`` for every ``n``
  up to it, and every system call of the run is tested;
* show at any moment what the disk would hold if the power failed now (:meth:`FaultyEnv.power_cut`)
  or if the process were killed now (:meth:`FaultyEnv.kill`), as a new file system.  With
  ``fail_at(n, sticky=True)`` the run stops at its n-th call, so that a sweep reaches every moment.

``durable.py`` models what is durable.  After a failed ``sync`` nothing more of that file ever
becomes durable, even if a later ``sync`` returns.  Linux also drops pages that it could not write.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Collection
from typing import Never

from lsmkv.engine.env.base import Directory, Env, FileLock, RandomAccessFile, WritableFile
from lsmkv.engine.env.descriptors import make_room
from lsmkv.engine.env.memory import MemoryDirectory, MemoryEnv, MemoryWritableFile
from lsmkv.engine.util.copying import refuse_copy
from lsmkv.testing.durable import DurableFile, DurableFolder, NameModel, PowerCut, Tails

CALLS = frozenset(
    {
        "open_directory",
        "remove_directory",
        "subdirectory",
        "names",
        "exists",
        "size",
        "open",
        "read",
        "create",
        "append_to",
        "reserve",
        "append",
        "file_size",
        "truncate",
        "sync",
        "rename",
        "rename_directory",
        "remove",
        "link",
        "dir_sync",
        "lock",
    }
)
"""The calls that are counted and can fail: the interface's method names, except
``WritableFile.size`` (``file_size``) and ``Directory.sync`` (``dir_sync``).  ``create`` includes
``create_log``, and ``append_to`` includes ``continue_log``; ``reserve`` is counted for mapped logs.
``close`` is not counted."""


class _Fault:
    """The calls that fail, and their errors; see :meth:`FaultyEnv.fail_at`."""

    def __init__(
        self, n: int, error: OSError, sticky: bool, short: bool, calls: frozenset[str]
    ) -> None:
        self._left = n
        self._error = error
        self._sticky = sticky
        self.short = short
        self._calls = calls

    def strikes(self, call: str) -> bool:
        """Count a call and return True if it fails.  Called once for every call."""
        if call not in self._calls:
            return False
        self._left -= 1
        return self._left == 0 or (self._sticky and self._left < 0)

    def error(self, path: str) -> OSError:
        """The exception to raise: a new one each time, so that tracebacks do not mix."""
        code = errno.EIO if self._error.errno is None else self._error.errno
        return OSError(code, self._error.strerror or os.strerror(code), path)


class FaultyEnv(Env):
    """A file system in memory that fails on demand, and knows what a crash would leave.

    Run something once and read ``calls``.  Then run it again for every ``n`` up to that with
    ``fail_at(n)``: this tests every call of the run.

    >>> import errno
    >>> from lsmkv import DB, IOError
    >>> def workload(env):
    ...     with DB("/db", create_if_missing=True, env=env) as db:
    ...         db.put(b"k", b"v", sync=True)
    >>> clean = FaultyEnv()
    >>> workload(clean)
    >>> reported = 0
    >>> for n in range(1, clean.calls + 1):
    ...     env = FaultyEnv()
    ...     env.fail_at(n, OSError(errno.ENOSPC, "disk full"))
    ...     try:
    ...         workload(env)
    ...     except IOError as error:
    ...         reported += error.errno == errno.ENOSPC
    ...     assert env.failures == 1 and env.struck[0][0] == clean.history[n - 1]
    ...     env.heal()
    ...     DB("/db", create_if_missing=True, env=env).close()
    >>> reported > clean.calls / 2  # not all are needed: for example, removing an old file may fail
    True
    >>> with DB("/db", env=clean.power_cut()) as db:
    ...     db.get(b"k")
    b'v'
    >>> with DB("/db", env=clean.kill()) as db:
    ...     db.get(b"k")
    b'v'
    >>> clean.rename_directory("/db", "/old")
    >>> "rename_directory" in CALLS, clean.history[-1]
    (True, 'rename_directory')
    >>> clean.open_directory("/new", create=True).close()
    >>> clean.remove_directory("/new")

    Errors and costs are those of :class:`~lsmkv.MemoryEnv`, apart from the requested errors.
    """

    def __init__(self, *, mapped_logs: bool = False) -> None:
        """``mapped_logs``: see :class:`MemoryEnv`; then a full disk makes ``reserve`` fail."""
        self.mapped_logs = mapped_logs
        self.calls = 0
        """The number of calls so far, including failed ones."""
        self.history: list[str] = []
        """Their names in order, from ``CALLS``: the n-th call is ``history[n - 1]``."""
        self.struck: list[tuple[str, str]] = []
        """The calls that were made to fail so far: their names and paths."""
        self.notes: list[object] = []
        """The notes, oldest first; after a crash, those from before it come first."""
        self._fault: _Fault | None = None
        self._use(DurableFolder())

    def __reduce__(self) -> Never:
        refuse_copy("a file system in memory", "its files are in the memory of this process")

    def _use(self, root: DurableFolder) -> None:
        self._root = root
        self._memory = MemoryEnv(root, mapped_logs=self.mapped_logs)
        self._mutex = self._memory.mutex

    @property
    def failures(self) -> int:
        """The number of calls that were made to fail so far."""
        return len(self.struck)

    def fail_at(
        self,
        n: int,
        error: OSError | None = None,
        *,
        sticky: bool = False,
        short: bool = False,
        calls: Collection[str] | None = None,
    ) -> None:
        """Make the n-th call from now on (the next one is 1) raise ``error`` and do nothing.

        ``error`` is ``EIO`` by default; each failing call raises a new ``OSError`` with its
        ``errno`` and text, which names the file.  ``sticky``: all later calls also fail.
        ``short``: a failing ``append`` writes the first half of its data.  ``calls``: only these
        (from ``CALLS``) are counted and fail.  A failing ``sync`` makes nothing durable, then or
        later.

        Replaces an earlier ``fail_at``.
        """
        unknown = set(calls or ()) - CALLS
        if unknown:
            raise ValueError(f"unknown calls: {sorted(unknown)}; known are {sorted(CALLS)}")
        if n < 1:
            raise ValueError(f"calls are counted from 1, not from {n}")
        chosen = CALLS if calls is None else frozenset(calls)
        reason = OSError(errno.EIO, os.strerror(errno.EIO)) if error is None else error
        with self._mutex:
            self._fault = _Fault(n, reason, sticky, short, chosen)

    def heal(self) -> None:
        """Make no more calls fail.  Files whose sync failed stay lost."""
        with self._mutex:
            self._fault = None

    def note(self, value: object) -> None:
        """Keep ``value`` for later crashes: for example, what was acknowledged.

        Like :meth:`RecordingEnv.note`: the file systems that :meth:`power_cut` and :meth:`kill`
        return have it in their ``notes``.  It does not count as a call, and never fails.  Any
        thread.  O(1).

        >>> env = FaultyEnv()
        >>> env.note("paid in")
        >>> before = env.power_cut()
        >>> env.note("paid out")
        >>> before.notes, env.kill().notes
        (['paid in'], ['paid in', 'paid out'])
        """
        with self._mutex:
            self.notes.append(value)

    def power_cut(
        self,
        names: NameModel = NameModel.SYNCED,
        rng: random.Random | None = None,
        *,
        tails: Tails = Tails.LOST,
    ) -> FaultyEnv:
        """Return the disk after a power cut now, as a new file system without locks.

        All choices are drawn from ``rng`` (``random.Random(0)`` by default), so a seed repeats
        them.  This file system does not change.
        """
        with self._mutex:
            cut = PowerCut(names, tails, rng or random.Random(0))
            return self._restarted(self._root.survivor(cut))

    def kill(self) -> FaultyEnv:
        """Return the disk after the process is killed now: everything that was written.

        A new file system without locks, all of it durable; this one does not change.
        """
        with self._mutex:
            return self._restarted(self._root.copy())

    def _restarted(self, root: DurableFolder) -> FaultyEnv:
        env = FaultyEnv(mapped_logs=self.mapped_logs)
        env._use(root)
        env.notes = list(self.notes)
        return env

    def open_directory(self, path: str, create: bool = False) -> Directory:
        """Open a directory; see :meth:`Env.open_directory`."""
        with self._mutex:
            self._call("open_directory", path)
            return FaultyDirectory(self, self._memory.open_directory(path, create))

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""
        with self._mutex:
            self._call("remove_directory", path)
            self._memory.remove_directory(path)

    def rename_directory(self, old: str, new: str) -> None:
        """Rename a directory within its parent."""
        with self._mutex:
            self._call("rename_directory", old)
            self._memory.rename_directory(old, new)

    def _call(self, call: str, path: str) -> None:
        """Count a call, and raise if it must fail.

        A call that fails because there is no descriptor is repeated, and counted again, after open
        tables were closed, as in every env.
        """
        fault = self._strike(call, path)
        while fault is not None:
            error = fault.error(path)
            if not make_room(error):
                raise error
            fault = self._strike(call, path)

    def _strike(self, call: str, path: str) -> _Fault | None:
        """Count a call, and return the fault if it fails.  The caller holds the mutex."""
        self.calls += 1
        self.history.append(call)
        if self._fault is None or not self._fault.strikes(call):
            return None
        self.struck.append((call, path))
        return self._fault


class FaultyDirectory(Directory):
    """A directory of a :class:`FaultyEnv`."""

    def __init__(self, env: FaultyEnv, inner: MemoryDirectory) -> None:
        self._env = env
        self._inner = inner
        self._mutex = env._mutex
        self.path = inner.path

    def close(self) -> None:
        self._inner.close()

    def names(self) -> list[str]:
        with self._mutex:
            self._env._call("names", self.path)
            return self._inner.names()

    def replaced(self) -> bool:
        return self._inner.replaced()

    def leads_to(self, name: str, file: RandomAccessFile) -> bool:
        inner = file._inner if isinstance(file, _FaultyRandomAccessFile) else file
        return self._inner.leads_to(name, inner)

    def exists(self, name: str) -> bool:
        with self._mutex:
            self._call("exists", name)
            return self._inner.exists(name)

    def size(self, name: str) -> int:
        with self._mutex:
            self._call("size", name)
            return self._inner.size(name)

    def modified(self, name: str) -> float:
        return self._inner.modified(name)

    def open(self, name: str) -> RandomAccessFile:
        with self._mutex:
            self._call("open", name)
            return _FaultyRandomAccessFile(self._env, self._inner.open(name))

    def create(self, name: str) -> WritableFile:
        with self._mutex:
            self._call("create", name)
            return _FaultyWritableFile(self._env, self._inner.create(name))

    def append_to(self, name: str) -> WritableFile:
        with self._mutex:
            self._call("append_to", name)
            return _FaultyWritableFile(self._env, self._inner.append_to(name))

    @property
    def maps_logs(self) -> bool:
        return self._inner.maps_logs

    def create_log(self, name: str, mapped: bool = True) -> WritableFile:
        if not (mapped and self.maps_logs):
            return self.create(name)
        with self._mutex:
            self._call("create", name)
            inner = self._inner.create_log(name)
            assert isinstance(inner, MemoryWritableFile)
            return _FaultyWritableFile(self._env, inner)

    def continue_log(self, name: str, end: int, mapped: bool = True) -> WritableFile:
        if not (mapped and self.maps_logs):
            return super().continue_log(name, end)
        with self._mutex:
            self._call("append_to", name)
            inner = self._inner.continue_log(name, end)
            assert isinstance(inner, MemoryWritableFile)
            return _FaultyWritableFile(self._env, inner)

    def rename(self, old: str, new: str) -> None:
        with self._mutex:
            self._call("rename", old)
            self._inner.rename(old, new)

    def remove(self, name: str) -> None:
        with self._mutex:
            self._call("remove", name)
            self._inner.remove(name)

    def link(self, name: str, target: Directory) -> None:
        with self._mutex:
            self._call("link", name)
            inner = target._inner if isinstance(target, FaultyDirectory) else target
            self._inner.link(name, inner)

    def sync(self) -> None:
        with self._mutex:
            self._env._call("dir_sync", self.path)
            self._inner.sync()

    def lock(self, name: str) -> FileLock:
        with self._mutex:
            self._call("lock", name)
            return self._inner.lock(name)

    def lock_holder(self, name: str) -> int | None:
        return self._inner.lock_holder(name)

    def subdirectory(self, name: str, create: bool = False) -> Directory:
        with self._mutex:
            self._call("subdirectory", name)
            return FaultyDirectory(self._env, self._inner.subdirectory(name, create))

    def _call(self, call: str, name: str) -> None:
        self._env._call(call, os.path.join(self.path, name))


class _FaultyRandomAccessFile(RandomAccessFile):
    def __init__(self, env: FaultyEnv, inner: RandomAccessFile) -> None:
        self._env = env
        self._inner = inner
        self.path = inner.path
        self.size = inner.size

    def close(self) -> None:
        self._inner.close()

    def read(self, offset: int, length: int) -> bytes:
        with self._env._mutex:
            self._env._call("read", self.path)
            return self._inner.read(offset, length)


class _FaultyWritableFile(WritableFile):
    def __init__(self, env: FaultyEnv, inner: MemoryWritableFile) -> None:
        self._env = env
        self._inner = inner
        self._mutex = env._mutex
        self.path = inner.path

    def close(self) -> None:
        self._inner.close()

    @property
    def mapped(self) -> bool:
        return self._inner.mapped

    def reserve(self, length: int) -> int:
        with self._mutex:
            if length > 0 and self._env.mapped_logs:
                self._env._call("reserve", self.path)
            return self._inner.reserve(length)

    def append(self, data: bytes) -> None:
        with self._mutex:
            fault = self._env._strike("append", self.path)
            written = data if fault is None else data[: len(data) // 2] if fault.short else b""
            self._inner.append(written)
            if fault is not None:
                raise fault.error(self.path)

    def size(self) -> int:
        with self._mutex:
            self._env._call("file_size", self.path)
            return self._inner.size()

    def truncate(self, length: int) -> None:
        with self._mutex:
            self._env._call("truncate", self.path)
            self._inner.truncate(length)

    def sync(self) -> None:
        with self._mutex:
            fault = self._env._strike("sync", self.path)
            if fault is None:
                self._inner.sync()
                return
            file = self._inner.file
            assert isinstance(file, DurableFile)
            file.doom()
            raise fault.error(self.path)
