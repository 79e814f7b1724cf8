"""Simulated processes: groups of threads, with what a system keeps for each, that can be killed.

The system does the same for a simulated process that is killed as for a real one: its threads stop,
its leases and locks end, its connections are closed, and what it wrote stays.

What a process has of the system is simulated in :mod:`lsmkv.testing.process_env` and
:mod:`lsmkv.testing.connections`; everything above that is the engine's own code.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

from lsmkv.engine.env.base import Env
from lsmkv.engine.env.memory import MemoryFile
from lsmkv.testing.scheduler import OWN_FILES, Scheduler, Thread

OWN_FILES.add(__file__)
_FIRST_PID = 101
_FIRST_DESCRIPTOR = 3


class System:
    """State outside of the processes of one life of a run."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.processes: dict[int, Process] = {}
        self.listening: dict[bytes, Any] = {}
        self.locks: dict[tuple[int, str], Any] = {}
        self.members: dict[tuple[int, str], list[Any]] = {}
        """The members' parts of lock files."""
        self.written: dict[tuple[int, str], int] = {}
        """The process ids in the lock files."""
        self.starting: dict[int, Any] = {}
        """The claims to start an owner, by directory."""
        self.files: list[MemoryFile] = []
        """Those that processes share, each at the place of its number."""
        self.handles: list[Any] = []
        """The open ones."""

    def inode(self, file: MemoryFile) -> int:
        """The number of a file."""
        for number, known in enumerate(self.files):
            if known is file:
                return number + 1
        self.files.append(file)
        return len(self.files)


class Process:
    """A simulated process, made by :meth:`Run.process`.

    Its threads, and those that they start, are ended together by :meth:`kill`.  To them
    ``os.getpid()`` is :attr:`pid`.  They share stores through :attr:`env`, which is theirs alone:
    ``lsmkv.SharedDB(path, env=process.env)``.
    """

    env: Env
    """The run's disk, as this process has it: see :mod:`lsmkv.testing.process_env`."""

    def __init__(self, system: System, started: list[Thread], name: str) -> None:
        """Only :meth:`Run.process` makes one."""
        self.system = system
        self._started = started
        self._points = 0
        self._last_point = 0
        self._stop_point = 0
        self._descriptors: dict[int, Any] = {}
        self.pid = _FIRST_PID + len(system.processes)
        """Its process id."""
        self.name = name or f"process {self.pid}"
        """Its name in reports."""
        self.killed = False
        """True if it was killed."""
        self.stopped = False
        """True if it is stopped."""
        system.processes[self.pid] = self

    def start(self, function: Callable[..., object], *arguments: Any, name: str = "") -> None:
        """Start a thread in it; nothing happens if it was killed.  If it raises, the run fails."""
        if not self.killed:
            scheduler = self.system.scheduler
            label = f"{self.name} {name}".strip()
            self._started.append(scheduler.start(function, arguments, label, self))
            scheduler.step("started a thread")

    def kill(self) -> None:
        """Kill it, now."""
        if self.killed:
            return
        self.killed = True
        system = self.system
        for one in list(self._descriptors.values()):
            one.end()
        for place, lock in list(system.locks.items()):
            if lock.process is self:
                del system.locks[place]
        for held in system.members.values():
            held[:] = [lock for lock in held if lock.process is not self]
        system.scheduler.kill(self)

    def kill_after(self, points: int) -> None:
        """Kill it at its ``points``-th switch point from now on."""
        self._last_point = self._points + points

    def stop(self) -> None:
        """Stop it, as SIGSTOP does: its threads wait until :meth:`go_on`, even if what they wait
        for becomes free.

        It keeps all that it has.  One of its own threads continues to its next switch point.
        """
        self.stopped = True

    def stop_after(self, points: int) -> None:
        """Stop it at its ``points``-th switch point from now on."""
        self._stop_point = self._points + points

    def go_on(self) -> None:
        """Continue it, as SIGCONT does."""
        self.stopped = False

    @property
    def points(self) -> int:
        """The number of switch points that its threads have reached."""
        return self._points

    # What its objects use

    def step(self) -> None:
        """Pass a switch point of one of its threads."""
        self._points += 1
        if self._points == self._last_point:
            self.kill()
        if self._points == self._stop_point:
            self.stop()

    def at(self, doing: str) -> Scheduler:
        """A switch point before a call of the system; ``RuntimeError`` outside of its own
        threads."""
        scheduler = self.system.scheduler
        thread = scheduler.current
        if thread is None or thread.group is not self:
            raise RuntimeError(f"this belongs to {self.name}: use it in a thread of that process")
        scheduler.step(doing)
        return scheduler

    def open(self, one: Any) -> int:
        """A descriptor for it."""
        number = _FIRST_DESCRIPTOR
        while number in self._descriptors:
            number += 1
        self._descriptors[number] = one
        return number

    def opened(self, descriptor: int) -> Any:
        """Return the object with that descriptor; ``OSError`` if there is none."""
        try:
            return self._descriptors[descriptor]
        except KeyError:
            raise error_of(errno.EBADF) from None

    def forget(self, descriptor: int) -> None:
        """Close a descriptor."""
        self._descriptors.pop(descriptor, None)


def error_of(code: int, path: str | None = None) -> OSError:
    """The system's error of that number."""
    return OSError(code, os.strerror(code), path)
