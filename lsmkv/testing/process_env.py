"""The disk of a run as one of its processes has it: directories, ``LOCK``, ``SHARED``, and pages.

Every call is a switch point, and so is every load and store of a word of a page: there another
process continues, or this one is killed.
"""

from __future__ import annotations

import errno
from typing import Any

from lsmkv.engine.env.base import FileLock
from lsmkv.engine.env.memory import MemoryFile
from lsmkv.engine.errors import LockedError
from lsmkv.shared.system.shared_file import FIRST_LOG, Range, SharedFile
from lsmkv.shared.system.shared_page import (
    EPOCH,
    MAGIC,
    SEQUENCE,
    SIZE,
    SUPERSEDED,
    TOKEN,
    SharedPage,
)
from lsmkv.shared.system.sharing import SharingEnv, SharingPlace
from lsmkv.testing.connections import Sockets
from lsmkv.testing.faulty import FaultyDirectory, FaultyEnv
from lsmkv.testing.processes import Process, error_of
from lsmkv.testing.scheduler import OWN_FILES

OWN_FILES.add(__file__)


class ProcessEnv(SharingEnv):
    """The disk of a run, as one of its processes has it."""

    def __init__(self, process: Process, disk: FaultyEnv) -> None:
        self._process = process
        self._disk = disk
        self.sockets = Sockets(process, lambda memory: _Mapped(process, memory).fd)
        self.pages = _Pages(process)

    def open_directory(self, path: str, create: bool = False) -> _Directory:
        return _Directory(self._process, self._disk.open_directory(path, create))

    def remove_directory(self, path: str) -> None:
        self._disk.remove_directory(path)

    def rename_directory(self, old: str, new: str) -> None:
        self._disk.rename_directory(old, new)


class _Directory(FaultyDirectory, SharingPlace):
    """A directory that simulated processes share."""

    def __init__(self, process: Process, directory: Any) -> None:
        super().__init__(directory._env, directory._inner)
        self._process = process
        self.system = process.system
        self._folder = directory._inner._folder

    def close(self) -> None:
        self.end_start()
        super().close()

    def lock(self, name: str) -> FileLock:
        return self._take_lock(name, False)

    def lock_as_owner(self, name: str) -> FileLock:
        return self._take_lock(name, True)

    def _take_lock(self, name: str, shares: bool) -> FileLock:
        with self._mutex:
            self._call("lock", name)
            place = id(self._folder), name
            if place in self.system.locks:
                raise LockedError(f"{self.path}/{name}", self.system.written.get(place))
            if not shares and self.system.members.get(place):
                raise LockedError(f"{self.path}/{name}", None, shared=True)
            if name not in self._folder.entries:
                self._folder.link(name, self._folder.new_file())
            lock = self.system.locks[place] = _Lock(self._process, place, shares)
        self._process.at("writes its id into the lock file")
        self.system.written[place] = self._process.pid
        return lock

    def lock_holder(self, name: str) -> int | None:
        self._process.at("looks who holds a lock")
        place = id(self._folder), name
        lock = self.system.locks.get(place)
        if lock is None:
            return None
        written = self.system.written.get(place, 0)
        return 0 if written == self._process.pid and lock.process is not self._process else written

    def lock_as_member(self, name: str) -> FileLock | None:
        self._process.at("takes a member's lock")
        if not self._is_open_to_members(name):
            return None
        return _MemberLock(self._process, (id(self._folder), name))

    def is_lock_shared(self, name: str) -> bool:
        self._process.at("looks whether all of a file is locked")
        return self._is_open_to_members(name)

    def _is_open_to_members(self, name: str) -> bool:
        lock = self.system.locks.get((id(self._folder), name))
        return name in self._folder.entries and (lock is None or lock.shares)

    def shared_file(self, name: str, create: bool) -> SharedFile:
        self._process.at("opens a shared file")
        file = self._folder.entries.get(name)
        path = f"{self.path}/{name}"
        if file is None:
            if not create:
                raise error_of(errno.ENOENT, path)
            file = self._folder.new_file()
            self._folder.link(name, file)
        return _SharedFile(self._process, file, path)

    def is_shared(self, name: str) -> bool:
        self._process.at("looks for leases")
        file = self._folder.entries.get(name)
        return any(one.file is file and one.leases for one in self.system.handles)

    def is_writable(self) -> bool:
        return True

    def claim_start(self) -> bool:
        self._process.at("claims to start an owner")
        return self.system.starting.setdefault(id(self._folder), self) is self

    def end_start(self) -> None:
        if self.system.starting.get(id(self._folder)) is self:
            del self.system.starting[id(self._folder)]


