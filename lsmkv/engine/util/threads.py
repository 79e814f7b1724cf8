"""The operating system's threads, locks and waits, and a lock that knows its holder.

gevent and eventlet replace ``threading.Lock``, ``_thread.start_new_thread`` and others: waiting in
these lets another greenlet of the same thread run.  The engine may not do that while it holds a
lock, and its background thread has to be a real thread.  So it takes all of this from second
instances of the interpreter's modules, which no library has changed, whether the library was
loaded before or after lsmkv.

User code may run in the middle of any call: a signal handler, or a finalizer that the garbage
collector calls.  If it calls the store, that is a *nested call*, in the same thread as the
*interrupted call*.  A nested call must never wait for a lock that its own thread holds, so it asks
:meth:`ThreadLock.mine` first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.machinery import BuiltinImporter, PathFinder
from types import TracebackType
from typing import Any, Final, cast

from librt.threading import Lock

from lsmkv.engine.util.reentrant import released_when_interrupted
from lsmkv.engine.util.search import IS_COMPILED


def second_instance(name: str) -> Any:
    """Another instance of a module of the interpreter that is written in C."""
    spec: Any = BuiltinImporter.find_spec(name) or PathFinder.find_spec(name)
    module = spec.loader.create_module(spec)
    spec.loader.exec_module(module)
    return module


system: Final[Any] = second_instance("_thread")
"""The module ``_thread`` as the interpreter made it, except for its reentrant lock."""
if sys.version_info >= (3, 14):
    system.RLock = released_when_interrupted(system.RLock)

HAS_THREADS: Final[bool] = sys.platform not in ("emscripten", "wasi")
"""True if this platform can start a thread.  In a browser there is only one."""
get_ident: Final[Any] = system.get_ident
"""The number of the calling thread: the same in all of its greenlets."""
get_native_id: Final[Any] = getattr(system, "get_native_id", get_ident)
"""The system's number of the calling thread; in a browser, which has none, that of
:data:`get_ident`."""
ThreadLocal: Final[Any] = system._local
"""A class of objects that have different attributes in each thread, and the same in all of its
greenlets."""
pause: Final[Any] = second_instance("time").sleep
"""Wait that many seconds, and let other threads run, but no other greenlet of this
thread."""


def start_new_thread(function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """Start a thread of the system; ``RuntimeError`` if no more threads are possible."""
    system.start_new_thread(function, arguments)


def new_lock() -> Any:
    """A lock as ``threading.Lock`` makes it, with a timeout, and interrupted by signals."""
    return system.allocate_lock()


def new_reentrant_lock() -> Any:
    """A lock that its holder may take again, as ``threading.RLock`` makes it."""
    return system.RLock()


def is_locked(lock: Any) -> bool:
    """Return True if a reentrant lock is held: before Python 3.14, only its text shows it."""
    if hasattr(lock, "locked"):
        return bool(lock.locked())
    return not repr(lock).startswith("<unlocked")


class ThreadLock:
    """A lock that can say whether the calling thread holds it.

    It is used like this::

        with lock.guard:
            ...

    The guard is a separate context manager: interpreted, it is a lock of the interpreter, since
    an interrupt before the first instruction of an ``__exit__`` in Python would leave it locked.
    (So it is reentrant; nothing relies on that.)
    """

    def __init__(self) -> None:
        # An RLock would cost a compiled put a tenth of its time, and librt's lock costs 7 ns.
        self.guard: Guard = Guard() if IS_COMPILED else cast(Guard, new_reentrant_lock())

    def mine(self) -> bool:
        """Return True if the calling thread holds the lock."""
        if IS_COMPILED:
            return bool(self.guard.holder == get_ident())
        return bool(cast(Any, self.guard)._is_owned())

    def taken(self) -> bool:
        """True if any thread holds the lock.  A hint, which may be wrong at the next moment."""
        return self.guard.locked() if IS_COMPILED else is_locked(self.guard)


class Guard:
    """Takes the lock of a compiled :class:`ThreadLock`: it notes its holder, and forgets it before
    the lock is released.  No other code of this thread runs between the two steps.

    Without the interpreter's lock another thread may have taken the guard and not noted itself
    yet.  The one that was noted last would then take the lock for its own.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._ident: Any = get_ident  # a faster lookup than that of a global name
        self.holder: object = None
        """The number of the thread that holds the lock."""

    def __enter__(self) -> None:
        self._lock.acquire()
        self.holder = self._ident()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        self.holder = None
        self._lock.release()

    def acquire(self, blocking: bool = True) -> bool:
        """Take the lock, if it is free or ``blocking``.  Returns True if it was taken."""
        if not self._lock.acquire(blocking):
            return False
        self.holder = self._ident()
        return True

    def release(self) -> None:
        """Release the lock."""
        self.holder = None
        self._lock.release()

    def locked(self) -> bool:
        """Return True if any thread holds the lock."""
        return self._lock.locked()
