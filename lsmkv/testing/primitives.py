"""Locks, threads, pauses and clocks of a simulation, installed where the engine looks for them.

:func:`install` is called in a process that has not imported the engine yet (``interpreted.py``).
The engine itself has no switch points: it takes everything that makes threads wait from
``lsmkv.engine.util.threads``, ``librt.threading`` and ``time``, and gets the simulated versions.  A
lock is a switch point before it is taken and after it is released.  So is every call of a file
system in memory, which takes a lock.

Outside a run there is one thread, and nothing waits.
"""

from __future__ import annotations

import os
import random
import sys
import time
import types
from typing import Any, cast

import librt.threading

from lsmkv.engine.util import threads, ticket
from lsmkv.testing.scheduler import OWN_FILES, Scheduler, Thread


class Current:
    """The current run, for the primitives."""

    scheduler: Scheduler | None = None
    """The scheduler that simulates everything; None outside runs."""


_REAL_PID = os.getpid
_TICK = 1e-6
"""Simulated seconds between two readings of a clock."""


class PlainLock:
    """A lock that any thread may release, as ``threading.Lock`` makes it."""

    plain = True
    """True if a thread other than its holder may release it."""

    def __init__(self) -> None:
        self.holder: Thread | None = None
        self._held = False
        scheduler = Current.scheduler
        self._life = -1 if scheduler is None else scheduler.life

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it; False after the time-out, or if it is not free and ``blocking`` is false."""
        return self.take(blocking, None if timeout < 0 else timeout, False)

    def take(self, blocking: bool, seconds: float | None, only_signals: bool) -> bool:
        """:meth:`acquire`; ``only_signals`` says that the time-out serves only to handle
        signals."""
        scheduler = self._scheduler()
        if scheduler is None:
            self._held = True
            return True
        scheduler.step("takes a lock")
        while self._held:
            if not blocking:
                return False
            if not scheduler.wait(self, seconds, only_signals, "waits"):
                return False
        self._held = True
        self.holder = scheduler.current
        return True

    def release(self) -> None:
        """Release it; ``RuntimeError`` if it is free."""
        scheduler = self._scheduler()
        ends = scheduler is not None and scheduler.is_ending
        if ends and scheduler is not None:
            scheduler.wake_waiting_for(self)
            scheduler = None
        if not self._held:
            if scheduler is None:
                return
            raise RuntimeError("release unlocked lock")
        self._held = False
        self.holder = None
        if scheduler is not None:
            scheduler.wake_waiting_for(self)
            scheduler.step("released a lock")

    def locked(self) -> bool:
        """True if the lock is held."""
        return self._held

    def _scheduler(self) -> Scheduler | None:
        """The scheduler that makes threads wait for it.  None outside runs, and for remnants of a
        life that has ended, such as a handle that is finalized later."""
        scheduler = Current.scheduler
        if scheduler is None or scheduler.current is None or 0 <= self._life < scheduler.life:
            return None
        return scheduler

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_error: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return "a ticket or lock"


class ReentrantLock(PlainLock):
    """A lock that its holder may take again, as ``threading.RLock`` makes it.

    Taking it again is not a switch point: nothing can have changed for any thread.
    """

    plain = False

    def __init__(self) -> None:
        super().__init__()
        self._times = 0

    def take(self, blocking: bool, seconds: float | None, only_signals: bool) -> bool:
        """See :meth:`PlainLock.take`."""
        if self._is_owned():
            self._times += 1
            return True
        if not super().take(blocking, seconds, only_signals):
            return False
        self._times = 1
        return True

    def release(self) -> None:
        """Undo one :meth:`acquire`; ``RuntimeError`` if another thread holds it."""
        if self._held and not self._is_owned():
            raise RuntimeError("cannot release un-acquired lock")
        self._times -= 1
        if self._times <= 0:
            super().release()

    def _is_owned(self) -> bool:
        scheduler = Current.scheduler
        return self._held and (scheduler is None or self.holder is scheduler.current)

    def _at_fork_reinit(self) -> None:
        """Free it, in a process forked by a system program."""
        self._held = False
        self.holder = None
        self._times = 0

    def __repr__(self) -> str:
        # ThreadLock.taken() asks for the text, as long as Python's own lock has nothing else.
        return "a lock" if self._held else "<unlocked lock>"


def get_ident() -> int:
    """The number of the thread that runs."""
    scheduler = Current.scheduler
    thread = None if scheduler is None else scheduler.current
    return 0 if thread is None else thread.number


def getpid() -> int:
    """The id of the simulated process, or else of this one."""
    scheduler = Current.scheduler
    thread = None if scheduler is None else scheduler.current
    pid: int = _REAL_PID() if thread is None or thread.group is None else thread.group.pid
    return pid


def start_new_thread(function: Any, arguments: tuple[Any, ...]) -> int:
    """Start a thread in the run."""
    scheduler = Current.scheduler
    if scheduler is None or scheduler.current is None:
        raise RuntimeError("can't start new thread")
    thread = scheduler.start(function, arguments, "thread")
    scheduler.step("started a thread")
    return thread.number


def sleep(seconds: float) -> None:
    """Wait until simulated time has passed; 0 is only a switch point."""
    scheduler = Current.scheduler
    if scheduler is None or scheduler.current is None:
        return
    if seconds > 0:
        scheduler.wait(None, seconds, False, "pauses")
    else:
        scheduler.step("pauses")


def _now() -> float:
    scheduler = Current.scheduler
    if scheduler is None:
        return 1_700_000_000.0
    scheduler.now += _TICK
    return scheduler.now


def _now_ns() -> int:
    return int(_now() * 1e9)


def _acquire_soon(own: ticket.Ticket, seconds: float | None = None) -> bool:
    """``Ticket.acquire_soon``, whose time-out is for signals unless the caller passes one."""
    default = seconds is None
    return cast(PlainLock, own.lock).take(
        True, ticket._CHECK_SIGNALS_EVERY if seconds is None else seconds, default
    )


def install() -> None:
    """Replace the real ones by the simulated ones, permanently."""
    OWN_FILES.update((__file__, str(threads.__file__), str(ticket.__file__)))
    system = types.SimpleNamespace(
        allocate_lock=PlainLock,
        RLock=ReentrantLock,
        get_ident=get_ident,
        start_new_thread=start_new_thread,
    )
    threads.system = system  # type: ignore[misc]
    threads.get_ident = get_ident  # type: ignore[misc]
    threads.pause = sleep  # type: ignore[misc]
    ticket.Ticket.acquire_soon = _acquire_soon  # type: ignore[assignment,method-assign]
    librt.threading.Lock = PlainLock  # type: ignore[assignment,misc]
    for name in ("monotonic", "perf_counter", "time", "process_time"):
        setattr(time, name, _now)
        setattr(time, f"{name}_ns", _now_ns)
    time.sleep = sleep  # type: ignore[assignment]
    chance = random.Random(0)
    os.urandom = chance.randbytes
    os.getpid = getpid
    random.seed(0)
    sys.setswitchinterval(1.0)