class _Lock(FileLock):
    """A held lock."""

    def __init__(self, process: Process, place: tuple[int, str], shares: bool) -> None:
        self.process = process
        self.shares = shares
        self._place = place

    def close(self) -> None:
        system = self.process.system
        if system.locks.get(self._place) is self:
            self.process.at("releases a lock")
            system.written.pop(self._place, None)
            system.locks.pop(self._place, None)


class _MemberLock(FileLock):
    """A member's part of a lock."""

    def __init__(self, process: Process, place: tuple[int, str]) -> None:
        self.process = process
        self._place = place
        process.system.members.setdefault(place, []).append(self)

    def close(self) -> None:
        members = self.process.system.members[self._place]
        if self in members:
            self.process.at("gives up a member's lock")
            members.remove(self)


class _SharedFile(SharedFile):
    """An open file that processes share, with the leases that were taken through it."""

    def __init__(self, process: Process, file: MemoryFile, path: str) -> None:
        self.process = process
        self.file = file
        self.path = path
        self.leases: set[int] = set()
        self._fd = process.open(self)
        process.system.handles.append(self)

    def close(self) -> None:
        if self._fd >= 0:
            self.process.at("closes a shared file")
            self.end()

    def end(self) -> None:
        """Release its descriptor, leases and handle, as the system does on close."""
        fd, self._fd = self._fd, -1
        self.process.forget(fd)
        self.leases.clear()
        self.process.system.handles.remove(self)

    def inode(self) -> int:
        self._at("looks at a shared file")
        return super().inode()

    def _identity(self) -> tuple[int, int]:
        return 0, self.process.system.inode(self.file)

    def held_by(self, pid: int) -> list[Range]:
        found = [one for one in self._others(True) if one.process.pid == pid]
        leases = {lease for one in found for lease in one.leases if lease >= FIRST_LOG}
        return sorted((lease, lease) for lease in leases)

    def is_open_in(self, pid: int) -> bool:
        return any(one.process.pid == pid for one in self._others(True))

    def _at(self, doing: str) -> None:
        self.process.at(doing)
        if self._fd < 0:
            raise error_of(errno.EBADF, self.path)

    def _others(self, with_own: bool = False) -> list[_SharedFile]:
        handles = self.process.system.handles
        return [one for one in handles if one.file is self.file and (with_own or one is not self)]

    def _read(self, size: int, offset: int) -> bytes:
        self._at("reads a shared file")
        return bytes(self.file.data[offset : offset + size])

    def _write(self, content: bytes, offset: int) -> None:
        self._at("writes a shared file")
        self.file.store(offset, content)

    def _set_size(self, size: int) -> None:
        self._at("sets the size of a shared file")
        self.file.truncate(min(size, len(self.file.data)))
        self.file.append(bytes(size - len(self.file.data)))

    def _lock(self, offset: int) -> None:
        if self._fd < 0:
            raise ValueError("the file is closed")
        self._at("takes a lease")
        self.leases.add(offset)

    def _unlock(self, offset: int) -> None:
        if self._fd >= 0:
            self.process.at("ends a lease")
            self.leases.discard(offset)

    def _first_locked(self, start: int, length: int) -> Range | None:
        self._at("looks for leases")
        for one in self._others():
            for lease in sorted(one.leases):
                if start <= lease < start + length:
                    return lease, lease
        return None


# Pages


class _Memory:
    """The words of a page, which live as long as somebody has them."""

    def __init__(self, epoch: int, token: int) -> None:
        self.words = [0] * (SIZE // 8)
        self.words[0] = MAGIC
        self.words[EPOCH] = epoch
        self.words[TOKEN] = token


class _Counts:
    """Memory that a member counts in: no switch points, for nothing depends on what it says."""

    def __init__(self, words: int) -> None:
        self.words = [0] * words


class _Mapped:
    """A descriptor of shared memory."""

    def __init__(self, process: Process, memory: _Memory | _Counts) -> None:
        self.process = process
        self.memory = memory
        self.fd = process.open(self)

    def end(self) -> None:
        """Release its descriptor, as the system does on close."""
        self.process.forget(self.fd)


class _Words:
    """The words, as a process has them mapped."""

    def __init__(self, process: Process, memory: _Memory, writable: bool) -> None:
        self._process = process
        self._words = memory.words
        self._writable = writable

    def __getitem__(self, at: int) -> int:
        self._process.at("loads a word of the page")
        return self._words[at]

    def __setitem__(self, at: int, value: int) -> None:
        if not self._writable:
            raise TypeError("cannot modify read-only memory")
        self._process.at("stores a word of the page")
        self._words[at] = value


class _Page(SharedPage):
    """A page in simulated memory."""

    def __init__(self, process: Process, fd: int, writable: bool) -> None:
        mapped = process.opened(fd)
        if not isinstance(mapped, _Mapped) or not isinstance(mapped.memory, _Memory):
            raise ValueError("not a page of a shared store")
        self._process = process
        self._memory = mapped.memory
        self.words = _Words(process, mapped.memory, writable)
        self._fd = fd

    def supersede(self) -> None:
        self._process.opened(self.fd)
        _Words(self._process, self._memory, True)[SEQUENCE] = SUPERSEDED

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            self._process.forget(fd)


class _Pages:
    """Simulation of :mod:`lsmkv.shared.system.shared_page`."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def SharedPage(self, fd: int, writable: bool) -> _Page:
        return _Page(self._process, fd, writable)

    def make_page(self, epoch: int, token: int) -> tuple[_Page, int]:
        self._process.at("makes a page")
        memory = _Memory(epoch, token)
        page = _Page(self._process, _Mapped(self._process, memory).fd, True)
        return page, _Mapped(self._process, memory).fd

    def find_page(self, pid: int, fd: int, token: int) -> _Page | None:
        self._process.at("looks for a page of another process")
        other = self._process.system.processes.get(pid)
        found = None if other is None or other.killed else other._descriptors.get(fd)
        if not isinstance(found, _Mapped) or not isinstance(found.memory, _Memory):
            return None
        if found.memory.words[TOKEN] != token:
            return None
        return _Page(self._process, _Mapped(self._process, found.memory).fd, False)

    def end_page(self, members: list[tuple[int, int]], token: int) -> bool:
        for pid, fd in members:
            found = self.find_page(pid, fd, token)
            if found is not None:
                try:
                    found.supersede()
                finally:
                    found.close()
                return True
        return False

    def make_memory(self, words: int) -> tuple[_Counts, int]:
        self._process.at("makes memory to count in")
        memory = _Counts(words)
        return memory, _Mapped(self._process, memory).fd

    def map_memory(self, fd: int, words: int) -> _Counts | None:
        self._process.at("maps memory of another process")
        mapped = self._process.opened(fd)
        memory = mapped.memory if isinstance(mapped, _Mapped) else None
        return memory if isinstance(memory, _Counts) and len(memory.words) >= words else None

    def close_descriptor(self, fd: int) -> None:
        self._process.forget(fd)
